"""What one copy of a process holds, and what making it may cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, FrozenSet, List, Optional, Tuple

from gdbext.capture.copies.held_note import Note
from gdbext.capture.machine import Architecture
from gdbext.capture.memory.maps import MemoryMap
from gdbext.capture.memory.process_memory import Block, ProcessMemory, Range
from gdbext.model.codes import ReadState

_VDSO_LIMIT = 64 << 10


@dataclass(frozen=True)
class Budget:
    """What a stop may cost. When it is used up, the copy is cut and marked, and the process goes on. Should we not be
    able to let it go by then, the kernel ends us a second later (capture/stop/kill_timer.py)."""

    seconds: float = 2.0  # of standing still, per process
    threads: int = 4096  # further ones are left running
    stack: int = 4 << 20  # bytes per thread
    total: int = 256 << 20  # bytes per process
    note: Optional[Note] = None  # says to the janitor whom we held when we ended


@dataclass(frozen=True)
class ThreadCopy:
    """One thread as it stood. Without `registers` it could not be read: `problem` says why."""

    tid: int
    registers: Tuple[int, ...] = ()  # NT_PRSTATUS words, see machine.Architecture
    pc: int = 0
    sp: int = 0
    signal: int = 0  # was on its way to the thread
    truncated: Optional[str] = None  # why the outer end of the stack is missing
    problem: Optional[str] = None
    stacks: Tuple[Range, ...] = ()  # what of the blocks was copied for it
    ran: bool = False  # that is its problem: it ran, and nobody was stopped


@dataclass(frozen=True)
class ProcessCopy:
    """What one stop of one process brought home. `threads` starts with the main thread."""

    pid: int
    threads: Tuple[ThreadCopy, ...] = ()
    blocks: Tuple[Block, ...] = ()  # stacks and pages; neither touch nor overlap, in address order
    maps: MemoryMap = field(default_factory=lambda: MemoryMap(()))
    auxv: bytes = b""
    exe: str = ""  # as the process sees it
    architecture: Optional[Architecture] = None
    pause_ms: Optional[float] = None  # from the first order to stop to the last release; None when nothing was stopped
    felt_ms: Optional[float] = None  # the longest time that one thread stood still: what a heartbeat in it would see
    was_stopped: bool = False  # it stood in a job-control stop (state T) before, and does so again
    problems: Tuple[str, ...] = ()
    during: Any = None  # what the `during` hook returned
    asleep: FrozenSet[int] = frozenset()  # threads that were left alone and slept until all was read
    woke: FrozenSet[int] = frozenset()  # threads that were left alone and did not

    @property
    def state(self) -> ReadState:
        """PARTIAL: see the problems of the process and of its threads."""
        if not any(thread.registers for thread in self.threads):
            return ReadState.LOST
        whole = not self.problems and not any(thread.problem or thread.truncated for thread in self.threads)
        return ReadState.OK if whole else ReadState.PARTIAL


Hook = Callable[[int], Any]


def read_proc(pid: int, name: str) -> bytes:
    """A file of /proc/PID."""
    with open(f"/proc/{pid}/{name}", "rb") as stream:
        return stream.read()


def vdso_of(pid: int, maps: MemoryMap) -> List[Block]:
    """The kernel's code page: a debugger takes the unwind table of its frames from memory, there is no file."""
    ranges = [(at.start, min(at.end - at.start, _VDSO_LIMIT)) for at in maps if at.path == "[vdso]"]
    data = ProcessMemory(pid).read_many(ranges)
    return [Block(address, code) for (address, _), code in zip(ranges, data) if code]
