"""C++ objects that hold what went wrong, by memory alone: exceptions, strings, and streams that text is written to."""

from __future__ import annotations

import re
import struct
from typing import Optional

from gdbext.inside_gdb.base.memory import NOW

MESSAGE_CAP = 4096
_NAME_CAP = 1024
_MANGLED = re.compile(r"[A-Za-z0-9_$.]+\Z")


def read_std_string(address: int, most: int = MESSAGE_CAP) -> Optional[str]:
    """libstdc++'s std::string: pointer, length (GCC 5 and newer)."""
    head = NOW.read(address, 16)
    if head is None:
        return None
    start, length = struct.unpack("<QQ", head)
    if length > 1 << 32:
        return None
    data = NOW.read(start, min(length, most)) if length else b""
    return None if data is None else data.decode("utf-8", "replace")


_STREAM = "NSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEE"
_MOST_WRITTEN = 1 << 20


def read_ostringstream(address: int, most: int = MESSAGE_CAP) -> Optional[str]:
    """What was written to a std::ostringstream (libstdc++ of GCC 5 and newer); None for what is no such object.

    Behind its vtable pointer lies the buffer: six pointers, of which the last three are the begin of what was written,
    where the next character goes, and the end of the room. Once it was read from, the third may be farther.
    """
    head = NOW.read(address, 64) if not address & 7 and address >> 16 else None
    if head is None:
        return None
    table, _, _, _, read_end, begin, put, _ = struct.unpack("<8Q", head)
    if typeinfo_name(NOW.read_pointer(table - 8) or 0) != _STREAM:
        return None
    end = max(put, read_end)
    if not begin:
        return ""
    if not 0 <= end - begin <= _MOST_WRITTEN:
        return None
    data = NOW.read(begin, min(end - begin, most)) if end > begin else b""
    return None if data is None else data.decode("utf-8", "replace")


def typeinfo_name(address: int) -> Optional[str]:
    """The mangled name in a std::type_info (Itanium C++ ABI 2.9.4: vtable, then the name); None for what is none."""
    place = NOW.read_pointer(address + 8)
    name = NOW.read_cstring(place, _NAME_CAP) if place else None
    name = (name or "").lstrip("*")
    return name if _MANGLED.match(name) else None


def message_of(thrown: int) -> str:
    """The message of an exception object, "" where it has none.

    std::runtime_error and std::logic_error hold a copy-on-write string, c10::Error a std::string: behind the vtable
    stands, in both, the address of the characters.
    """
    place = NOW.read_pointer(thrown + 8)
    text = NOW.read_cstring(place, MESSAGE_CAP) if place else None
    return text if text and all(one.isprintable() or one in "\n\t\r\x1b" for one in text) else ""


def type_words(mangled: Optional[str]) -> str:
    """`std::runtime_error` for `St13runtime_error`; what is more than nested names stays as it is."""
    if not mangled:
        return "an exception of unknown type"
    words, rest = [], mangled[1:-1] if mangled.startswith("N") and mangled.endswith("E") else mangled
    if rest.startswith("St"):
        words, rest = ["std"], rest[2:]
    while rest:
        length = re.match(r"\d{1,3}", rest)
        if length is None or len(rest) < length.end() + int(length[0]):
            return mangled
        words.append(rest[length.end() : length.end() + int(length[0])])
        rest = rest[length.end() + int(length[0]) :]
    return "::".join(words)
