"""The names of a process' libraries as its dynamic linker has them (link.h: r_debug, link_map): what a debugger opens.

They stand in the memory of the process, which may write there what it likes.
"""

from __future__ import annotations

import struct
from typing import List, Optional, Set

from gdbext.capture.core_notes import auxiliary
from gdbext.capture.memory import Memory

MOST = 4096
_LONGEST = 4096
_AT_PHDR, _AT_PHNUM = 3, 5
_PT_DYNAMIC, _PT_PHDR = 2, 6
_DT_DEBUG = 21
_PROGRAM = struct.Struct("<IIQQQQQQ")
_PAIR = struct.Struct("<QQ")
_MOST_HEADERS, _MOST_TAGS = 64, 256


def names_in(memory: Memory, auxv: bytes) -> List[str]:
    """At most MOST; none where there is no such list, or it cannot be read."""
    names: List[str] = []
    seen: Set[int] = set()
    entry = _first_entry(memory, auxv)
    while entry and entry not in seen and len(seen) < MOST:
        seen.add(entry)
        name = memory.read_pointer(entry + 8)
        text = memory.read_cstring(name, _LONGEST) if name else None
        if text:
            names.append(text)
        entry = memory.read_pointer(entry + 24)
    return names


def _first_entry(memory: Memory, auxv: bytes) -> Optional[int]:
    values = auxiliary(auxv)
    table, count = values.get(_AT_PHDR, 0), min(values.get(_AT_PHNUM, 0), _MOST_HEADERS)
    data = memory.read(table, count * _PROGRAM.size) if table and count else None
    headers = {row[0]: row for row in _PROGRAM.iter_unpack(data or b"") if row[0] in (_PT_DYNAMIC, _PT_PHDR)}
    if _PT_DYNAMIC not in headers:
        return None
    bias = table - headers[_PT_PHDR][3] if _PT_PHDR in headers else 0
    address = headers[_PT_DYNAMIC][3] + bias
    for number in range(_MOST_TAGS):
        pair = memory.read(address + number * _PAIR.size, _PAIR.size)
        if pair is None or pair == bytes(_PAIR.size):
            return None
        tag, value = _PAIR.unpack(pair)
        if tag == _DT_DEBUG:
            return memory.read_pointer(value + 8) if value else None
    return None
