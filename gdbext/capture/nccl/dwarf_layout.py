"""Where the members of NCCL's communicator lie, by the debug information of the library itself.

The wheels of PyPI and own builds carry it; a stripped library has none (then: knowledge/runtimes/nccl.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Iterator, Optional, Tuple

from gdbext.capture.bounded_reader import in_time
from gdbext.knowledge.row_kinds import StructRow
from gdbext.knowledge.runtimes.nccl import STRUCT, struct_row
from gdbext.safe_open import files

if TYPE_CHECKING:
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.elf.elffile import ELFFile

_FILES = ("init.cc", "init.cu")  # a unit that knows the whole type, and one of the first; the others are tried after it
_STRUCTURES = ("DW_TAG_structure_type", "DW_TAG_class_type")
_MOST_UNITS = 5000
_MOST_BYTES = 128 << 20  # libnccl.so 2.28.9 has 12 MB
_MOST_SECTIONS = 64
_SECONDS = 5.0


def layout_of(path: str) -> Optional[StructRow]:
    """The row for the library at `path`; None when it has no debug information for the type. 0.1 to 0.3 s.

    Raises ImportError without pyelftools. What lies, or takes more than some seconds, tells nothing.
    """
    from elftools.elf.elffile import ELFFile  # here: for the few that have the library

    def read() -> Optional[StructRow]:
        with files.stream(path) as stream:
            elf = ELFFile(stream)
            if not elf.has_dwarf_info() or _bytes_of(elf) > _MOST_BYTES:
                return None
            return _search(elf.get_dwarf_info(follow_links=False), os.path.basename(path))

    try:
        return in_time(_SECONDS, read)
    except Exception:  # noqa: BLE001 - cut short, damaged or a lie: pyelftools has an error of its own for few of them
        return None


def _bytes_of(elf: ELFFile) -> int:
    """Those of the debug information, unpacked: it is read as a whole. Some say how long they are, and lie."""
    sections = [one for one in elf.iter_sections() if one.name.startswith((".debug_", ".zdebug_"))]
    if len(sections) > _MOST_SECTIONS or any(one.name.startswith(".zdebug_") for one in sections):
        return _MOST_BYTES + 1
    return sum(int(max(one.data_size, one["sh_size"])) for one in sections)


def _search(info: DWARFInfo, name: str) -> Optional[StructRow]:
    later = []
    for number, unit in enumerate(info.iter_CUs()):
        if number == _MOST_UNITS:
            break
        top = unit.get_top_DIE()
        if os.path.basename(_name(top)) in _FILES:
            row = _among(top, name)
            if row is not None:
                return row
        else:
            later.append(top)
    return next((row for row in (_among(top, name) for top in later) if row is not None), None)


def _among(top: DIE, name: str) -> Optional[StructRow]:
    for die in top.iter_children():
        if die.tag in _STRUCTURES and _name(die) == STRUCT and "DW_AT_byte_size" in die.attributes:
            offsets = dict(_members(die))
            if {"rank", "nRanks", "commHash"} <= set(offsets):
                size = int(die.attributes["DW_AT_byte_size"].value)
                return struct_row(size, offsets, f"DWARF of {name}")
    return None


def _members(die: DIE) -> Iterator[Tuple[str, int]]:
    for child in die.iter_children():
        place = child.attributes.get("DW_AT_data_member_location")
        if child.tag == "DW_TAG_member" and place is not None and isinstance(place.value, int):
            yield _name(child), place.value


def _name(die: DIE) -> str:
    name = die.attributes.get("DW_AT_name")
    return name.value.decode("utf-8", "replace") if name is not None else ""
