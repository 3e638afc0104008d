"""Function, file and line of places in an object file: what addr2line tells, by its symbols and its line table."""

from __future__ import annotations

import posixpath
import struct
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.bounded_reader import in_time
from gdbext.capture.elf.layout import PT_LOAD
from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.symbols.global_variables import FUNCTION, name_at
from gdbext.safe_open import files

if TYPE_CHECKING:
    from elftools.dwarf.dwarfinfo import DWARFInfo

_SECONDS = 20.0  # for the line tables of one file
_MOST_BYTES = 1 << 30  # of debug information: libtorch_cuda.so has 600 MB with -g1
_MOST_UNITS = 200_000

Line = Tuple[str, int]


class Named(NamedTuple):
    """What is known of one offset. `symbol`: the linker's name."""

    symbol: Optional[str] = None
    file: Optional[str] = None
    line: Optional[int] = None


def name_offsets(path: str, offsets: Sequence[int]) -> Dict[int, Named]:
    """By offset from where the file was loaded: return addresses, so the call before each is meant.

    Raises `OSError` where it cannot be opened, `ValueError` where it is no such file.
    """
    with files.stream(path) as stream:
        elf = ElfSymbols(stream)
        loads = [one.address for one in elf.segments if one.kind == PT_LOAD]
        base = min(loads, default=0)
        places = {one: max(one - 1, 0) + (base if one < base else 0) for one in offsets}
        until = time.thread_time() + _SECONDS
        symbols: Dict[int, Optional[str]] = {}
        for one, address in places.items():
            try:
                found = name_at(elf, address, until, FUNCTION)
            except (ValueError, struct.error):
                found = None
            symbols[one] = found[0] if found else None
        has_lines = elf.section(".debug_line") is not None or elf.section(".zdebug_line") is not None
    lines = _lines(path, sorted(set(places.values()))) if has_lines else {}
    return {one: Named(symbols[one], *lines.get(address, (None, None))) for one, address in places.items()}


def _lines(path: str, addresses: Sequence[int]) -> Dict[int, Line]:
    """What lies, or takes too long, tells nothing."""
    from elftools.elf.elffile import ELFFile

    def read() -> Dict[int, Line]:
        with files.stream(path) as stream:
            elf = ELFFile(stream)
            debug = [one for one in elf.iter_sections() if one.name.startswith((".debug_", ".zdebug_"))]
            if sum(int(one.data_size) for one in debug) > _MOST_BYTES:
                return {}
            return dict(_found(elf.get_dwarf_info(follow_links=False), addresses))

    try:
        return in_time(_SECONDS, read) or {}
    except Exception:  # noqa: BLE001 - cut short or damaged: pyelftools has an error of its own for few of them
        return {}


def _found(info: DWARFInfo, addresses: Sequence[int]) -> Iterator[Tuple[int, Line]]:
    left = list(addresses)
    ranges = info.get_aranges()
    asked: List[int] = []
    for address in addresses:
        offset = ranges.cu_offset_at_addr(address) if ranges is not None else None
        if offset is not None and offset not in asked:
            asked.append(offset)
    for offset in asked:
        for address, line in _of_unit(info, info.get_CU_at(offset), left):
            left.remove(address)
            yield address, line
    for number, unit in enumerate(info.iter_CUs() if left else ()):
        if number == _MOST_UNITS or not left:
            return
        if unit.cu_offset not in asked:
            for address, line in _of_unit(info, unit, left):
                left.remove(address)
                yield address, line


def _of_unit(info: DWARFInfo, unit: Any, addresses: Sequence[int]) -> List[Tuple[int, Line]]:
    program = info.line_program_for_CU(unit)
    if program is None:
        return []
    found: Dict[int, Line] = {}
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and not before.end_sequence and before.address < state.address:
            for address in addresses:
                if before.address <= address < state.address and before.line:
                    found[address] = (_file(program, before.file), before.line)
        before = state
    return list(found.items())


def _file(program: Any, number: int) -> str:
    """Of the line table's list of files, which counts from 1 before DWARF 5."""
    header = program.header
    first = 0 if header.version >= 5 else 1
    entry = header.file_entry[number - first]
    folders = header.include_directory
    at = entry.dir_index - first
    folder = folders[at] if 0 <= at < len(folders) else b""
    return posixpath.join(folder.decode("utf-8", "replace"), entry.name.decode("utf-8", "replace"))
