"""`p x`, `info locals` and IDEs show a stream object in one line: handle, kind, torch's pool, device.

A cudaStream_t itself is a pointer to a type that no header defines: of it gdb shows the address, and the printer only
what the special ones mean. Nothing is called in the program.
"""

from __future__ import annotations

import gdb

from gdbext.inside_gdb.base.memory import current
from gdbext.inside_gdb.streams.stream_objects import Found, found_in
from gdbext.inside_gdb.streams.stream_pools import with_pool_handle
from gdbext.inside_gdb.tensors.object_by_dwarf import ValueNode
from gdbext.inside_gdb.tensors.target_object import Unreadable
from gdbext.knowledge.runtimes.cuda_streams import SPECIAL
from gdbext.model.missing import Missing

_LONGEST = 300


class Printer:
    """One value."""

    def __init__(self, value: gdb.Value) -> None:
        self._value = value

    def to_string(self) -> str:
        try:
            found = found_in(ValueNode(self._value, current().read))
        except (Unreadable, gdb.error, RuntimeError) as problem:
            return f"<{' '.join(str(problem).split())[:_LONGEST]}>"
        return summary(found) if found is not None else "<no stream>"


def summary(found: Found) -> str:
    """`stream 0x7f00 on device 3`, `pool stream 5 of priority -1 on device 3`, or the reason why there is neither."""
    decoded = with_pool_handle(found.decoded, found.device)
    handle = "" if isinstance(decoded.handle, Missing) else f"{decoded.handle:#x}"
    if found.event:
        return f"event {handle}" if handle else "null event"
    if decoded.kind == "unverified":
        return str(decoded.handle)
    words = []
    if decoded.kind == "pool":
        words = [f"pool stream {decoded.pool_index} of priority {decoded.priority}", handle]
    elif isinstance(decoded.handle, Missing):
        words = [str(decoded.handle)]
    else:
        words = [handle, f"({decoded.kind} stream)"] if decoded.handle in SPECIAL else ["stream", handle]
    if not isinstance(found.device, Missing):
        words.append(f"on device {found.device}")
    return " ".join(word for word in words if word)
