"""What one object file was left with when it was built, stripped and installed."""

from __future__ import annotations

import errno
import os
import struct
from typing import Dict, Iterable, Mapping, Optional, Sequence, Set

from gdbext.capture.build_facts.compilers import Compiled, compiled
from gdbext.capture.build_facts.frame_pointers import frame_pointers
from gdbext.capture.elf.layout import SHF_ALLOC, SHT_DYNSYM, SHT_NOBITS, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB, SYMBOL
from gdbext.capture.elf.object_file import build_id_of, segments_of
from gdbext.capture.elf.reader import ElfSymbols, Section
from gdbext.capture.elf.separate_debug import separate_debug_file
from gdbext.capture.elf.unpacked import MORE_SYMBOLS
from gdbext.capture.gpu_code.has_lines import device_code_of
from gdbext.model.build_report import BuiltFile
from gdbext.safe_open.kept_open_files import Opened, Shelf
from gdbext.safe_open.regular_files import Refused

DAMAGED = (OSError, ValueError, IndexError, OverflowError, MemoryError, struct.error)
"""What reading a file of unknown origin may raise."""
_INFO = (b".debug_info", b".zdebug_info")
_MOST_SEARCHED = 1 << 30  # bytes of one section


def built_file(path: str, file: Opened, environment: Mapping[str, str], shelf: Optional[Shelf] = None) -> BuiltFile:
    """All that is known of a file; `problem` says what could not be read. `path` is what people call it.

    `environment`: where debuginfod keeps what it fetched, as its client finds it (debuginfod-find(1))."""
    try:
        with file.stream() as stream:
            elf = ElfSymbols(stream)
            sections, machine = elf.sections, elf.machine
        with file.mapped() as data:
            build_id = build_id_of(file.read, segments_of(file.read)) or ""
            where, opened = "inside", file
            if not _has(sections, _INFO):
                apart = separate_debug_file(file, data, sections, shelf)
                cached = None if apart else _cached(build_id, environment, shelf or Shelf())
                where, opened = ("apart", apart.file) if apart else ("cached", cached) if cached else ("none", file)
            code = (
                compiled(data, sections) if where == "inside" else _elsewhere(opened) if where != "none" else Compiled()
            )
            return BuiltFile(
                path=path,
                build_id=build_id,
                symbols=_symbols(sections),
                debug="objects" if code.in_objects else where,
                debug_file="" if where in ("inside", "none") else opened.real_path,
                compilers=code.compilers,
                optimised=code.levels,
                inlined=code.inlined,
                lines_only=code.lines_only,
                frame_pointers=frame_pointers(machine, data, sections),
                device_code=device_code_of(file),
                problem=code.problem,
            )
    except DAMAGED as error:
        return BuiltFile(path=path, problem=_why(error))


def texts_in(file: Opened, texts: Iterable[bytes]) -> Set[bytes]:
    """Which of the texts stand in a file: as constants, or as parts of names. Raises what is in DAMAGED."""
    wanted = set(texts)
    found: Set[bytes] = set()
    with file.stream() as stream:
        sections = ElfSymbols(stream).sections
    with file.mapped() as data:
        for section in sections:
            constants = section.kind == SHT_PROGBITS and section.flags & SHF_ALLOC
            if section.kind != SHT_STRTAB and not constants:
                continue
            if section.name.startswith((b".debug", b".nv_fatbin", b"__nv", b".text", b".eh_frame")):
                continue
            end = section.offset + min(section.size, _MOST_SEARCHED)
            found |= {text for text in wanted - found if data.find(text, section.offset, end) >= 0}
    return found


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno == errno.EINVAL and not isinstance(error, Refused):
        return "an ELF table is damaged: it lies beyond the end of any file"
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _has(sections: Sequence[Section], names: Iterable[bytes]) -> bool:
    return any(one.name in names and one.kind != SHT_NOBITS and one.size for one in sections)


def _symbols(sections: Sequence[Section]) -> str:
    """One of model.build_report.SYMBOLS."""
    filled: Dict[int, int] = {}
    for one in sections:
        filled[one.kind] = max(filled.get(one.kind, 0), one.size)
    if filled.get(SHT_SYMTAB, 0) > SYMBOL.size:  # the first says nothing
        return "all"
    if _has(sections, (MORE_SYMBOLS,)):
        return "functions"
    return "exported" if filled.get(SHT_DYNSYM, 0) > SYMBOL.size else "none"


def _elsewhere(file: Opened) -> Compiled:
    with file.stream() as stream:
        sections = ElfSymbols(stream).sections
    with file.mapped() as data:
        return compiled(data, sections)


def _cached(build_id: str, environment: Mapping[str, str], shelf: Shelf) -> Optional[Opened]:
    """What debuginfod's client has fetched already."""
    home = environment.get("HOME", "")
    caches = [
        environment.get("DEBUGINFOD_CACHE_PATH", ""),
        f"{environment.get('XDG_CACHE_HOME') or f'{home}/.cache'}/debuginfod_client",
        f"{home}/.debuginfod_client_cache",
    ]
    for cache in caches if build_id else ():
        try:
            found = shelf.open(os.path.join(cache, build_id, "debuginfo"))
        except OSError:
            continue
        if found.size:
            return found
    return None
