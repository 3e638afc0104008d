"""Stacks for a person: the merged tree of all ranks, and the frames of one thread.

The tree reads from the outermost call down. The left column names the ranks, and only where they change; a run of
calls that all of them share is not indented further, so that depth on the screen means that ways part:

    ranks  outermost call first
    0-3    main  server.cc:41
           ft::Decoder::forward  decoder.cc:212
    3      |- ft::Tensor::grow  tensor.cc:88
           |  2 x ?? (libcuda.so.1)
    0-2    `- ncclAllReduce (libnccl.so.2)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Callable, FrozenSet, Iterator, List, Mapping, Sequence, Tuple, Union

from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.stack_tree import StackTree, TreeNode
from gdbext.model.text.ranges import counted
from gdbext.render.safe_text import (
    NAMELESS,
    clean,
    function_name,
    name_with_place,
    place_of,
    rank_set,
    shorten,
    shorten_located,
    wrapped,
)
from gdbext.render.style import Style

DEEPEST_FORK = 24
"""Ways that part one below the other; deeper ones are counted, not drawn."""
MOST_LINES = 1_000
_RANKS_WIDTH = 20
_C_LIBRARY = re.compile(r"(^|/)(libc|libpthread|ld)[.-][^/]*so|\[vdso\]")
_INSTALLED = re.compile(r"/(site|dist)-packages/|/lib(64)?/python\d|^/usr/(include|lib)|^<|/bits/|\.tcc$|/std_\w+\.h$")
_C_FILE = re.compile(
    r"(^|/)(pthread_\w+|lowlevellock|futex-internal|raise|abort|clone3?|libc[_-]start\w*|syscall-template)\.[chS]$"
)
_MOST_OF_USER = 24
_MOST_OF_TASKS = 24  # lines, beside an answer
_VDSO = ("clock_gettime", "gettimeofday", "time", "getcpu")

_Call = Union[TreeNode, Frame]
_Part = Tuple[_Call, int]  # a call, and how many times it stands in a row


@dataclass(frozen=True)
class _Limits:
    """How much is drawn: calls of one run, branches of one fork."""

    calls: int
    branches: int


_WHOLE = _Limits(calls=100, branches=100)
_TIGHTER = (_WHOLE, *(_Limits(*pair) for pair in ((12, 12), (8, 8), (6, 8), (5, 7), (4, 6), (3, 5), (3, 3), (3, 2))))


@dataclass(frozen=True)
class _Line:
    """One line before it is laid out: a call, or the words that stand for calls left out.

    `ranks` is empty where they are those of the line above.
    """

    prefix: str
    part: Union[_Part, str]
    ranks: Tuple[int, ...] = ()
    threads: int = 0  # 0 where the number says nothing new


def tree_lines(tree: StackTree, style: Style) -> List[str]:
    """The whole tree, and which threads were set aside."""
    tasks = _task_lines(tree, style, MOST_LINES)
    if not tree.roots:
        return ["No stack of a working thread was read.", *_set_aside(tree, style), *tasks]
    drawn = list(_Drawing(_WHOLE, style).fork(tree.roots))
    lines = _laid_out(drawn[:MOST_LINES], tree.counts, style)
    if len(drawn) > MOST_LINES:
        lines.append(f"{style.ellipsis} {counted(len(drawn) - MOST_LINES, 'more line')}")
    return [*lines, *_set_aside(tree, style), *tasks]


def _task_lines(tree: StackTree, style: Style, budget: int) -> List[str]:
    """What tasks of event loops wait in: their threads wait for events, whatever hangs."""
    drawn = list(_Drawing(_WHOLE, style).fork(tree.tasks)) if tree.tasks else []
    if not drawn:
        return []
    title = "tasks of event loops, outermost coroutine first"
    lines = _laid_out(drawn[:budget], tree.counts, style, title=title, unit="task")
    more = [f"{style.ellipsis} {counted(len(drawn) - budget, 'more line')}"] if len(drawn) > budget else []
    return ["", *lines, *more]


def compact_tree(tree: StackTree, style: Style, budget: int, culprits: FrozenSet[int] = frozenset()) -> List[str]:
    """The tree in about `budget` lines: long runs lose their middle, wide forks the branches of many ranks.

    Branches in which only `culprits` are (numbers as in the tree) come first and stand out.
    """
    aside = _set_aside(tree, style)
    room = max(budget - len(aside) - 1, 4)
    aside += _task_lines(tree, style, _MOST_OF_TASKS)
    drawn: List[_Line] = []
    for limits, whole in (*((limits, True) for limits in _TIGHTER), (_TIGHTER[-1], False)):
        drawn = list(_Drawing(limits, style, culprits, whole).fork(tree.roots))
        if len(drawn) <= room:
            return _laid_out(drawn, tree.counts, style, culprits) + aside
    hidden = drawn[room - 1 :]
    branches = sum(1 for line in hidden if line.ranks)
    more = counted(branches, "more branch", "more branches") if branches else counted(len(hidden), "more line")
    ending = f"{style.ellipsis} {more}"
    return [*_laid_out(drawn[: room - 1], tree.counts, style, culprits), ending, *aside]


class _Drawing:
    """One pass over a tree. Forks are followed by recursion (at most DEEPEST_FORK), runs by a loop."""

    def __init__(
        self, limits: _Limits, style: Style, culprits: FrozenSet[int] = frozenset(), whole: bool = False
    ) -> None:
        """`whole`: leave out nothing of what culprits do in the user's code."""
        self._limits = limits
        self._culprits = culprits
        self._whole = culprits if whole else frozenset()
        self._mark = style.ellipsis
        self._glyphs = ("├─ ", "└─ ", "│  ", "   ") if style.unicode else ("|- ", "`- ", "|  ", "   ")

    def fork(self, nodes: Sequence[TreeNode], stem: str = "", depth: int = 0) -> Iterator[_Line]:
        """The branches: those of culprits, then those of few ranks, for whoever differs is what one looks for."""
        tee, corner, bar, blank = self._glyphs if depth else ("", "", "", "")
        ordered = sorted(nodes, key=lambda node: (not self._culprits.issuperset(node.ranks), len(node.ranks)))
        limit = self._limits.branches
        shown = len(ordered) if len(ordered) <= limit else limit - 1
        for position, node in enumerate(ordered[:shown], 1):
            last = position == len(ordered)
            yield from self._run(node, stem + (corner if last else tee), stem + (blank if last else bar), depth)
        hidden = ordered[shown:]
        if hidden:
            ranks = tuple(sorted({rank for node in hidden for rank in node.ranks}))
            yield self._left_out(stem + corner, counted(len(hidden), "more branch", "more branches"), ranks)

    def _run(self, node: TreeNode, first: str, stem: str, depth: int) -> Iterator[_Line]:
        """Calls one below the other until the ways part, then the branches."""
        nodes = [node]
        while len(nodes[-1].children) == 1:
            nodes.append(nodes[-1].children[0])
        inner = nodes[-1].children
        prefix, threads = first, 0
        ranks: Tuple[int, ...] = ()
        for part in _abridged(_merge_repeated_calls(nodes), self._limits.calls, self._whole):
            if isinstance(part, int):
                yield self._left_out(prefix, counted(part, "call"))
            else:
                top = part[0]
                assert isinstance(top, TreeNode)
                changed = top.ranks if top.ranks != ranks else ()
                yield _Line(prefix, part, changed, 0 if top.threads in (threads, len(top.ranks)) else top.threads)
                ranks, threads = top.ranks, top.threads
            prefix = stem
        if inner and depth == DEEPEST_FORK:
            yield self._left_out(stem, counted(len(inner), "deeper branch", "deeper branches"))
        elif inner:
            yield from self.fork(inner, stem, depth + 1)

    def _left_out(self, prefix: str, what: str, ranks: Tuple[int, ...] = ()) -> _Line:
        return _Line(prefix, f"{self._mark} {what}", ranks)


def _merge_repeated_calls(calls: Sequence[_Call]) -> List[_Part]:
    """Equal calls in a row counted: recursion, and the frames of a driver without symbols."""

    def same(call: _Call) -> Tuple[object, ...]:
        return call.function, call.module, call.language, getattr(call, "ranks", None)

    groups = (list(group) for _, group in groupby(calls, key=same))
    return [(group[0], len(group)) for group in groups]


def _abridged(parts: Sequence[_Part], limit: int, whole: FrozenSet[int]) -> List[Union[_Part, int]]:
    """At most `limit` parts; the number of calls left out stands in place of the middle. Inner calls say more, but
    those of the driver and the C library, innermost of all, say least: they go first. What `whole` ranks do in the
    user's own code stays."""
    if len(parts) <= limit:
        return list(parts)
    telling = len(parts)
    while telling > 1 and _says_little(parts[telling - 1][0]):
        telling -= 1
    bottom = [_calls(parts[telling:])] if len(parts) - telling > 1 and limit > 3 else []
    inner = len(parts) - telling if bottom else 0
    kept = parts[: len(parts) - inner]
    limit -= len(bottom)
    if len(kept) <= limit:
        return [*kept, *bottom]
    head = max(1, limit // 4)
    tail = max(limit - head - 1, 1)
    middle = kept[head : len(kept) - tail]
    return [*kept[:head], *_omit_parts(middle, whole), *kept[len(kept) - tail :], *bottom]


def _omit_parts(parts: Sequence[_Part], whole: FrozenSet[int]) -> Iterator[Union[_Part, int]]:
    """How many calls are left out, and between them the innermost of the user's own."""
    own = [number for number, (call, _) in enumerate(parts) if _is_of_user(call, whole)][-_MOST_OF_USER:]
    for stays, some in groupby(enumerate(parts), key=lambda item: item[0] in own):
        group = [part for _, part in some]
        if stays:
            yield from group
        else:
            yield _calls(group)


def _is_of_user(call: _Call, whole: FrozenSet[int]) -> bool:
    """The same, of such ranks only."""
    ranks = getattr(call, "ranks", ())
    return bool(ranks) and whole.issuperset(ranks) and is_of_user(call)


def is_of_user(call: _Call) -> bool:
    """A call with a source line outside of installed libraries and the C library, whose files have no folder."""
    if not call.line or _INSTALLED.search(call.file or "<"):
        return False
    return not (_C_LIBRARY.search(call.module or "") or _C_FILE.search(call.file or ""))


def _calls(parts: Sequence[_Part]) -> int:
    return sum(times for _, times in parts)


def _says_little(call: _Call) -> bool:
    """A call without a name, or one in the C library or the kernel's part of the process, which has no file."""
    return call.function in (None, *_VDSO) or bool(_C_LIBRARY.search(call.module or ""))


def _laid_out(
    lines: Sequence[_Line],
    counts: str,
    style: Style,
    culprits: FrozenSet[int] = frozenset(),
    title: str = "outermost call first",
    unit: str = "thread",
) -> List[str]:
    """The ranks on the left, the calls on the right, cut to the width. `unit`: what is counted where more than one of
    them stands in a call."""
    first = 1 if counts == "process" else 0  # processes of a text are counted from 1, as in its sentences
    sets = [rank_set([number + first for number in line.ranks], style, _RANKS_WIDTH) for line in lines]
    numbers = {"rank": "ranks", "process": "processes"}.get(counts, clean(counts, style))
    left = max([len(numbers), *map(len, sets)]) + 2
    header = style.paint(numbers.ljust(left) + title, "dim")
    room = style.width - left
    texts = [header]
    for line, ranks in zip(lines, sets):
        accent = "bad" if culprits.issuperset(line.ranks) else "strong"
        texts.append(style.paint(ranks, accent) + " " * (left - len(ranks)) + _line_text(line, room, style, unit))
    return texts


def _line_text(line: _Line, room: int, style: Style, unit: str) -> str:
    prefix = line.prefix
    if len(prefix) > room // 2:  # so deep that the calls would have no room left
        prefix = style.ellipsis + prefix[len(prefix) - room // 2 :]
    space = max(room - len(prefix), 12)
    if isinstance(line.part, str):
        body = style.paint(shorten(line.part, space, style), "dim")
    else:
        note = f"  {counted(line.threads, unit)}" if line.threads else ""
        body = call_text(line.part, max(space - len(note), 12), style) + style.paint(note, "dim")
    return style.paint(prefix, "dim") + body


def call_text(part: _Part, room: int, style: Style) -> str:
    """`5 x ?? (libcuda.so.1)`, `forward  model.py:41`."""
    call, times = part
    name = function_name(call.function, style)
    place = place_of(call.file, call.line, call.module, style)
    repeated = f"{times:,} {style.times} " if times > 1 else ""
    text = shorten_located(name_with_place(name, place), room - len(repeated), style)
    shown, gap, where = text.partition("  ")
    accent = "python" if call.language == "python" else "dim" if name == NAMELESS else ""
    return style.paint(repeated, "dim") + style.paint(shown, accent) + gap + style.paint(where, "dim")


def _set_aside(tree: StackTree, style: Style) -> List[str]:
    """Helper threads in one line, the most frequent kind first."""
    kinds = sorted(tree.folded.items(), key=lambda item: (-item[1], item[0]))
    if not kinds:
        return []
    text = ", ".join(f"{number:,} {_kind_with_count(clean(kind, style), number)}" for kind, number in kinds)
    lines = wrapped(f"Background threads omitted: {text}", style, indent="  ", first="", most=2)
    return [style.paint(line, "dim") for line in lines]


def _kind_with_count(kind: str, number: int) -> str:
    """`6 NCCL proxy threads`, `1 compile worker`, `3 waiting for work`."""
    if kind.partition(" ")[0] == "waiting":
        return kind
    if kind.endswith(("worker", "workers", "thread", "threads")):
        return kind.rstrip("s") + ("" if number == 1 else "s")
    return f"{kind[:-1] if kind.endswith('events') else kind} {'thread' if number == 1 else 'threads'}"


def thread_lines(thread: ThreadStack, style: Style) -> List[str]:
    """The frames of one thread, innermost first, numbered as they were read."""
    lines = [thread_title(thread, style)]
    number = 0
    for part in _merge_repeated_calls(thread.frames)[:MOST_LINES]:
        lead = f"#{number}".ljust(5)
        lines.append(style.paint(lead, "dim") + call_text(part, style.width - len(lead), style))
        number += part[1]
    if number < len(thread.frames):
        lines.append(f"{style.ellipsis} {counted(len(thread.frames) - number, 'more frame')}")
    for problem in (thread.truncated, *thread.problems):
        if problem:
            lines += wrapped(clean(problem, style), style, indent="     ", most=2)
    return lines


def thread_title(thread: ThreadStack, style: Style) -> str:
    """`Thread 2.1  python  holds the GIL`."""
    title = [f"Thread {clean(thread.id, style)}", clean(thread.name, style), "holds the GIL" if thread.gil else ""]
    return style.paint(shorten("  ".join(filter(None, title)), style.width, style), "strong")


RENDERERS: Mapping[type, Callable[..., List[str]]] = {StackTree: tree_lines, ThreadStack: thread_lines}
