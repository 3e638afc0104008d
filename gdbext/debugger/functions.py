"""Where a function of the target lies: as gdb says it, else as the libraries' own tables do."""

from __future__ import annotations

import os
import re
import struct
from typing import Optional

import gdb

from gdbext.capture.elf_symbols import ElfSymbols
from gdbext.capture.maps import MemoryMap, read_maps
from gdbext.model.missing import Maybe, Missing

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
    if _is_code(code, address):
        return address or 0
    address = _exported(pid, code, function)
    return address or 0 if _is_code(code, address) else Missing(f"the process has no function {function}")


def _is_code(code: MemoryMap, address: Optional[int]) -> bool:
    mapping = code.find(address) if address else None
    return mapping is not None and mapping.executable


def _exported(pid: int, code: MemoryMap, function: str) -> Optional[int]:
    for mapping in code:
        if mapping.is_file and not mapping.offset and _LIBRARIES.match(os.path.basename(mapping.path)):
            try:
                with open(f"/proc/{pid}/root{mapping.path}", "rb") as file:
                    found = ElfSymbols(file).look_up((function,))
            except (OSError, ValueError, struct.error):
                continue
            if function in found:
                return mapping.start + found[function]
    return None
