"""Who may hold what a thread waits for, where nothing shows the holder: the least sure edges of locks."""

from __future__ import annotations

import functools
from typing import Dict, List, Optional, Sequence

from gdbext.analysis.stacks.frame_facts import Known
from gdbext.analysis.stacks.thread_kind import known_frames
from gdbext.analysis.view.job_view import Party, threads_of
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges.other_frames import in_profiler
from gdbext.analysis.waits.thread_numbers import deciding_function
from gdbext.knowledge.causes.held_by_frames import BREAKS_IN, INSIDE_LOCKS, LET_GO_IN, LOOPS, NAME_ENDINGS
from gdbext.knowledge.frames.system.checkers import CHECKERS
from gdbext.knowledge.frames.system.code_owners import PYTHON_EXTENSIONS
from gdbext.knowledge.frames.system.libc import JOINS
from gdbext.knowledge.runtimes.glibc_locks import SYMBOL, kind_of_call
from gdbext.model.codes import KERNEL_TEXT, Given
from gdbext.model.locks import KINDS
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.model.waits import JOINS as ENDS
from gdbext.model.waits import Node

_AT_REST = (Given.TEXT, Given.CORE)
_WORKS = ("native-compute", "python-code")
_OF_PYTHON = ("os-join", "os-condvar", "os-futex")
_LOCKS = frozenset(("mutex", "rwlock", "lock"))
"""Arguments of the calls that ask for one."""
_inside, _loop, _let_go, _suffix = map(regex, (INSIDE_LOCKS, LOOPS, LET_GO_IN, NAME_ENDINGS))
_breaks_in = regex(BREAKS_IN)
_extension = regex(PYTHON_EXTENSIONS)
_DEEPEST = 8  # template arguments within template arguments
_arguments = regex(r"<[^<>]*>")


def draw(drawing: Drawing, waiters: Sequence[Party]) -> None:
    """What texts give away of holders, then pairs of threads that wait for locks; else the holder is not known."""
    if drawing.view.given in _AT_REST:
        for index in sorted({party.index for party in waiters}):
            _of_process(drawing, [party for party in waiters if party.index == index])
    _crossed(drawing, [party for party in waiters if party.process.source != KERNEL_TEXT])  # whose locks anybody holds
    for party in waiters:
        node = drawing.known(party)
        for edge in drawing.leaving(node) if node is not None else ():
            if edge.target.kind == "lock" and not drawing.waits(edge.target) and edge.target.state is None:
                holder = drawing.resource("unknown", edge.target.id, "an unknown thread", "external")
                drawing.join(edge.target, holder, "holds", "inferred")


def _of_process(drawing: Drawing, waiters: Sequence[Party]) -> None:
    """Of a process that stands still: each wait below is short while somebody works."""
    others = threads_of(drawing.view, waiters[0].index, lambda one: one.helper is None)
    if any(one.kind in _WORKS or one.judged.running for one in others):
        return
    locks = [party for party in waiters if party.kind == "mutex"]
    for party in locks:
        _joined(drawing, party, others)
    if len(locks) == 1:
        _again(drawing, locks[0])
    for party in waiters:
        if party.kind == "gil" and party.judged.rule not in _OF_PYTHON:  # else an address alone tells of it
            _kept(drawing, party, others)


def _joined(drawing: Drawing, waiter: Party, others: Sequence[Party]) -> None:
    """A thread that waits for the end of another one, called by the object whose lock that one wants."""
    wanted = _wanted(waiter)
    for one in others:
        lock = open_lock(drawing, waiter) if one.judged.rule in JOINS and wanted in _callers(one) else None
        if wanted is not None and lock is not None:
            drawing.join(drawing.of(one), drawing.of(waiter), ENDS, "assumed", drawing.fact(one))
            drawing.join(lock, drawing.of(one), "holds", "assumed")
            return


def _again(drawing: Drawing, party: Party) -> None:
    """A lock that its owner took further out, before it called other code that came back to it. The owner may be one
    function, where an exit or a signal has broken into it."""
    frames = _asking(party)
    wanted = owner_of(frames[0]) if frames else None
    own = owner_of
    if frames and not _is_of_class(frames[0]) and variable_of(party):
        wanted = None  # of a variable that has a name any function of the file may be the user
    if wanted is None and frames and _breaks_in_twice(frames):
        own, wanted = _name, _name(frames[0])
    foreign = False
    for frame in frames[1:]:
        owner = own(frame)
        if foreign and wanted is not None and owner == wanted and not _loop.match(_called(frame)):
            lock = open_lock(drawing, party)
            if lock is not None:
                drawing.join(lock, drawing.of(party), "holds", "assumed")
            return
        foreign = foreign or (owner is not None and owner != wanted)


def _breaks_in_twice(frames: Sequence[Frame]) -> bool:
    """Whether a function is entered again by what an exit, an abort or a signal runs, while it is still at work."""
    names = [frame.function or "" for frame in frames]
    again = next((number for number, name in enumerate(names[1:], 1) if name == names[0]), 0)
    return bool(names[0]) and any(map(_breaks_in.match, names[1:again]))


def _name(frame: Frame) -> Optional[str]:
    return frame.function


def _kept(drawing: Drawing, party: Party, others: Sequence[Party]) -> None:
    """The GIL, where nobody runs Python code: a thread that waits in an extension may have it, else one that was not
    read."""
    node = drawing.of(party)
    gil = next((edge.target for edge in drawing.leaving(node) if edge.kind == "gil"), None)
    runs = any(one.kind == "unknown" or (one.thread is not None and one.thread.gil) for one in others)
    if gil is None or drawing.waits(gil) or gil.state or runs:
        return
    for one in others:
        lock = open_lock(drawing, one) if one.kind == "mutex" else None
        if not _in_extension(one) or (lock is None and (one.kind == "mutex" or drawing.waits(drawing.of(one)))):
            continue
        if lock is not None:
            drawing.join(lock, node, "holds", "assumed")
        else:
            drawing.join(drawing.of(one), node, ENDS, "assumed", drawing.fact(one))
        drawing.join(gil, drawing.of(one), "holds", "assumed")
        return
    if (party.index, id(party.thread)) in drawing.deciding:
        whoever = drawing.resource("thread", f"kept:{gil.id}", "a thread that was not read", "unread")
        drawing.join(gil, whoever, "kept", "assumed")


def _in_extension(party: Party) -> bool:
    """Whether it waits in native code that Python called and that did not say that it lets the GIL go."""
    if party.thread is None or (party.kind != "mutex" and party.judged.rule not in _OF_PYTHON):
        return False
    own = False
    for frame, one in zip(_asking(party), known_frames(_asking(party))):
        if _let_go.match(frame.function or ""):
            return False
        if one.python or _is_interpreter(one):
            return own
        own = own or not one.system
    return own and bool(_extension.match(one.library))  # its outer frames were cut off


def _is_interpreter(one: Known) -> bool:
    return one.vendor and (one.name or "").startswith(("Py", "_Py", "cfunction", "call_function"))


def _asking(party: Party) -> List[Frame]:
    """Frames from the one that asked for what it waits for."""
    if party.thread is None:
        return []
    frames = list(party.thread.calls)
    facts = known_frames(frames)
    number = (party.judged.frame or 0) + 1
    while number < len(frames) and (facts[number].system or _inside.match(frames[number].function or "")):
        number += 1
    return frames[number:]


def _wanted(party: Party) -> Optional[str]:
    frames = _asking(party)
    return owner_of(frames[0]) if frames else None


def _callers(party: Party) -> List[Optional[str]]:
    return [owner_of(frame) for frame in _asking(party)]


@functools.lru_cache(maxsize=4096)
def _scope(function: str) -> str:
    """The class or package of a function: what stands before its last name."""
    name = _suffix.sub("", function)
    for _ in range(_DEEPEST):
        name = _arguments.sub("", name)
    for mark in ("::", "."):
        if mark in name:
            return name.rpartition(mark)[0]
    return ""


def _is_of_class(frame: Frame) -> bool:
    return frame.language != "native" or bool(_scope(frame.function or ""))


def variable_of(party: Party) -> str:
    """The variable that a lock is, as the debugger names it in the call that asks for the lock."""
    asked = next((one.captures for one in party.calls if _LOCKS.intersection(one.captures)), {})
    return str(asked.get(SYMBOL) or "")


def owner_of(frame: Frame) -> Optional[str]:
    """What a function belongs to: its class, or the file that it is written in."""
    return (_scope(frame.function or "") if frame.language == "native" else "") or frame.file


def _called(frame: Frame) -> str:
    return (frame.function or "").replace("::", ".").rpartition(".")[2]


def _crossed(drawing: Drawing, waiters: Sequence[Party]) -> None:
    """Two threads of a process that both wait for locks, its main one among them, may hold what the other one wants.
    Whose stack shows no caller shows no place where it took a lock before."""
    plain: Dict[int, List[Party]] = {}
    for party in waiters:
        looked_at = party.process.source not in CHECKERS  # else it is where a lock was taken, at some time
        if looked_at and party.kind == "mutex" and party.judged.helper is None and _asking(party):
            plain.setdefault(party.index, []).append(party)
    for index, parties in plain.items():
        decides = drawing.view.processes[index].wait.kind == "mutex"
        if len(parties) > 1 and decides and not any(map(in_profiler, parties)):
            for one, other in ((parties[0], parties[1]), (parties[1], parties[0])):
                lock = open_lock(drawing, one)
                if lock is not None:
                    drawing.join(lock, drawing.of(other), "holds", "assumed")


def own_lock(drawing: Drawing, party: Party, node: Node) -> Node:
    """The lock that a thread waits for, of which only the wait is known."""
    call = kind_of_call(deciding_function(party))
    label = call if call in ("mutex", "rwlock", "malloc", "once") else "mutex"
    kind = KINDS[label].split(" ", 1)[-1]
    lock = drawing.resource("lock", node.id, f"{kind} {variable_of(party)}".rstrip())
    drawing.join(node, lock, party.kind, "named", drawing.fact(party))
    return lock


def open_lock(drawing: Drawing, party: Party) -> Optional[Node]:
    """The lock that a thread waits for, where nobody is known to hold it."""
    node = drawing.of(party)
    if not drawing.waits(node) and party.process.locks:
        return None  # memory was read, and shows no wait
    if not drawing.waits(node):
        return own_lock(drawing, party, node)
    lock = drawing.leaving(node)[0].target
    return lock if lock.kind == "lock" and lock.state is None and not drawing.waits(lock) else None


def process_lock_node(drawing: Drawing, party: Party, name: str) -> Node:
    """A lock of which each process has one."""
    return drawing.resource("lock", f"{party.index}:{name}", name)
