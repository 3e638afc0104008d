"""`p x`, `info locals` and IDEs show a stream object in one line: handle, kind, torch's pool, device.

A cudaStream_t itself is a pointer to a type that no header defines: of it gdb shows the address, and the printer only
what the special ones mean. Nothing is called in the program.
"""

from __future__ import annotations

import re
from typing import Optional

import gdb
import gdb.printing

from gdbext.debugger.base.memory import current
from gdbext.debugger.streams.stream_objects import Found, found_in
from gdbext.debugger.streams.stream_pools import resolved
from gdbext.debugger.tensors.nodes import Unreadable, same_everywhere
from gdbext.debugger.tensors.value_nodes import ValueNode
from gdbext.knowledge.runtimes.cuda_streams import EVENT_HOLDERS, HOLDERS, SPECIAL, STREAM_TYPE
from gdbext.model.missing import Missing

_ROWS = tuple(row.type for row in (*HOLDERS, *EVENT_HOLDERS) if row.type != ".*")
_LONGEST = 300


class StreamPrinters(gdb.printing.PrettyPrinter):
    """One sub-printer for objects, one for handles: `disable pretty-printer global gdbext-streams;handles`."""

    def __init__(self) -> None:
        names = ("objects", "handles")
        super().__init__("gdbext-streams", [gdb.printing.SubPrettyPrinter(name) for name in names])

    def __call__(self, value: gdb.Value) -> Optional[StreamPrinter]:
        """gdb asks for every value it prints: only the name of its type is looked at."""
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_PTR:
            target = kind.target().strip_typedefs().unqualified()
            name, group = target.name or target.tag or "", "handles"
            wanted = bool(re.fullmatch(STREAM_TYPE, name)) and _special(value)
        else:
            name, group = same_everywhere(kind.name or kind.tag or ""), "objects"
            wanted = kind.code == gdb.TYPE_CODE_STRUCT and any(re.fullmatch(row, name) for row in _ROWS)
        if not wanted or not any(one.enabled for one in self.subprinters if one.name == group):
            return None
        return StreamPrinter(value)


def _special(value: gdb.Value) -> bool:
    try:
        return int(value) in SPECIAL
    except (gdb.error, RuntimeError):  # optimised out, unreadable: gdb says so itself
        return False


class StreamPrinter:
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
    decoded = resolved(found.decoded, found.device)
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


def register() -> None:
    """Add the printers to gdb. The second time it does nothing."""
    known = [getattr(one, "name", None) for one in gdb.pretty_printers]
    if "gdbext-streams" not in known:
        gdb.printing.register_pretty_printer(None, StreamPrinters())
