"""The loops that threads are in, by the text of their Python functions.

Who sleeps in a loop that has no way out (`while True` without break, return, raise or exit) does not wait there for
something to come true: it is a main thread that keeps its process up, a scheduler, a heartbeat. Who waits for a message
outside of any loop wants this one alone, and no other after it: so does no server.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from functools import lru_cache
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.untimed_calls import has_no_limit
from gdbext.model.codes import Code, LoopKind
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame, LoopInText, ThreadStack
from gdbext.model.text.patterns import regex
from gdbext.safe_open.files import stream

_MOST_THREADS, _MOST_FRAMES, _MOST_FILES = 64, 32, 16
_LARGEST, _LONGEST_LINE = (256 if sys.version_info >= (3, 11) else 32) << 10, 4 << 10
"""Bytes. Parsers of older Pythons are not safe from texts that nest deeply (ast.parse)."""
_Loop = Union[ast.While, ast.For, ast.AsyncFor]
_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_WAYS_OUT = (ast.Return, ast.Raise, ast.Assert, ast.Yield, ast.YieldFrom)
_ENDS = ("exit", "_exit", "quit", "abort", "execv", "execve", "execvp", "next")  # `next` ends by StopIteration
_COUNTS = ("count", "cycle")  # of itertools
_BY_SIGNALS = {"KeyboardInterrupt", "SystemExit"}
_FROZEN = regex(r"<frozen ")
_STARTS = regex(r"(\w+\.)?_bootstrap$"), regex(r"(^|/)multiprocessing/process\.py$")
_OF_ANYTHING = {*_BY_SIGNALS, "Exception", "BaseException"}


class _Found(NamedTuple):
    loop: _Loop
    handlers: Tuple[ast.ExceptHandler, ...]  # around it, in the same function

    @property
    def kind(self) -> Optional[LoopKind]:
        """None for one that may end by more than a signal. Into a sleep alone no other exception comes."""
        sleeps = _only_sleeps(self.loop)
        caught = any(not _names(handler) <= _OF_ANYTHING for handler in self.handlers)
        ends = (caught and not sleeps) or not _goes_on(self.loop) or any(_leaves(one, False) for one in self.loop.body)
        return None if ends else LoopKind.SLEEPS if sleeps else LoopKind.ENDLESS


def loops_in_text(
    proc: ProcFS, pid: int, stacks: Sequence[ThreadStack], peers: Sequence[Peer]
) -> Tuple[LoopInText, ...]:
    """Endless loops of those threads that sleep, or wait for changes of files; and whether the main thread is in no
    loop, where it waits without a limit. A file that has changed since the process began, or that cannot be read or
    parsed, says nothing."""
    files = _Files(proc, pid)
    watching = {peer.thread for peer in peers if _waits_for_changes(peer)}
    found: List[LoopInText] = []
    for stack in stacks:
        rests = stack.sleeps is not None or stack.lwp in watching
        waits = stack.lwp == pid and has_no_limit(stack.syscall)
        if stack.lwp is None or not (rests or waits) or len(found) == _MOST_THREADS:
            continue
        try:
            kind = files.kind_of_loop(stack.calls)
        except RecursionError:  # a text that nests deeply
            continue
        if kind is not None and (waits or kind is not LoopKind.NONE):
            found.append(LoopInText(stack.lwp, kind))
    return tuple(found)


def _waits_for_changes(peer: Peer) -> bool:
    return isinstance(peer.processes, Missing) and peer.processes.code == Code.CHANGES


class _Files:
    """The parsed files of a process."""

    def __init__(self, proc: ProcFS, pid: int) -> None:
        self._root, self._began = f"{proc.root}/{pid}/root", _began(proc, pid)
        self._trees: Dict[str, Optional[ast.Module]] = {}

    def kind_of_loop(self, frames: Sequence[Frame]) -> Optional[LoopKind]:
        """Of the calls, in the first function that is in a loop; None where that may end, or a text is not known."""
        calls = [frame for frame in frames if frame.language == "python" and not _FROZEN.match(frame.file or "")]
        for frame in calls[:_MOST_FRAMES]:
            tree = self._tree(frame.file or "")
            if tree is None or frame.line is None:
                return None
            found = _innermost_loop(tree, frame.line)
            if found is not None:
                return found.kind
            if frame.is_in(*_STARTS):  # what lies further out in a forked process its parent was in
                return LoopKind.NONE
        return LoopKind.NONE if 0 < len(calls) <= _MOST_FRAMES else None

    def _tree(self, path: str) -> Optional[ast.Module]:
        if path not in self._trees:
            known = path.startswith("/") and len(self._trees) < _MOST_FILES
            self._trees[path] = self._parsed(path) if known else None
        return self._trees[path]

    def _parsed(self, path: str) -> Optional[ast.Module]:
        try:
            with stream(self._root + path, most=_LARGEST) as file:
                changed, data = os.fstat(file.fileno()).st_mtime, file.read(_LARGEST + 1)
            if changed > self._began or len(data) > _LARGEST or max(map(len, data.split(b"\n"))) > _LONGEST_LINE:
                return None
            return _parse(data)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None


@lru_cache(maxsize=24)
def _parse(data: bytes) -> ast.Module:
    """Ranks have the same files, and so have the looks at them."""
    return ast.parse(data)


def _began(proc: ProcFS, pid: int) -> float:
    """When the process was started, in seconds since the epoch; 0.0 where nobody knows."""
    stat = proc.stat(pid)
    if isinstance(stat, Missing):
        return 0.0
    since_boot = stat.start_time / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot


def _innermost_loop(tree: ast.Module, line: int) -> Optional[_Found]:
    """Of the innermost function that a line stands in, and the handlers of exceptions around that loop."""
    node: Optional[ast.AST] = tree
    found: Optional[_Found] = None
    handlers: Tuple[ast.ExceptHandler, ...] = ()
    while node is not None:
        node = next((one for one in _with_lines(node) if _holds(one, line)), None)
        if isinstance(node, _SCOPES):
            found, handlers = None, ()
        elif isinstance(node, ast.Try) and _in_body(node, line):
            handlers = (*handlers, *node.handlers)
        elif isinstance(node, _LOOPS) and _in_body(node, line):
            found = _Found(node, handlers)
    return found


def _with_lines(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a part of the text; a `case` has no lines of its own."""
    for one in ast.iter_child_nodes(node):
        if hasattr(one, "lineno"):
            yield one
        else:
            yield from _with_lines(one)


def _holds(node: ast.AST, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or node.lineno))  # type: ignore[attr-defined]


def _in_body(node: Union[_Loop, ast.Try], line: int) -> bool:
    return line <= (node.body[-1].end_lineno or 0)


def _goes_on(loop: _Loop) -> bool:
    if isinstance(loop, ast.While):
        return isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return isinstance(loop.iter, ast.Call) and _called(loop.iter) in _COUNTS


def _leaves(node: ast.AST, inner: bool) -> bool:
    """Whether a part of a loop may end it. `inner`: it is in a loop in there, the end of which is not meant."""
    if isinstance(node, _SCOPES) or (isinstance(node, ast.ExceptHandler) and _names(node) & _BY_SIGNALS):
        return False
    if isinstance(node, _WAYS_OUT) or (isinstance(node, ast.Break) and not inner):
        return True
    if isinstance(node, ast.Call) and _called(node) in _ENDS:
        return True
    return any(_leaves(one, inner or isinstance(node, _LOOPS)) for one in ast.iter_child_nodes(node))


def _only_sleeps(loop: _Loop) -> bool:
    """Whether all that it does is to sleep."""
    parts = [one for statement in loop.body for one in ast.walk(statement)]
    calls = [_called(one) for one in parts if isinstance(one, ast.Call)]
    return calls == ["sleep"] * len(calls) and not any(isinstance(one, (ast.Assign, ast.AugAssign)) for one in parts)


def _called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _names(handler: ast.ExceptHandler) -> Set[str]:
    """The exceptions that it is for; of one for all: `BaseException`."""
    if handler.type is None:
        return {"BaseException"}
    return {
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in ast.walk(handler.type)
        if isinstance(one, (ast.Attribute, ast.Name))
    }
