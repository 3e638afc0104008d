"""What the rest of the program asks of a machine. An architecture is one folder beside this file that answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from gdbext.model.missing import Maybe, Missing

Read = Callable[[int, int], Optional[bytes]]
"""(address, size) -> exactly that many bytes of memory, or None."""


# --- what the kernel and the libraries lay down ---


@dataclass(frozen=True)
class CallRegisters:
    """Which words of the register set tell the system call that a thread is in (syscall(2))."""

    number: int
    arguments: Tuple[int, ...]
    result: int
    negative_outside: bool  # the number, where a stopped thread is in no call; else nobody knows by these words
    restart: int  # number of restart_syscall(2), by which the kernel goes on with a call that a stop broke off
    pc_too: Optional[int] = None  # the system call instruction leaves the pc here as well


@dataclass(frozen=True)
class UnwindRegisters:
    """The numbers of registers in DWARF's unwind rules, and how the frame pointer lies."""

    frame: int
    stack: int
    return_address: int
    below_frame: int  # where a call puts the return address, from the frame's canonical address
    alignment: int  # of a frame pointer, bytes
    frame_word: int  # of the frame pointer in the register set


@dataclass(frozen=True)
class GdbRegisters:
    """What gdb calls the registers."""

    arguments: Tuple[str, ...]  # of functions: integers and pointers, in order; further ones are on the stack
    kept: Tuple[str, ...]  # a function gives them back as they were; without the stack pointer
    stack: str
    call_number: str  # of a system call; negative outside of one
    call_arguments: Tuple[str, ...]
    call_result: str
    thread_pointer: str


@dataclass(frozen=True)
class TimerCalls:
    """The numbers of timer_create(2) and its like: libc's own functions of the name are not called by number."""

    create: int
    settime: int
    delete: int


@dataclass(frozen=True)
class Architecture:
    """Where things lie in what the kernel hands out. Indexes count 64-bit words of the NT_PRSTATUS register set. What
    is None is not known of this machine, and what needs it is left out there."""

    name: str  # as uname(2) says
    e_machine: int  # elf.h
    registers: int  # words
    sp: int
    pc: int
    thread_pointer: Optional[int]  # where libc keeps a thread's descriptor, at the upper end of its stack
    signal_sp: int  # words from uc_stack.ss_sp to the interrupted sp in the ucontext of a signal frame
    red_zone: int  # bytes below sp that a leaf function may use
    call: CallRegisters
    fixed: Tuple[Tuple[int, int], ...] = ()  # words that are the same in every 64-bit program, and their values
    address_bits: int = 64  # of addresses that a program may have
    glibc_tid: Optional[int] = None  # where glibc's descriptor of a thread has the kernel's id of it
    unwind: Optional[UnwindRegisters] = None
    gdb: Optional[GdbRegisters] = None
    timers: Optional[TimerCalls] = None
    system_calls: Mapping[int, int] = field(default_factory=dict, compare=False)
    """The model's number (knowledge/runtimes/system_calls.py) by the machine's own; empty where they are the same."""

    def call_number(self, number: int) -> Optional[int]:
        """The number of a system call as the model has it; None for one that has none there."""
        return self.system_calls.get(number) if self.system_calls else number


# --- what code says ---


class ThrowSite(NamedTuple):
    """One call. `typeinfo` is where the thrown type's typeinfo lies (or, when `indirect`, where its address stands)."""

    address: int  # of the call, as linked
    typeinfo: Optional[int] = None  # as linked; None when the code before the call does not show it
    indirect: bool = False


class CodePiece(NamedTuple):
    """The code of a section, and where it lies as linked."""

    address: int
    data: bytes


@dataclass(frozen=True)
class Code:
    """Readers of machine code as bytes."""

    room_below_frame: Callable[[bytes], Optional[int]]
    """Bytes between sp and the frame pointer once the locals have their room, by a function's first instructions."""
    calls: Callable[[int, int, Read], bool]
    """(return address, function) -> whether what stands before the one calls the other, by itself or by pointer."""
    constants_before: Callable[[bytes, int], Dict[int, int]]
    """(code, its end behind a call) -> by number of the argument, the last constant that is loaded for it."""
    addresses_before: Callable[[bytes, int], Iterator[int]]
    """(code, its end) -> every address that an instruction of it computes."""
    throw_sites: Callable[[Sequence[CodePiece], Set[int], Set[int]], List[ThrowSite]]
    """(code of a file, words that hold the address of __cxa_throw, its own addresses) -> the calls of it."""


# --- what a disassembler prints ---


class Instruction(NamedTuple):
    """One instruction, as `disassemble` prints it."""

    address: int
    text: str


class Kept(NamedTuple):
    """A register of the calling frame; then, for each offset, what lies in memory there; to that `plus` is added."""

    register: str
    offsets: Tuple[int, ...] = ()
    plus: int = 0


class Constant(NamedTuple):
    """A number that the code has in itself."""

    value: int


Operand = Union[Kept, Constant, Missing]


@dataclass(frozen=True)
class Disassembly:
    """Readers of the text that gdb prints of code while these settings of it hold."""

    settings: Mapping[str, str]

    argument: Callable[[Sequence[Instruction], str, int], Operand]
    """(code up to a call, its function, number of an argument) -> where its value came from."""
    stored_at: Callable[[Sequence[Instruction]], Maybe[int]]
    """(a member function's code) -> where in its object it stores its first argument, or what it does instead."""
    referred: Callable[[Callable[[int], Iterable[Instruction]], int, Mapping[str, int], Read], Set[int]]
    """(code from an address on, where clean-up code begins, kept registers and sp, memory) -> what it refers to."""
