"""A poll(2) without a time-out, as the read or write that it waits to make; none where a library is to be woken up."""

from __future__ import annotations

import struct
from typing import Callable, Mapping, Optional, Sequence

from gdbext.knowledge.runtimes.system_calls import POLL, PPOLL, READ, WRITE
from gdbext.knowledge.runtimes.untimed_calls import POLLED, has_no_limit
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.patterns import regex

_POLLFD = struct.Struct("<ihh")  # fd, events, revents (poll(2))
_TO_READ, _TO_WRITE = 0x1, 0x4  # POLLIN, POLLOUT
_MOST_FILES = 8
_ZEROMQ, _OF_ZEROMQ = regex(r"(^|/)(lib|_)zmq[^/]*$"), regex(r"zmq(::|_)")


def calls_for_files(
    calls: Mapping[int, Sequence[int]], stacks: Sequence[ThreadStack], read: Callable[[int, int], Optional[bytes]]
) -> Mapping[int, Sequence[int]]:
    """The calls (by LWP) of threads with these stacks, polls as `as_read_or_write` has them. Inside of ZeroMQ one polls
    a file of the process itself, to be woken up by the library's thread, which has the connections: left out."""
    woken = {one.lwp for one in stacks if any(map(_is_of_zeromq, one.calls[1:2]))}
    found = {tid: call for tid, call in calls.items() if tid not in woken or call[0] not in (POLL, PPOLL)}
    return {tid: as_read_or_write(call, read) for tid, call in found.items()}


def _is_of_zeromq(frame: Frame) -> bool:
    return bool(_ZEROMQ.search(frame.module or "") or _OF_ZEROMQ.match(frame.function or ""))


def as_read_or_write(call: Sequence[int], read: Callable[[int, int], Optional[bytes]]) -> Sequence[int]:
    """Any other call as it is. `call`: number and arguments; `read`: (address, size) -> memory of the process.
    Of several files that it waits to read: `POLLED` and their descriptors."""
    if call[0] not in (POLL, PPOLL) or not has_no_limit(call):
        return call
    data = read(call[1], _POLLFD.size * call[2]) if 0 < call[2] <= _MOST_FILES else None
    files = [(file, events) for file, events, _ in _POLLFD.iter_unpack(data or b"") if file >= 0]
    if len(files) > 1:
        return (POLLED, *(file for file, _ in files)) if all(events & _TO_READ for _, events in files) else call
    descriptor, events = files[0] if files else (-1, 0)
    kind = READ if events & _TO_READ else WRITE if events & _TO_WRITE else None
    return call if kind is None else (kind, descriptor, *[0] * (len(call) - 2))
