"""Where the code of an object file throws: the calls of __cxa_throw, found in its bytes (x86-64; layout: elf(5)).

A breakpoint on such a call costs nothing until that very `throw` runs; one on __cxa_throw would stop every exception of
the process. Found without symbols and without debug information.
"""

from __future__ import annotations

import re
import struct
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set

from gdbext.capture.elf.reader import ElfSymbols, Section
from gdbext.opener import files
from gdbext.opener.shelf import Shelf

THROW = "__cxa_throw"
LARGEST_CODE = 256 << 20
"""Bytes of code that are searched in one file: about a second for 200 MB."""
_SHF_EXECINSTR, _SHT_RELA, _SHT_DYNSYM = 4, 4, 11
_RELOCATION = struct.Struct("<QQq")  # where, symbol << 32 | kind, addend
_SYMBOL = struct.Struct("<IBBHQQ")
_JUMP, _CALL = b"\xff\x25", b"\xff\x15"  # through the table of addresses, relative to the next instruction
_MARKS = (0, -4, -1, -5)  # of a stub's entry before its jump: nothing, endbr64, bnd, both
_BEFORE = 96
_PIECE = 1 << 16  # code in which the calls of one function have nearly the same upper bytes
# Loads of the second argument, the typeinfo: `lea x(%rip),%rsi`, `mov x(%rip),%rsi`; through %rax at -O0.
_LOADS = re.compile(rb"\x48([\x8d\x8b])(?:\x35(....)|\x05(....)\x48\x89\xc6)", re.DOTALL)


class ThrowSite(NamedTuple):
    """One call. `typeinfo` is where the thrown type's typeinfo lies (or, when `indirect`, where its address stands)."""

    address: int  # of the call, as linked
    typeinfo: Optional[int] = None  # as linked; None when the code before the call does not show it
    indirect: bool = False


def mentions(path: str, texts: Iterable[bytes]) -> bool:
    """Whether any of the texts stands in the file. Raises OSError."""
    try:
        data = Shelf().open(path).mapped()
    except ValueError:  # an empty file
        return False
    with data:
        return any(data.find(text) >= 0 for text in texts)


def throw_sites(path: str) -> List[ThrowSite]:
    """All calls of __cxa_throw in a file, in order of their addresses; none where it throws nothing itself.

    Raises OSError, and ValueError for what is no ELF file or has too much code.
    """
    with files.stream(path) as file:
        elf = ElfSymbols(file)
        slots = set(_slots(elf))
        own = elf.look_up([THROW]).values()  # with libstdc++ inside
        code = [section for section in elf.sections if section.flags & _SHF_EXECINSTR and section.kind == 1]
        if sum(section.size for section in code) > LARGEST_CODE:
            raise ValueError(f"more than {LARGEST_CODE >> 20} MiB of code")
        texts = [(section, elf.content(section)) for section in code] if slots or own else []
    entries = set(own)
    sites: List[ThrowSite] = []
    for section, data in texts:
        for at in _through(data, section, _JUMP, slots):
            entries.update(section.address + at + mark for mark in _MARKS)
        sites += [_site(data, section, at) for at in _through(data, section, _CALL, slots)]
    for section, data in texts:
        sites += [_site(data, section, at) for at in _direct(data, section, entries)]
    return sorted(sites)


def _slots(elf: ElfSymbols) -> Iterator[int]:
    """Addresses in the file's tables that the loader fills with the address of __cxa_throw."""
    wanted: Set[int] = set()
    for table in elf.sections:
        if table.kind == _SHT_DYNSYM and table.link < len(elf.sections):
            names = elf.content(elf.sections[table.link])
            data = elf.content(table)
            for index, symbol in enumerate(_SYMBOL.iter_unpack(data[: len(data) // _SYMBOL.size * _SYMBOL.size])):
                at = symbol[0]
                if names[at : at + len(THROW) + 1] == THROW.encode() + b"\0":
                    wanted.add(index)
    for table in elf.sections:
        if table.kind == _SHT_RELA and wanted:
            data = elf.content(table)
            for where, info, _addend in _RELOCATION.iter_unpack(data[: len(data) // 24 * 24]):
                if info >> 32 in wanted:
                    yield where


def _through(data: bytes, section: Section, opcode: bytes, slots: Set[int]) -> Iterator[int]:
    """Offsets of the jumps or calls through one of the slots."""
    if not slots:
        return
    for found in re.finditer(re.escape(opcode), data):
        at = found.start()
        if at + 6 <= len(data):
            (distance,) = struct.unpack_from("<i", data, at + 2)
            if section.address + at + 6 + distance in slots:
                yield at


def _direct(data: bytes, section: Section, entries: Set[int]) -> Iterator[int]:
    """Offsets of the relative calls of one of the entries. The upper bytes of the distance are all but known, so that
    the search stays in the regular expression: code has millions of bytes that look like a call."""
    unpack, base = struct.Struct("<i").unpack_from, section.address + 5
    for start in range(0, len(data) if entries else 0, _PIECE):
        upper: Set[int] = set()
        for entry in entries:
            most = entry - base - start
            upper.update(range(most - _PIECE >> 16, (most >> 16) + 1))
        third, fourth = (b"".join({b"\\x%02x" % (one >> shift & 0xFF) for one in upper}) for shift in (0, 8))
        call = re.compile(rb"\xe8(?=..[" + third + rb"][" + fourth + rb"])", re.DOTALL)
        for found in call.finditer(data, start, min(len(data), start + _PIECE + 4)):
            at = found.start()
            if at < start + _PIECE and base + at + unpack(data, at + 1)[0] in entries:
                yield at


def _site(data: bytes, section: Section, at: int) -> ThrowSite:
    start = max(0, at - _BEFORE)
    loads: Sequence[re.Match[bytes]] = list(_LOADS.finditer(data, start, at))
    if not loads:
        return ThrowSite(section.address + at)
    load = loads[-1]
    (distance,) = struct.unpack("<i", load[2] or load[3])
    after = load.start() + 7
    return ThrowSite(section.address + at, section.address + after + distance, load[1] == b"\x8b")
