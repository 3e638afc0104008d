"""Which threads the kernel holds in a futex call, and the memory around the word that they sleep on.

Read while the process stands still, so that the words of two locks belong to one moment.
"""

from __future__ import annotations

import struct
from typing import Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from gdbext.capture.machine import SMALLEST_PAGE, this_machine
from gdbext.knowledge.runtimes.glibc_locks import COMMAND, LOCKS_OF_KERNEL, PRIVATE, WAITS
from gdbext.knowledge.runtimes.system_calls import FUTEX, RESTART

BEFORE, AFTER = 48, 64
"""Bytes read in front of the word and from it on: it may lie anywhere in its lock."""

_MOST_PAGES = 2048  # further ones are not read: 8 MiB take some milliseconds

ReadMany = Callable[[Sequence[Tuple[int, int]]], Sequence[Optional[bytes]]]


class FutexCall(NamedTuple):
    """One thread in futex(2). `before` and `memory` end and begin at `address`; None where they cannot be read."""

    tid: int
    address: int
    operation: int  # without its flags
    expected: int  # the word had this value when the thread went to sleep
    timed: bool
    private: bool
    before: Optional[bytes] = None
    memory: Optional[bytes] = None

    def word(self, offset: int) -> Optional[int]:
        """The unsigned 32-bit number at `offset` from the word; negative offsets lie in front of it."""
        data, at = (self.before, offset + BEFORE) if offset < 0 else (self.memory, offset)
        if data is None or at < 0 or at + 4 > len(data):
            return None
        return int(struct.unpack_from("<I", data, at)[0])

    @property
    def asleep(self) -> bool:
        """Whether the word still is what the thread went to sleep on; otherwise somebody has let it go meanwhile."""
        return self.operation in LOCKS_OF_KERNEL or self.word(0) == self.expected

    @property
    def woken(self) -> bool:
        """Whether the word was read, and is another one."""
        return self.word(0) is not None and not self.asleep


def futex_call(tid: int, syscall: Optional[Sequence[int]]) -> Optional[FutexCall]:
    """The futex call that a system call (number and six arguments) is, if it is one that waits."""
    if not syscall or syscall[0] not in (FUTEX, RESTART):
        return None
    address, flags, value, timeout = syscall[1:5]
    operation = flags & COMMAND
    if operation not in (*WAITS, *LOCKS_OF_KERNEL) or not address or address % 4:
        return None
    return FutexCall(tid, address, operation, value & 0xFFFFFFFF, bool(timeout), bool(flags & PRIVATE))


class Wanted:
    """The waits of a process, and the pages to read while it stands still: one system call for a thousand of them."""

    def __init__(self, syscalls: Mapping[int, Optional[Sequence[int]]]) -> None:
        found = (futex_call(tid, syscall) for tid, syscall in syscalls.items())
        self._calls = [call for call in found if call is not None]
        pages: Dict[int, None] = {}
        for call in self._calls:
            for address in (call.address - BEFORE, call.address + AFTER - 1):
                if address >= 0:
                    pages[address // SMALLEST_PAGE] = None
        self._pages = list(pages)[:_MOST_PAGES]
        self.ranges = [(page * SMALLEST_PAGE, SMALLEST_PAGE) for page in self._pages]

    def filled(self, data: Sequence[Optional[bytes]]) -> Dict[int, FutexCall]:
        """The waits by thread id, with their memory out of what was read of `ranges`."""
        pages = dict(zip(self._pages, data))
        return {
            call.tid: call._replace(
                before=_cut(pages, call.address - BEFORE, BEFORE), memory=_cut(pages, call.address, AFTER)
            )
            for call in self._calls
        }


def _cut(pages: Mapping[int, Optional[bytes]], address: int, size: int) -> Optional[bytes]:
    first, last = pages.get(address // SMALLEST_PAGE), pages.get((address + size - 1) // SMALLEST_PAGE)
    if first is None:
        return None
    piece = first[address % SMALLEST_PAGE : address % SMALLEST_PAGE + size]
    if len(piece) < size and last is not None:
        piece += last[: size - len(piece)]
    return piece


def freeze(syscalls: Mapping[int, Optional[Sequence[int]]], read_many: ReadMany) -> Dict[int, FutexCall]:
    """The waits of a process that stands still, with their memory."""
    wanted = Wanted(syscalls)
    return wanted.filled(read_many(wanted.ranges))


def syscall_of(registers: Sequence[int]) -> Optional[Tuple[int, ...]]:
    """Number and arguments of the system call that a stopped thread of this machine is in, by its register set."""
    row = this_machine()
    if row is None or not registers or not row.call.negative_outside:
        return None
    number = registers[row.call.number]
    known = None if number >> 63 else row.call_number(number)
    return None if known is None else (known, *(registers[index] for index in row.call.arguments))


def confirmed_waits(frozen: Mapping[int, FutexCall], registers: Mapping[int, Sequence[int]]) -> Dict[int, FutexCall]:
    """Those waits that the registers of the stop show as well: the others began or ended just before it."""
    kept = {}
    for tid, call in frozen.items():
        seen = futex_call(tid, syscall_of(registers.get(tid, ())))
        if seen is not None and seen[:6] == call[:6]:
            kept[tid] = call
    return kept


class ThreadIds(NamedTuple):
    """The threads of a process as glibc's descriptors know them. In a container these ids are not the LWPs."""

    lwps: Dict[int, int]  # LWP by the id in the descriptor
    words: Dict[int, int]  # LWP by the address of that id: who waits for a thread to end sleeps on it

    def are_all(self, tids: Set[int]) -> bool:
        """Whether these are the ids of all these threads. Of a process that runs meanwhile a thread may have ended: its
        descriptor has no id, or that of a thread that came later."""
        same = [known == lwp for known, lwp in self.lwps.items()]
        return tids <= set(self.lwps.values()) and 0 not in self.lwps and (all(same) or not any(same))


def thread_ids(registers: Mapping[int, Sequence[int]], read_many: ReadMany) -> ThreadIds:
    """The ids of stopped threads, by their register sets."""
    row = this_machine()
    if row is None or row.thread_pointer is None:
        return ThreadIds({}, {})
    return ids_at({tid: words[row.thread_pointer] for tid, words in registers.items() if words}, read_many)


def ids_at(pointers: Mapping[int, int], read_many: ReadMany) -> ThreadIds:
    """The same by the addresses of the descriptors (the thread pointer of each thread)."""
    row = this_machine()
    if row is None or row.glibc_tid is None:
        return ThreadIds({}, {})
    words = {at + row.glibc_tid: tid for tid, at in pointers.items() if 0 < at < 1 << row.address_bits}
    data = read_many([(address, 4) for address in words])
    lwps = {int.from_bytes(word, "little"): tid for tid, word in zip(words.values(), data) if word}
    return ThreadIds(lwps, words)
