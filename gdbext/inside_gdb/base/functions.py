"""Where a function of the target lies: as gdb says it, else as the libraries' own tables do."""

from __future__ import annotations

import os
import re
import struct
from typing import Dict, Iterator, Optional, Sequence

import gdb

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.memory.maps import MemoryMap, read_maps
from gdbext.model.missing import Maybe, Missing
from gdbext.safe_open import files

_LIBRARIES = re.compile(r"lib(c|cuda|cudart)[-.]")


def address_of(pid: int, function: str) -> Maybe[int]:
    """The address of a function of the selected inferior, whose process is `pid`.

    gdb may not have read a library (`set auto-solib-add off`), or misread it (cuda-gdb 11.8 on a C library with
    .relr.dyn): what it says must lie in code, else the tables of the C library and of CUDA's are asked.
    """
    try:
        code = read_maps(pid)
    except OSError as error:
        return Missing(f"the map of the process cannot be read: {error.strerror}")
    address: Optional[int]
    try:
        address = int(gdb.parse_and_eval(f"(unsigned long)&{function}"))
    except (gdb.error, RuntimeError):
        address = None
    if not _is_code(code, address):
        address = next((one[function] for one in _tables(pid, code, _LIBRARIES, (function,)) if function in one), None)
    return address or 0 if _is_code(code, address) else Missing(f"the process has no function {function}")


def _is_code(code: MemoryMap, address: Optional[int]) -> bool:
    mapping = code.find(address) if address else None
    return mapping is not None and mapping.executable


def exported_functions(pid: int, library: re.Pattern[str], functions: Sequence[str]) -> Maybe[Dict[str, int]]:
    """Those of the functions that a library has, whatever others of their names the process has elsewhere."""
    try:
        code = read_maps(pid)
    except OSError as error:
        return Missing(f"the map of the process cannot be read: {error.strerror}")
    for found in _tables(pid, code, library, functions):
        if found:
            return {name: address for name, address in found.items() if _is_code(code, address)}
    return {}


def _tables(pid: int, code: MemoryMap, library: re.Pattern[str], functions: Sequence[str]) -> Iterator[Dict[str, int]]:
    """What each of the libraries exports of the functions, by address."""
    for mapping in code:
        if mapping.is_file and not mapping.offset and library.match(os.path.basename(mapping.path)):
            try:
                with files.stream(f"/proc/{pid}/root{mapping.path}") as file:
                    found = ElfSymbols(file).look_up(functions)
            except (OSError, ValueError, struct.error):
                continue
            yield {name: mapping.start + value for name, value in found.items()}
