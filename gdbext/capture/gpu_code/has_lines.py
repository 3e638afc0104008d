"""Whether the GPU code of an object file says which line an instruction is of (nvcc's -lineinfo), or more (-G)."""

from __future__ import annotations

import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.gpu_code.cubin import Cubin
from gdbext.capture.gpu_code.fatbins import CUBIN, DEBUG, PTX, Damaged, Entry, entries_in
from gdbext.capture.gpu_code.unpacking import LARGEST, decompress
from gdbext.model.build_report import DeviceCode
from gdbext.safe_open.kept_open_files import Opened

_SECONDS = 3.0  # of the processor, for one file
_MOST_LOOKED_INTO = 2048
_AT_ONCE = 64  # so many from all over the file are looked into, then as many beside them
_MOST_READ = 256 << 20  # bytes, unpacked


class _Look(NamedTuple):
    """What a cubin was built with."""

    lines: bool
    debug: bool


def device_code_of(file: Opened) -> Optional[DeviceCode]:
    """What the GPU code of a file is like; None without any. Raises OSError, and ValueError for what is no ELF file."""
    with file.stream() as stream:
        sections = ElfSymbols(stream).sections
    found: List[Entry] = []
    problem = ""
    try:
        for entry in entries_in(file.read, sections):
            found.append(entry)
    except Damaged as error:
        problem = str(error)
    return _described(file, found, problem) if found or problem else None


def _described(file: Opened, found: List[Entry], problem: str) -> DeviceCode:
    cubins = [entry for entry in found if entry.kind == CUBIN]
    looks = _looks(file, cubins)
    looks.update({number: _Look(True, True) for number, entry in enumerate(cubins) if entry.flags & DEBUG})
    return DeviceCode(
        sass=tuple(sorted({f"sm_{entry.gpu}" for entry in cubins}, key=_newest_last)),
        ptx=tuple(sorted({f"compute_{entry.gpu}" for entry in found if entry.kind == PTX}, key=_newest_last)),
        cubins=len(cubins),
        packed=sum(entry.packed for entry in cubins),
        looked_into=len(looks),
        with_lines=sum(look.lines for look in looks.values()),
        with_debug=sum(look.debug for look in looks.values()),
        problem=problem,
    )


def _looks(file: Opened, cubins: List[Entry]) -> Dict[int, _Look]:
    """By the number of a cubin: into as many as there is time for, from all over the file."""
    until = time.thread_time() + _SECONDS
    room = _MOST_READ
    found: Dict[int, _Look] = {}
    step = max(1, len(cubins) // _AT_ONCE)
    for first in range(step):
        for entry, number in ((cubins[number], number) for number in range(first, len(cubins), step)):
            if time.thread_time() > until or len(found) >= _MOST_LOOKED_INTO:
                return found
            size = max(entry.size, entry.unpacked)
            if size > min(room, LARGEST):
                continue
            room -= size
            data = file.read(entry.offset, entry.size)
            code = decompress(data, entry.flags, entry.unpacked) if entry.packed else data
            try:
                cubin = Cubin(code or b"")
                found[number] = _Look(cubin.has_lines or cubin.is_for_debugging, cubin.is_for_debugging)
            except ValueError:
                pass  # it is none: nobody knows what it has
    return found


def _newest_last(name: str) -> Tuple[int, str]:
    number = name.partition("_")[2]
    digits = number.rstrip("af")
    return int(digits), number
