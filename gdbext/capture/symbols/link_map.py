"""The names of a process' libraries as its dynamic linker has them (link.h: r_debug, link_map): what a debugger opens.

They stand in the memory of the process, which may write there what it likes.
"""

from __future__ import annotations

import struct
from typing import List, Optional, Set

from gdbext.capture.elf.layout import PT_DYNAMIC, PT_PHDR, SEGMENT, segments_in
from gdbext.capture.memory.auxiliary_vector import auxiliary
from gdbext.capture.memory.process_memory import Memory

MOST = 4096
_LONGEST = 4096
_AT_PHDR, _AT_PHNUM = 3, 5
_DT_DEBUG = 21
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
    data = memory.read(table, count * SEGMENT.size) if table and count else None
    found = {one.kind: one.address for one in segments_in(data or b"") if one.kind in (PT_DYNAMIC, PT_PHDR)}
    if PT_DYNAMIC not in found:
        return None
    # By the headers themselves, which lie where the auxiliary vector says: no mapping is needed for this bias.
    bias = table - found[PT_PHDR] if PT_PHDR in found else 0
    address = found[PT_DYNAMIC] + bias
    for number in range(_MOST_TAGS):
        pair = memory.read(address + number * _PAIR.size, _PAIR.size)
        if pair is None or pair == bytes(_PAIR.size):
            return None
        tag, value = _PAIR.unpack(pair)
        if tag == _DT_DEBUG:
            return memory.read_pointer(value + 8) if value else None
    return None
