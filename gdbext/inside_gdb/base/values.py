"""A gdb.Value as plain data: numbers, short texts, or why there is neither. Nothing is called in the target."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Callable, Iterator, Optional

import gdb

from gdbext.capture.machine import SMALLEST_PAGE
from gdbext.model.missing import Missing
from gdbext.model.stack import Captured

TEXT_CAP = 256
"""Bytes read of a C string or std::string; a pointer into garbage must not read for ever."""

OPTIMIZED_OUT = Missing("optimized out")
_NO_DEBUG_INFO = Missing("no debug information")
_PAGE = SMALLEST_PAGE
_STEP = re.compile(r"->|\.")
_INTEGERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR)
_REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)


Read = Callable[[int, int], Optional[bytes]]
"""(address, size) -> bytes, or None when they cannot be read."""

_beyond: Optional[Read] = None


@contextmanager
def also_from(read: Read) -> Iterator[None]:
    """Take memory that gdb does not have from `read` while the block runs.

    The copy of a process holds its stacks; what an argument points to (a communicator) still lies in the process.
    """
    global _beyond
    _beyond = read
    try:
        yield
    finally:
        _beyond = None


def read_variable(frame: gdb.Frame, name: str) -> Captured:
    """An argument or local of a frame; `comm->rank` and `params.count` reach into it."""
    first, *members = _STEP.split(name)
    try:
        if frame.function() is None:
            return _NO_DEBUG_INFO
        value = frame.read_var(first)
        for member in members:
            value = _member(value, member)
        return plain_value(value)
    except ValueError:
        return Missing(f"no variable {first} here")
    except (gdb.error, RuntimeError) as error:
        return _why_not(error)


def _member(value: gdb.Value, name: str) -> gdb.Value:
    value = _without_references(value)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
        value = _fetched(value).dereference()
    return value[name]


def _fetched(value: gdb.Value) -> gdb.Value:
    """The value with its bytes, which may have to come from beyond."""
    try:
        value.fetch_lazy()
    except gdb.MemoryError:
        size = value.type.sizeof
        data = _beyond(int(value.address), size) if _beyond and value.address is not None and size <= _PAGE else None
        if data is None:
            raise
        return gdb.Value(data, value.type)
    return value


def plain_value(value: gdb.Value) -> Captured:
    """Integers and pointers as int, enumerators by name, texts as str, floating point as its text; else Missing."""
    try:
        return OPTIMIZED_OUT if value.is_optimized_out else _plain(_fetched(_without_references(value)))
    except (gdb.error, RuntimeError, ValueError, OverflowError) as error:
        return _why_not(error)


def _without_references(value: gdb.Value) -> gdb.Value:
    while value.type.strip_typedefs().code in _REFERENCES:
        value = value.referenced_value()
    return value


def _plain(value: gdb.Value) -> Captured:
    kind = value.type.strip_typedefs()
    if kind.code in _INTEGERS:
        return int(value)
    if kind.code == gdb.TYPE_CODE_PTR:
        address = int(value)
        return read_text(address) if address and _is_char(kind.target()) else address
    if kind.code == gdb.TYPE_CODE_ENUM:
        return _enumerator(kind, int(value))
    if kind.code == gdb.TYPE_CODE_FLT:
        return str(float(value))
    if kind.code == gdb.TYPE_CODE_ARRAY and _is_char(kind.target()):
        return read_text(int(value.address)) if value.address is not None else Missing("not in memory")
    text = _std_string(value) if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION) else None
    return text if text is not None else Missing("not a plain value")


def _is_char(kind: gdb.Type) -> bool:
    kind = kind.strip_typedefs().unqualified()
    return kind.sizeof == 1 and kind.code in _INTEGERS and str(kind.name) in ("char", "signed char")


def _enumerator(kind: gdb.Type, number: int) -> Captured:
    """The name without its scope: `ncclSum`, also when the enumeration is a class member."""
    for field in kind.fields():
        if field.enumval == number:
            return str(field.name).rsplit("::", 1)[-1]
    return number


def _std_string(value: gdb.Value) -> Optional[Captured]:
    """libstdc++'s std::string, told by its members (the two since GCC 5; older layouts are not read)."""
    names = {field.name for field in value.type.strip_typedefs().fields()}
    if not {"_M_dataplus", "_M_string_length"} <= names:
        return None
    length = int(value["_M_string_length"])
    return read_text(int(value["_M_dataplus"]["_M_p"]), length) if 0 <= length < 1 << 32 else Missing("corrupt string")


def read_text(address: int, length: Optional[int] = None) -> Captured:
    """A NUL-terminated text, or one of `length` bytes; at most TEXT_CAP bytes, then an ellipsis."""
    inferior = gdb.selected_inferior()
    wanted = TEXT_CAP if length is None else min(length, TEXT_CAP)
    data = b""
    while len(data) < wanted:
        here = address + len(data)
        size = min(wanted - len(data), _PAGE - here % _PAGE)  # the next page may not be there
        try:
            data += bytes(inferior.read_memory(here, size))
        except gdb.MemoryError as error:
            piece = _beyond(here, size) if _beyond else None
            if piece is None:
                return _why_not(error)
            data += piece
        if length is None and b"\0" in data:
            return data.split(b"\0", 1)[0].decode("utf-8", "replace")
    cut = length is None or length > TEXT_CAP
    return data.decode("utf-8", "replace") + ("…" if cut else "")


def _why_not(error: Exception) -> Missing:
    """gdb's own words, on one line."""
    text = " ".join(str(error).split())
    if "optimized out" in text:
        return OPTIMIZED_OUT
    if isinstance(error, gdb.MemoryError) or "Cannot access memory" in text:
        return Missing(f"unreadable: {text}" if text else "unreadable")
    return Missing(text[:120] or type(error).__name__)
