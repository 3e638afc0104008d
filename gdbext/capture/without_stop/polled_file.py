"""A poll(2) of one file without a time-out, as the read or write that it waits to make."""

from __future__ import annotations

import struct
from typing import Callable, Optional, Sequence

from gdbext.knowledge.runtimes.system_calls import POLL, PPOLL, READ, WRITE
from gdbext.knowledge.runtimes.untimed_calls import UNTIMED

_POLLFD = struct.Struct("<ihh")  # fd, events, revents (poll(2))
_TO_READ, _TO_WRITE = 0x1, 0x4  # POLLIN, POLLOUT


def as_read_or_write(call: Sequence[int], read: Callable[[int, int], Optional[bytes]]) -> Sequence[int]:
    """Any other call as it is. `call`: number and arguments; `read`: (address, size) -> memory of the process."""
    limit = UNTIMED.get(call[0])
    if call[0] not in (POLL, PPOLL) or limit is None or len(call) <= limit[0]:
        return call
    data = read(call[1], _POLLFD.size) if call[2] == 1 and call[limit[0]] in limit[1] else None
    descriptor, events, _ = _POLLFD.unpack(data) if data else (-1, 0, 0)
    kind = READ if events & _TO_READ else WRITE if events & _TO_WRITE else None
    return call if kind is None or descriptor < 0 else (kind, descriptor, *[0] * (len(call) - 2))
