"""Threads and their frames, as one stop saw them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple, Union

from gdbext.model.missing import Missing

UNREAD = "not read without a stop"
"""How `ThreadStack.truncated` ends where a look that stops nobody could not see the frames: the thread ran."""

OUTLINE = "not read, only what /proc says of it"
"""How it ends where nothing but names, states and counters of the process was within reach."""

LANGUAGES = ("native", "python")

Captured = Union[int, str, Missing]
"""The value of a captured argument or local: numbers and pointers as int, C strings as str."""


@dataclass(frozen=True)
class Frame:
    """One call. `function` is demangled and without its argument list; None for code without a name (`?? ()`)."""

    function: Optional[str]
    module: Optional[str] = None  # path of the object file the code lies in; None when unknown (JIT, corrupt)
    pc: Optional[int] = None
    file: Optional[str] = None
    line: Optional[int] = None
    language: str = "native"  # one of `LANGUAGES`
    inlined: bool = False
    captures: Mapping[str, Captured] = field(default_factory=dict)
    module_offset: Optional[int] = None  # pc relative to the load address, for addr2line on a stripped object
    sp: Optional[int] = None  # stack pointer in this frame: what lies above belongs to it and to its callers

    @property
    def library(self) -> Optional[str]:
        """File name of the module without its folder, e.g. `libcuda.so.1`."""
        return self.module.rsplit("/", 1)[-1] if self.module else None


@dataclass(frozen=True)
class ThreadStack:
    """One thread: frames innermost first, and what the kernel says of it."""

    id: str  # as the source prints it: gdb thread number, LWP, or py-spy's id
    frames: Tuple[Frame, ...]
    lwp: Optional[int] = None
    name: Optional[str] = None
    state: Optional[str] = None  # letter of /proc/PID/task/TID/stat: R, S, D, T, ...
    cpu: Optional[float] = None  # CPU used between two looks, as a fraction of one core; None when looked at once
    wchan: Optional[str] = None  # kernel function it sleeps in, where readable
    syscall: Optional[Tuple[int, ...]] = None  # number and arguments of the system call it is blocked in
    truncated: Optional[str] = None  # why frames are missing at the outer end; None when the walk was complete
    gil: Optional[bool] = None  # holds Python's global interpreter lock; None when unknown
    problems: Tuple[str, ...] = ()
    sleeps: Optional[float] = None  # seconds after which the sleep that it asked for ends by itself
    # What a second look shortly after the first showed; None when there was none.
    still: Optional[int] = None  # this frame and all outer ones are the same calls, not a byte of them changed
    switches: Optional[int] = None  # how often it went to sleep or was preempted in between
    left: Optional[int] = None  # so many of its calls, from the innermost one, have returned in between
    turns: Tuple[int, ...] = ()  # switches so far, before the look and after its last stop: two looks, two such pairs

    @property
    def unread(self) -> bool:
        """It ran while nobody was stopped, or could not be reached: nothing is known of what it does."""
        return not self.frames and (self.truncated or "").endswith((UNREAD, OUTLINE))

    @property
    def outlined(self) -> bool:
        """Nothing but what /proc says to everybody is known of it."""
        return self.unread and (self.truncated or "").endswith(OUTLINE)
