"""Memory of another process by /proc/PID/mem, for where a seccomp filter refuses process_vm_readv(2), as Docker's own
profile did for years. The kernel asks for the same right to either; this costs a system call for each range.

Unlike process_vm_readv the file also gives what the process itself may not read: zeros for the reserved addresses of a
device (PROT_NONE). So what the memory map does not call readable is not read.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from typing import Dict, Tuple

from gdbext.capture.memory.maps import MemoryMap, read_maps

_FRESH = 0.05  # seconds that a memory map counts: whoever follows pointers reads hundreds of times
_maps: Dict[int, Tuple[float, MemoryMap]] = {}  # of the last process that was read


def read_vectors(pid: int, local: int, local_count: int, remote: int, remote_count: int, _flags: int) -> int:
    """As process_vm_readv(2) answers, errno of ctypes included. Both lists of ranges have the same sizes."""
    into = (ctypes.c_uint64 * (2 * local_count)).from_address(local)
    ranges = (ctypes.c_uint64 * (2 * remote_count)).from_address(remote)
    total = 0
    try:
        maps = _map_of(pid)
        file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        ctypes.set_errno(errno.ESRCH if error.errno == errno.ENOENT else errno.EPERM)
        return -1
    try:
        for index in range(0, 2 * remote_count, 2):
            address, size = ranges[index], ranges[index + 1]
            allowed = _readable(maps, address, size)
            got = _read(file, (ctypes.c_char * allowed).from_address(into[index]), address) if allowed else 0
            total += got
            if got < size:
                break
    finally:
        os.close(file)
    if total == 0 and any(ranges[1::2]):
        ctypes.set_errno(errno.EFAULT)
        return -1
    return total


def _map_of(pid: int) -> MemoryMap:
    now = time.monotonic()
    at, maps = _maps.get(pid, (0.0, None))
    if maps is None or now - at > _FRESH:
        maps = read_maps(pid)
        _maps.clear()
        _maps[pid] = now, maps
    return maps


def _readable(maps: MemoryMap, address: int, size: int) -> int:
    """Bytes of the range up to the first that the process may not read."""
    here, end = address, address + size
    while here < end:
        home = maps.find(here)
        if home is None or not home.permissions.startswith("r"):
            break
        here = home.end
    return min(here, end) - address


def _read(file: int, room: ctypes.Array[ctypes.c_char], address: int) -> int:
    """Bytes read at the address, up to the first page that cannot be."""
    try:
        return os.preadv(file, [room], address)
    except (OSError, OverflowError):
        return 0
