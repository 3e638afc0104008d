"""Memory of another process by process_vm_readv(2): needs permission, neither attachment nor a stop."""

from __future__ import annotations

import ctypes
import errno
import mmap
import time
from array import array
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.memory.memory_file import read_vectors

Range = Tuple[int, int]
"""Address and size in bytes."""

IOV_MAX = 1024  # ranges per call (limits.h); the kernel refuses more
READ_LIMIT = 64 << 20  # no single read of ours is larger; a larger size comes from garbage in the target
_CALL_BYTES = 8 << 20  # per call, so that a deadline can be looked at in between (about 2 ms)
_PAGE = mmap.PAGESIZE
_MAP_NORESERVE = 0x4000  # sys/mman.h; not in Python's mmap module
_FORBIDDEN = (errno.EPERM, errno.ENOSYS)  # no right to it, or a filter refuses the very call

# Two handles on purpose: a read of some other time lets other Python threads run; a read while the target stands still
# must not, because getting the interpreter lock back can take 5 ms.
_shared = ctypes.CDLL(None, use_errno=True).process_vm_readv
_exclusive = ctypes.PyDLL(None, use_errno=True).process_vm_readv
for _call in (_shared, _exclusive):
    _call.argtypes = (ctypes.c_int, *(ctypes.c_void_p, ctypes.c_ulong) * 2, ctypes.c_ulong)
    _call.restype = ctypes.c_ssize_t


class Block(NamedTuple):
    """A run of copied bytes."""

    address: int
    data: bytes

    @property
    def end(self) -> int:
        return self.address + len(self.data)


class Memory:
    """What can be read by address, and the little that is made of it."""

    def read(self, address: int, size: int) -> Optional[bytes]:
        """`size` bytes at `address`; `None` unless all of them are readable."""
        raise NotImplementedError

    def read_pointer(self, address: int) -> Optional[int]:
        """The 64-bit little-endian word at `address`."""
        data = self.read(address, 8)
        return None if data is None else int.from_bytes(data, "little")

    def read_cstring(self, address: int, cap: int = 256) -> Optional[str]:
        """The text up to its NUL, at most `cap` bytes of it; undecodable bytes become U+FFFD."""
        data = b""
        while len(data) < cap:
            here = address + len(data)
            piece = self.read(here, min(cap - len(data), _PAGE - here % _PAGE))  # never beyond a page for nothing
            if piece is None:
                return None
            data += piece
            if b"\0" in piece:
                break
        return data.split(b"\0", 1)[0].decode("utf-8", "replace")


class ProcessMemory(Memory):
    """Reads a live process. A bad address is an ordinary answer, `None`: pages never touched of a device's reservation
    (PROT_NONE), freed memory, a process that ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def read(self, address: int, size: int) -> Optional[bytes]:
        """`size` bytes at `address`; `None` unless all of them are readable."""
        if not size or not _sensible(address, size):
            return None if size else b""
        # Shorter than `read_many` of one: who follows pointers while a target stands still calls it dozens of times.
        data = bytearray(size)
        local = array("Q", (ctypes.addressof(ctypes.c_char.from_buffer(data)), size))
        remote = array("Q", (address, size))
        total = _transfer(_shared, self.pid, local.buffer_info()[0], remote.buffer_info()[0], 1)
        return bytes(data) if total == size else None

    def read_many(self, ranges: Sequence[Range]) -> List[Optional[bytes]]:
        """One answer per range, like `read`, in as few system calls as possible."""
        results: List[Optional[bytes]] = [None] * len(ranges)
        wanted = [index for index, (address, size) in enumerate(ranges) if _sensible(address, size)]
        while wanted:
            group, wanted = _next_group(wanted, ranges)
            buffer = ctypes.create_string_buffer(max(1, sum(ranges[index][1] for index in group)))
            got, _ = _read_ranges(_shared, self.pid, ctypes.addressof(buffer), [ranges[index] for index in group])
            view, offset = memoryview(buffer), 0
            for index, count in zip(group, got):
                size = ranges[index][1]
                if count == size:
                    results[index] = view[offset : offset + size].tobytes()
                offset += size
        return results


class CopyBuffer:
    """Room for what is copied during a stop, set aside and touched before it so that the stop pays for copying only.

    `size` bounds everything that is ever copied into it; the first `ready` bytes are made resident at once. The rest
    costs memory only when it is used.
    """

    def __init__(self, size: int, ready: int) -> None:
        self._room = mmap.mmap(-1, max(size, _PAGE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._room))
        self._size, self._used = size, 0
        self._pieces: List[Tuple[int, int, int]] = []  # address in the target, offset in the room, bytes got
        ctypes.memset(self._address, 0, min(size, ready))

    @property
    def left(self) -> int:
        """Bytes that still fit."""
        return self._size - self._used

    def copy(self, pid: int, ranges: Sequence[Range], deadline: float) -> List[int]:
        """Copy the ranges; the answer is the number of bytes got of each (reading stops at the first bad page of it).

        Where the room or the time (`deadline`, CLOCK_MONOTONIC seconds) ends, the answer ends too: it is shorter than
        `ranges`. Raises `ProcessLookupError` when the process is gone.
        """
        got: List[int] = []
        while len(got) < len(ranges) and time.monotonic() < deadline:
            group = self._fitting(ranges, len(got))
            if not group:
                break
            counts, error = _read_ranges(_exclusive, pid, self._address + self._used, group)
            for (address, size), count in zip(group, counts):
                self._pieces.append((address, self._used, count))
                self._used += size
            got += counts
            if error == errno.ESRCH:
                raise ProcessLookupError(error, "the process is gone")
        return got

    def _fitting(self, ranges: Sequence[Range], first: int) -> List[Range]:
        group: List[Range] = []
        total = 0
        for one in ranges[first : first + IOV_MAX]:
            if total + one[1] > self.left or (group and total + one[1] > _CALL_BYTES):
                break
            total += one[1]
            group.append(one)
        return group

    def words(self, address: int, limit: int) -> array[int]:
        """The 64-bit words of the piece copied from `address`, at most `limit` bytes; empty when there is none."""
        words = array("Q")
        for start, offset, count in self._pieces:
            if start == address:
                words.frombytes(self._room[offset : offset + (min(count, limit) & ~7)])
                break
        return words

    def blocks(self) -> List[Block]:
        """Everything that was copied, as `merge` leaves it."""
        pieces = ((start, self._room[offset : offset + count]) for start, offset, count in self._pieces if count)
        return merge(Block(start, data) for start, data in pieces)


def merge(blocks: Iterable[Block]) -> List[Block]:
    """The same memory as blocks that neither touch nor overlap, in address order. Where blocks disagree the one counts
    that begins later: stacks grow down, and bytes above the sp of another thread are that thread's."""
    merged: List[Tuple[int, bytearray]] = []
    for block in sorted(block for block in blocks if block.data):
        if merged and block.address <= merged[-1][0] + len(merged[-1][1]):
            address, data = merged[-1]
            data[block.address - address : block.end - address] = block.data
        else:
            merged.append((block.address, bytearray(block.data)))
    return [Block(address, bytes(data)) for address, data in merged]


def _sensible(address: int, size: int) -> bool:
    return 0 <= size <= READ_LIMIT and 0 <= address <= (1 << 64) - size - 1


def _next_group(wanted: List[int], ranges: Sequence[Range]) -> Tuple[List[int], List[int]]:
    """Split off the ranges of the next read."""
    total = count = 0
    for index in wanted[:IOV_MAX]:
        total += ranges[index][1]
        if count and total > READ_LIMIT:
            break
        count += 1
    return wanted[:count], wanted[count:]


def _transfer(call: Any, pid: int, local: int, remote: int, count: int) -> int:
    """One call of process_vm_readv, or of what stands in for it."""
    total: int = call(pid, local, count, remote, count, 0)
    if total < 0 and ctypes.get_errno() in _FORBIDDEN:
        return read_vectors(pid, local, count, remote, count, 0)
    return total


def _read_ranges(call: Any, pid: int, into: int, ranges: Sequence[Range]) -> Tuple[List[int], int]:
    """Fill the buffer at `into` with the ranges one behind the other, each at its full size; bytes got of each, errno.

    The kernel stops at the first page it cannot read; we go on behind the range that this page belongs to.
    """
    local, remote, offset = array("Q"), array("Q"), 0
    for address, size in ranges:
        local.extend((into + offset, size))
        remote.extend((address, size))
        offset += size
    got: List[int] = []
    while len(got) < len(ranges):
        skip, count = 16 * len(got), len(ranges) - len(got)
        total = _transfer(call, pid, local.buffer_info()[0] + skip, remote.buffer_info()[0] + skip, count)
        error = ctypes.get_errno() if total < 0 else 0
        if error not in (0, errno.EFAULT):
            return got + [0] * count, error
        total = max(total, 0)
        for _, size in ranges[len(got) :]:
            got.append(min(size, total))
            total -= got[-1]
            if got[-1] < size:
                break
    return got, 0
