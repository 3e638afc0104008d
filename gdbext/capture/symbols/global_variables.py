"""Which variable lies at an address: by the symbols of the file that the memory belongs to, its .bss included."""

from __future__ import annotations

import itertools
import operator
import struct
import sys
import time
from array import array
from typing import Callable, Dict, List, Optional, Tuple

from gdbext.capture.elf.layout import SYMBOL
from gdbext.capture.elf.object_file import bias_among
from gdbext.capture.elf.reader import ElfSymbols, Section, tables_of
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.safe_open import files

VARIABLE, FUNCTION = 1, 2  # STT_OBJECT, STT_FUNC
_PIECE = 1 << 16  # symbols
_LARGEST = 1 << 24  # bytes of a variable
_LONGEST = 512  # bytes of a name
_SECONDS = 1.0  # of the processor, for one process: a busy machine loses no name

Place = Tuple[str, int]
"""Name of a variable, and how far into it an address is."""


def variable_in(memory: MemoryMap, root: str, readable: Callable[[str], Optional[str]]) -> Callable[[int], str]:
    """`cache`, or `table+0x40`, by the address; "" where none is known. `root` is put before each path to open it,
    `readable` makes a name of the linker's one for people."""
    left = _SECONDS
    known: Dict[int, str] = {}

    def variable(address: int) -> str:
        nonlocal left
        if address not in known:
            begun = time.thread_time()
            found = _find(memory, root, address, begun + left)
            left -= time.thread_time() - begun
            name = (readable(found[0]) or found[0]) if found is not None else ""
            known[address] = name if found is None or not found[1] else f"{name}+{found[1]:#x}"
        return known[address]

    return variable


def file_at(memory: MemoryMap, address: int) -> Optional[Mapping]:
    """A mapping of the file that memory belongs to: a library's data, and what follows it without a name (its .bss)."""
    found = memory.find(address)
    if found is None or found.path:
        return found
    before = next((one for one in memory if one.end == found.start), None)
    return before if before is not None and before.is_file else None


def _find(memory: MemoryMap, root: str, address: int, until: float) -> Optional[Place]:
    mapping = file_at(memory, address)
    if mapping is None or not mapping.is_file or mapping.deleted or time.thread_time() > until:
        return None
    try:
        if files.status(root + mapping.file).st_ino != mapping.inode:
            return None  # replaced since
        with files.stream(root + mapping.file) as stream:
            elf = ElfSymbols(stream)
            bias = bias_among(elf.segments, elf.fixed, (one for one in memory if one.path == mapping.path))
            return None if bias is None else name_at(elf, address - bias, until, VARIABLE)
    except (OSError, ValueError, struct.error):
        return None


def name_at(elf: ElfSymbols, address: int, until: float, kind: int) -> Optional[Place]:
    """The symbol of that kind at an address as linked, while the thread's time is before `until`. Of several that cover
    it the one that begins last: the member of a union of names."""
    for table in tables_of(elf.sections):
        found: List[Tuple[int, int]] = []  # where it begins, where its name stands
        for first in range(0, table.size // SYMBOL.size, _PIECE):
            if time.thread_time() > until:
                return None
            found += _covering(elf, table, first, address, kind)
        if found and table.link < len(elf.sections):
            start, name = max(found)
            return _text(elf, elf.sections[table.link], name), address - start
    return None


def _covering(elf: ElfSymbols, table: Section, first: int, address: int, kind: int) -> List[Tuple[int, int]]:
    """Of one piece of a table; all of it but the last lines runs in C."""
    count = min(_PIECE, table.size // SYMBOL.size - first)
    rows = elf.at(table.offset + first * SYMBOL.size, count * SYMBOL.size)
    words = array("Q")
    words.frombytes(rows)
    if sys.byteorder != "little":
        words.byteswap()
    starts = words[1::3]
    before = map(address.__ge__, starts)
    behind = map(address.__lt__, map(operator.add, starts, words[2::3]))
    found = []
    for number in itertools.compress(range(count), map(operator.and_, before, behind)):
        name, info, _other, section, value, size = SYMBOL.unpack_from(rows, number * SYMBOL.size)
        if info & 15 == kind and section and size <= _LARGEST:
            found.append((value, name))
    return found


def _text(elf: ElfSymbols, texts: Section, at: int) -> str:
    if at >= texts.size:
        raise ValueError("an ELF table is damaged: a name beyond its end")
    piece = elf.at(texts.offset + at, min(_LONGEST, texts.size - at))
    return piece.partition(b"\0")[0].decode("utf-8", "replace")
