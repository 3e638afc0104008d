"""Threads and their frames, as one stop saw them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Mapping, Optional, Pattern, Sequence, Tuple, Union, overload

from gdbext.model.codes import LoopKind, StackEnd
from gdbext.model.missing import Missing

UNREAD = "not read without a stop"
"""Told of what a look that stops nobody could not see, because the thread ran."""

OUTLINE = "not read, only what /proc says of it"
"""Told where nothing but names, states and counters of the process was within reach."""

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

    def is_in(self, function: Pattern[str], file: Pattern[str]) -> bool:
        """Whether `function` matches its function from the beginning, and `file` a part of its file, or of its library
        where no file is known."""
        return bool(function.match(self.function or "") and file.search(self.file or self.library or ""))


Offsets = Tuple[Optional[int], ...]
"""Addresses of a stack's frames as seen from the first that is known; () where none is."""


class Placed(Sequence[Frame]):
    """The frames of one thread: `calls`, one object for all threads with an equal stack, and where they lie for this
    one. A frame is made when it is asked for; of most threads nobody asks.

    Without offsets of its own the calls know where their code lies, and nobody knows where the stack does."""

    __slots__ = ("calls", "pc", "pcs", "sp", "sps")

    def __init__(self, calls: Tuple[Frame, ...], pc: int, pcs: Offsets, sp: int, sps: Offsets) -> None:
        self.calls = calls
        self.pc, self.pcs, self.sp, self.sps = pc, pcs, sp, sps

    def __len__(self) -> int:
        return len(self.calls)

    @overload
    def __getitem__(self, number: int) -> Frame: ...

    @overload
    def __getitem__(self, number: slice) -> Tuple[Frame, ...]: ...

    def __getitem__(self, number: Union[int, slice]) -> Union[Frame, Tuple[Frame, ...]]:
        if isinstance(number, slice):
            return tuple(self[one] for one in range(*number.indices(len(self.calls))))
        call = self.calls[number]
        return Frame(
            call.function,
            call.module,
            _at(self.pc, self.pcs, number) if self.pcs else call.pc,
            call.file,
            call.line,
            call.language,
            call.inlined,
            call.captures,
            call.module_offset,
            _at(self.sp, self.sps, number) if self.sps else None,
        )

    def __iter__(self) -> Iterator[Frame]:
        return map(self.__getitem__, range(len(self.calls)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Placed, tuple)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as frames have none

    def __repr__(self) -> str:
        return repr(tuple(self))


def _at(first: int, offsets: Offsets, number: int) -> Optional[int]:
    offset = offsets[number]
    return None if offset is None else first + offset


def pcs_of(frames: Sequence[Frame]) -> Tuple[int, Offsets]:
    """The addresses of the code: the first that is known, and all as seen from there."""
    if isinstance(frames, Placed):
        return (frames.pc, frames.pcs) if frames.pcs else relative([one.pc for one in frames.calls])
    return relative([one.pc for one in frames])


def sps_of(frames: Sequence[Frame]) -> Tuple[int, Offsets]:
    """The stack pointers, likewise."""
    return (frames.sp, frames.sps) if isinstance(frames, Placed) else relative([one.sp for one in frames])


def relative(addresses: Sequence[Optional[int]]) -> Tuple[int, Offsets]:
    """The first address that is known, and all as seen from there; (0, ()) where none is."""
    first = next((one for one in addresses if one is not None), None)
    if first is None:
        return 0, ()
    return first, tuple(None if one is None else one - first for one in addresses)


@dataclass(frozen=True)
class Loop:
    """A `for` loop of a Python function, known by what it takes its items from."""

    function: str
    iterator: int  # its address, which is the same in two looks as long as the loop lasts
    left: int  # how many items it has still to give


@dataclass(frozen=True)
class LoopInText:
    """What the text of a thread's Python functions says of the loop that they are in."""

    thread: int  # LWP
    kind: LoopKind


@dataclass(frozen=True)
class ThreadStack:
    """One thread: frames innermost first, and what the kernel says of it."""

    id: str  # as the source prints it: gdb thread number, LWP, or py-spy's id
    frames: Sequence[Frame]
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
    end: StackEnd = StackEnd.OTHER  # what of `truncated` other code asks for
    numbers: Tuple[int, ...] = ()  # of the frames, as a text with gaps has them; (): 0, 1, 2 and so on
    lengths: Mapping[str, int] = field(default_factory=dict)  # of containers that are variables, by `function.name`
    marks: Tuple[int, ...] = ()  # one for the local variables of each Python frame, the outermost first; 0: not read
    loops: Tuple[Loop, ...] = ()  # of its own functions, the innermost first

    def number_of(self, frame: int) -> int:
        """What the source calls the frame at this place."""
        return self.numbers[frame] if frame < len(self.numbers) else frame

    @property
    def calls(self) -> Sequence[Frame]:
        """The frames as far as threads share them: where stacks are equal one object, without addresses."""
        return self.frames.calls if isinstance(self.frames, Placed) else self.frames

    @property
    def unread(self) -> bool:
        """It ran while nobody was stopped, or could not be reached: nothing is known of what it does."""
        return not self.frames and self.end in (StackEnd.RAN, StackEnd.OUTLINE)

    @property
    def outlined(self) -> bool:
        """Nothing but what /proc says to everybody is known of it."""
        return self.unread and self.end is StackEnd.OUTLINE
