"""Unwind entries of an object file (.eh_frame; Linux Standard Base, chapter 10.6): find those of some addresses."""

from __future__ import annotations

import bisect
import mmap
import struct
from typing import Dict, Iterable, NamedTuple, Optional, Sequence, Tuple, Union

from gdbext.capture.elf.layout import SHT_NOBITS
from gdbext.capture.elf.reader import Section

_LONGEST_ENTRY = 1 << 17  # bytes; the longest of libtorch_cuda.so has a few thousand
_LONGEST_COMMON = 1 << 12
_MOST = 64 << 20  # bytes of an excerpt
_DATAREL_SDATA4 = 0x3B  # how the table of .eh_frame_hdr is encoded by every linker
_ABSOLUTE = 0  # DW_EH_PE_absptr
_OMITTED = 0xFF  # DW_EH_PE_omit


class Entry(NamedTuple):
    """How to unwind from one function: the instructions of DWARF's call frame information, and what they count in."""

    start: int  # address of the function
    size: int
    code_step: int
    data_step: int
    initial: bytes
    instructions: bytes
    call_sites: Optional[int] = None  # address of the table that says what cleans up behind which call


class UnwindTable:
    """Finds entries by the binary search table of .eh_frame_hdr, which every linker writes."""

    def __init__(self, data: mmap.mmap, sections: Sequence[Section]) -> None:
        self._data = data
        by_name = {section.name: section for section in sections}
        header, frames = by_name.get(b".eh_frame_hdr"), by_name.get(b".eh_frame")
        if header is None or frames is None or frames.kind == SHT_NOBITS:
            raise ValueError("no unwind table")
        self._header, self._frames = header, frames
        self._commons: Dict[int, _Common] = {}
        version, _frame_encoding, count_encoding, table_encoding = data[header.offset : header.offset + 4]
        if version != 1 or count_encoding != 3 or table_encoding != _DATAREL_SDATA4:
            raise ValueError("an unwind table of an unknown form")
        self._count: int = struct.unpack_from("<I", data, header.offset + 8)[0]
        if self._count * 8 + 12 > header.size:
            raise ValueError("the unwind table is damaged")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> int:
        """The first address of an entry; read where it stands, for a search looks at few of them."""
        start: int = struct.unpack_from("<i", self._data, self._header.offset + 12 + 8 * number)[0]
        return start + self._header.address

    def excerpt(self, addresses: Iterable[int]) -> bytes:
        """The content of a new .eh_frame: what covers the addresses or the calls before them, addresses absolute."""
        numbers = {bisect.bisect_right(self, one - back) - 1 for one in addresses for back in (0, 1)}
        common: Dict[int, int] = {}  # address of a CIE in the file -> where it is in the new section
        out = bytearray()
        for number in sorted(number for number in numbers if number >= 0):
            if len(out) > _MOST:
                raise ValueError("its unwind entries have no size")
            entry = self._header.offset + 12 + 8 * number
            (relative,) = struct.unpack_from("<i", self._data, entry + 4)
            self._copy(relative + self._header.address, common, out)
        return bytes(out)

    def entry(self, address: int) -> Optional[Entry]:
        """The entry that covers an address. Raises `ValueError` where it is damaged, or of a form unknown to us."""
        number = bisect.bisect_right(self, address) - 1
        if number < 0:
            return None
        (relative,) = struct.unpack_from("<i", self._data, self._header.offset + 16 + 8 * number)
        start = self._offset(relative + self._header.address)
        length, back = self._head(start)
        cie = self._common(start + 4 - back)
        begin, size, instructions = self._range(start, length, cie)
        if not begin <= address < begin + size:
            return None
        sites = self._call_sites(start, cie)
        return Entry(begin, size, cie.code_step, cie.data_step, cie.instructions, instructions, sites)

    def _call_sites(self, start: int, cie: _Common) -> Optional[int]:
        """Where the exception data of an entry lie; None where it has none."""
        width = _FORMS.get(cie.encoding & 15, ("", 0))[1]
        form, _ = _FORMS.get(cie.data_encoding & 15, ("", 0))
        if cie.data_encoding == _OMITTED or not form or cie.data_encoding & 0xF0 not in (0, 0x10):
            return None
        _, at = unsigned(self._data, start + 8 + 2 * width)
        (address,) = struct.unpack_from(form, self._data, at)
        if address and cie.data_encoding & 0x10:  # relative to where it stands
            address += self._frames.address + at - self._frames.offset
        return address & (1 << 64) - 1 if address else None

    def _head(self, start: int) -> Tuple[int, int]:
        """Length of an entry, and how far before it its common part lies."""
        length, back = struct.unpack_from("<II", self._data, start)
        if length > _LONGEST_ENTRY or not back:
            raise ValueError("an unwind entry of an unknown form, or without an end")
        return length, back

    def _common(self, start: int) -> _Common:
        """Many entries share one."""
        if start < 0:
            raise ValueError("an unwind entry without its common part")
        if start not in self._commons:
            self._commons[start] = _Common(self._data, start)
        return self._commons[start]

    def _offset(self, address: int) -> int:
        if not self._frames.address <= address < self._frames.address + self._frames.size:
            raise ValueError("an unwind entry lies outside of its section")
        return self._frames.offset + address - self._frames.address

    def _copy(self, address: int, common: Dict[int, int], out: bytearray) -> None:
        start = self._offset(address)
        length, back = self._head(start)
        parent = start + 4 - back
        cie = self._common(parent)
        if parent not in common:
            common[parent] = len(out)
            out += cie.rewritten()
        begin, size, instructions = self._range(start, length, cie)
        body = struct.pack("<QQ", begin, size) + b"\0" + instructions  # no augmentation data
        body += bytes(-(len(body) + 4) % 8)  # DW_CFA_nop
        out += struct.pack("<II", len(body) + 4, len(out) + 4 - common[parent]) + body

    def _range(self, start: int, length: int, cie: _Common) -> Tuple[int, int, bytes]:
        """First address, size, and instructions of an entry."""
        at = start + 8
        form, width = _FORMS.get(cie.encoding & 15, ("", 0))
        if not form or cie.encoding & 0x70 not in (0, 0x10):
            raise ValueError("unwind entries of an unknown encoding")
        (begin,) = struct.unpack_from(form, self._data, at)
        if cie.encoding & 0x70:  # relative to where it stands
            begin += self._frames.address + at - self._frames.offset
        (size,) = struct.unpack_from(form.upper(), self._data, at + width)
        at += 2 * width
        if cie.augmented:
            skip, at = unsigned(self._data, at)
            at += skip
        return begin & (1 << 64) - 1, size, self._data[at : start + 4 + length]


def relocate_entries(entries: bytes, bias: int) -> bytes:
    """What `UnwindTable.excerpt` made, for code that lies elsewhere."""
    out = bytearray(entries)
    at = 0
    while at < len(out):
        length, back, begin = _RECORD.unpack_from(out, at)
        if back:  # not the common part
            _RECORD.pack_into(out, at, length, back, begin + bias & (1 << 64) - 1)
        at += 4 + length
    return bytes(out)


_RECORD = struct.Struct("<IIQ")  # length, distance of the common part, first address
_FORMS = {0: ("<q", 8), 4: ("<q", 8), 12: ("<q", 8), 3: ("<i", 4), 11: ("<i", 4)}
"""DW_EH_PE_absptr, udata8, sdata8, udata4, sdata4: how they are read, and their size."""


class _Common:
    """A CIE: what several entries share."""

    def __init__(self, data: mmap.mmap, start: int) -> None:
        length, identity = struct.unpack_from("<II", data, start)
        if identity or length > _LONGEST_COMMON:
            raise ValueError("an unwind entry without its common part, or with one that does not end")
        self._version = data[start + 8]
        end = data.find(b"\0", start + 9, start + 4 + length)
        self._letters = data[start + 9 : end]
        code, at = unsigned(data, end + 1)
        begin = at
        self.data_step, at = read_sleb128(data, at)
        align = data[begin:at]
        register, at = (data[at], at + 1) if self._version == 1 else unsigned(data, at)
        self.code_step = code
        self._numbers = _as_uleb(code) + align + (bytes([register]) if self._version == 1 else _as_uleb(register))
        self.augmented = self._letters.startswith(b"z")
        self.encoding = _ABSOLUTE
        self.data_encoding = _OMITTED
        if self._letters and not self.augmented:
            raise ValueError("an unwind entry of an unknown form")
        if self.augmented:
            size, at = unsigned(data, at)
            self._read_augmentation(data, at)
            at += size
        self.instructions = data[at : start + 4 + length]

    def _read_augmentation(self, data: mmap.mmap, at: int) -> None:
        for letter in self._letters[1:]:
            if letter == ord("R"):
                self.encoding = data[at]
                at += 1
            elif letter == ord("L"):
                self.data_encoding = data[at]
                at += 1
            elif letter == ord("P"):
                width = _FORMS.get(data[at] & 15, ("", 0))[1]
                if not width or data[at] & 0x70 == 0x50:
                    raise ValueError("a personality routine of an unknown encoding")
                at += 1 + width
            elif letter not in b"SB":
                raise ValueError("an augmentation of an unknown letter")

    def rewritten(self) -> bytes:
        """The same rules, for entries with absolute addresses and no exception data."""
        marks = bytes(letter for letter in self._letters if letter in b"SB")  # signal frame, signed return addresses
        body = bytes([self._version]) + b"zR" + marks + b"\0" + self._numbers + b"\1" + bytes([_ABSOLUTE])
        body += self.instructions
        body += bytes(-(len(body) + 4) % 8)
        return struct.pack("<II", len(body) + 4, 0) + body


def unsigned(data: Union[bytes, mmap.mmap], at: int) -> Tuple[int, int]:
    """A ULEB128 number, and where it ends. Raises `ValueError` for one that does not."""
    value = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("a number without an end")


def read_sleb128(data: Union[bytes, mmap.mmap], at: int) -> Tuple[int, int]:
    """An SLEB128 number, and where it ends."""
    value, end = unsigned(data, at)
    return (value - (1 << 7 * (end - at)) if data[end - 1] & 64 else value), end


def _as_uleb(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
