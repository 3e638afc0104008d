"""The one walk over threads and frames: live processes and core files, gdb's objects in, plain data out."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import gdb

from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.modules import Modules
from gdbext.inside_gdb.base.selected_frame import register
from gdbext.inside_gdb.base.values import read_variable
from gdbext.knowledge.frames import RULES
from gdbext.knowledge.row_kinds import FrameRule
from gdbext.knowledge.runtimes.telling_libraries import WAITING
from gdbext.model.codes import StackEnd
from gdbext.model.stack import Captured, Frame, ThreadStack
from gdbext.model.text.function_names import bare_name

_NOT_WALKED = "not walked: "
_COMPLETE = (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST, gdb.FRAME_UNWIND_NULL_ID)


@dataclass(frozen=True)
class Budget:
    """What one walk over one process may cost."""

    seconds: float = 2.0
    frames: int = 256  # per thread; the innermost are kept
    threads: int = 4096


class Walk(NamedTuple):
    """Threads in gdb's order, and what could not be read. Threads over the budget have no frames and say why."""

    threads: Tuple[ThreadStack, ...]
    problems: Tuple[str, ...]


class Captures:
    """Which variables the rules want to see, by function and library."""

    def __init__(self, rules: Sequence[FrameRule] = RULES) -> None:
        self._rules = [
            (re.compile(rule.function), re.compile(rule.module), rule.captures)
            for rule in rules
            if rule.captures and rule.language == "native"
        ]
        self._known: Dict[Tuple[str, str], Tuple[str, ...]] = {}

    def wanted(self, function: Optional[str], library: str) -> Tuple[str, ...]:
        """Names of variables; the union over all rules that match."""
        if function is None:
            return ()
        key = (function, library)
        if key not in self._known:
            names: Dict[str, None] = {}
            for pattern, module, captures in self._rules:
                if pattern.match(function) and module.match(library):
                    names.update(dict.fromkeys(captures))
            self._known[key] = tuple(names)
        return self._known[key]


class _Place(NamedTuple):
    """What is the same for every frame at one pc."""

    function: Optional[str]
    module: Optional[str]
    module_offset: Optional[int]
    file: Optional[str]
    line: Optional[int]


class _End(NamedTuple):
    """Why frames of a thread are missing; no text where none are."""

    text: Optional[str] = None
    code: StackEnd = StackEnd.OTHER


_WHOLE = _End()


class Walker:
    """Walks the threads of one address space."""

    def __init__(self, modules: Modules, budget: Budget, captures: Captures, identify: Callable[..., str]) -> None:
        self._modules = modules
        self._budget = budget
        self._captures = captures
        self._identify = identify
        self._places: Dict[Tuple[int, int, bool], _Place] = {}
        self._deadline = time.monotonic() + budget.seconds

    def walk(self, inferior: gdb.Inferior) -> Walk:
        """All threads of the inferior. The selection comes back; a Ctrl-C is passed on."""
        with compat.inferior_selected(inferior):
            threads = sorted(inferior.threads(), key=lambda thread: thread.num)
            stacks: Dict[int, ThreadStack] = {}
            skipped: Dict[str, int] = {}
            for position, thread in enumerate(self._by_interest(threads, inferior.pid)):
                reason = self._over_budget(position)
                stacks[thread.num] = self._unwalked(thread, reason) if reason else self._stack(thread)
                if reason:
                    skipped[reason] = skipped.get(reason, 0) + 1
        problems = tuple(f"{count} of {len(threads)} threads not walked: {why}" for why, count in skipped.items())
        return Walk(tuple(stacks[thread.num] for thread in threads), problems)

    def one(self, thread: gdb.InferiorThread) -> ThreadStack:
        """The stack of one thread alone. The selection comes back."""
        with compat.kept_selection():
            return self._stack(thread)

    def _over_budget(self, position: int) -> Optional[str]:
        if position >= self._budget.threads:
            return f"limit of {self._budget.threads} threads"
        if time.monotonic() > self._deadline:
            return f"limit of {self._budget.seconds:g} s"
        return None

    def _by_interest(self, threads: List[gdb.InferiorThread], pid: int) -> List[gdb.InferiorThread]:
        """The main thread, then those outside of libc, then the rest: a small budget should see what matters."""
        return sorted(threads, key=lambda thread: (thread.ptid[1] != pid, self._is_waiting(thread), thread.num))

    def _is_waiting(self, thread: gdb.InferiorThread) -> bool:
        if time.monotonic() > self._deadline:
            return True
        try:
            thread.switch()
            module = self._modules.find(gdb.newest_frame().pc())[0] or ""
        except gdb.error:
            return True
        return bool(WAITING.match(module.rsplit("/", 1)[-1]))

    def _unwalked(self, thread: gdb.InferiorThread, reason: str) -> ThreadStack:
        problem, lwp = _NOT_WALKED + reason, thread.ptid[1] or None
        return ThreadStack(id=self._identify(thread), frames=(), lwp=lwp, truncated=problem, end=StackEnd.NOT_WALKED)

    def _stack(self, thread: gdb.InferiorThread) -> ThreadStack:
        frames: List[Frame] = []
        problems: List[str] = []
        end: _End = _WHOLE
        name: Optional[str] = None
        try:
            name = compat.thread_name(thread)
            thread.switch()
            end = self._frames_into(frames, problems)
        except gdb.error as error:  # running, gone, or its memory is: what was read stays
            end = _End(_one_line(error))
        return ThreadStack(
            id=self._identify(thread),
            frames=tuple(frames),
            lwp=thread.ptid[1] or None,
            name=name,
            truncated=end.text,
            problems=tuple(dict.fromkeys(problems)),
            end=end.code,
        )

    def _frames_into(self, frames: List[Frame], problems: List[str]) -> _End:
        """Append the frames of the selected thread, innermost first; returns why outer ones are missing."""
        frame: Optional[gdb.Frame] = gdb.newest_frame()
        last, inlined = -1, 0
        while frame is not None:
            if len(frames) >= self._budget.frames:
                return _End(f"limit of {self._budget.frames} frames")
            if time.monotonic() > self._deadline:
                return _End(f"limit of {self._budget.seconds:g} s")
            pc = frame.pc()
            inlined = inlined + 1 if pc == last else 0
            last = pc
            frames.append(self._plain(frame, (pc, inlined, len(frames) == inlined), problems))
            older = frame.older()
            if older is None:
                reason = frame.unwind_stop_reason()
                if reason in _COMPLETE:
                    return _WHOLE
                code = StackEnd.MEMORY if reason == gdb.FRAME_UNWIND_MEMORY_ERROR else StackEnd.OTHER
                return _End(gdb.frame_stop_reason_string(reason), code)
            frame = older
        return _WHOLE

    def _plain(self, frame: gdb.Frame, key: Tuple[int, int, bool], problems: List[str]) -> Frame:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._look_up(frame, key[0], problems)
        wanted = self._captures.wanted(place.function, (place.module or "").rsplit("/", 1)[-1])
        captures: Mapping[str, Captured] = {name: read_variable(frame, name) for name in wanted}
        return Frame(
            place.function,
            module=place.module,
            pc=key[0],
            file=place.file,
            line=place.line,
            inlined=frame.type() == gdb.INLINE_FRAME,
            captures=captures,
            module_offset=place.module_offset,
            sp=register(frame, "sp"),
        )

    def _look_up(self, frame: gdb.Frame, pc: int, problems: List[str]) -> _Place:
        module, offset = self._modules.find(pc)
        if module is None:
            module = gdb.solib_name(pc)  # a remote target, whose map we cannot see
        function = file = line = None
        try:
            name = frame.name()
            function = bare_name(name) if name else None
            file, line = _own_line(frame, pc)
        except (gdb.error, RuntimeError, UnicodeError) as error:  # damaged debug information
            problems.append(f"symbols of {module or hex(pc)}: {_one_line(error)}")
        return _Place(function, module, offset, file, line)


def _own_line(frame: gdb.Frame, pc: int) -> Tuple[Optional[str], Optional[int]]:
    """File and line of the frame's own function.

    Optimised code has lines of inlined callees where the debug information does not say that they are inlined: there it
    is the last line before that the line table has for the function's own file.
    """
    sal, function = frame.find_sal(), frame.function()
    if sal.symtab is None:
        return None, None
    if function is None or not function.line or frame.type() != gdb.NORMAL_FRAME:
        return sal.symtab.filename, sal.line or None
    if sal.symtab.filename == function.symtab.filename and (not sal.line or sal.line >= function.line):
        return sal.symtab.filename, sal.line or None
    block = frame.block()
    while block.function is None and block.superblock is not None:
        block = block.superblock
    last = pc if frame.newer() is None else pc - 1  # further out it is where the call returns to
    own = [(entry.pc, entry.line) for entry in function.symtab.linetable() if block.start <= entry.pc <= last]
    lines = [line for _, line in sorted(own) if line >= function.line]
    return function.symtab.filename, lines[-1] if lines else function.line


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def modules_of(inferior: gdb.Inferior, is_core: bool) -> Modules:
    """The object files of a process, or of what a core file was written of."""
    return Modules.of_core(compat.core_path(inferior) or "") if is_core else Modules.of_process(inferior.pid)


def by_lwp(thread: gdb.InferiorThread) -> str:
    """Ids for snapshots that outlive this gdb."""
    return str(thread.ptid[1])


def by_number(thread: gdb.InferiorThread) -> str:
    """Ids as gdb prints them: `3`, or `2.3` when there are several inferiors."""
    if len(gdb.inferiors()) == 1 and thread.inferior.num == 1:
        return str(thread.num)
    return f"{thread.inferior.num}.{thread.num}"
