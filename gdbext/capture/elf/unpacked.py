"""How many bytes a section of an object file has for a debugger: packed ones are unpacked before they are read.

Forms: SHFSHF_COMPRESSED (elf(5), gABI), the older .zdebug_ of GNU, and .gnu_debugdata, which is a whole ELF file as an
xz stream (xz-file-format.txt 1.2: its last bytes say where the index lies, and the index how long each block is).
gdb believes these sizes, and takes memory for them.
"""

from __future__ import annotations

import struct
from typing import Callable, Optional, Tuple

from gdbext.capture.elf.layout import SHF_COMPRESSED, SHT_NOBITS
from gdbext.capture.elf.reader import Section

MORE_SYMBOLS = b".gnu_debugdata"
NO_FILE_SIZE = 1 << 62
"""Of what does not say how long it is."""
_CHDR = struct.Struct("<IIQQ")  # type, reserved, size, alignment
_OLD = struct.Struct(">4sQ")  # "ZLIB", size
_XZ_FOOTER = struct.Struct("<II2s2s")  # checksum, size of the index / 4 - 1, flags, "YZ"
_MOST_INDEX = 1 << 20  # bytes
_LONGEST_NUMBER = 9  # bytes

Read = Callable[[int, int], bytes]
"""(offset, size) -> bytes of the file; shorter where it ends."""


def is_packed(section: Section) -> bool:
    """Whether a debugger takes memory of its own for what is in it."""
    if section.kind == SHT_NOBITS:
        return False
    return bool(section.flags & SHF_COMPRESSED) or section.name.startswith(b".zdebug_") or section.name == MORE_SYMBOLS


def unpacked_size(read: Read, section: Section) -> int:
    """The bytes of a section as a debugger has them; `NO_FILE_SIZE` where nobody can say."""
    if not is_packed(section):
        return 0 if section.kind == SHT_NOBITS else section.size
    if section.flags & SHF_COMPRESSED:
        head = read(section.offset, _CHDR.size)
        return int(_CHDR.unpack(head)[2]) if len(head) == _CHDR.size else NO_FILE_SIZE
    if section.name == MORE_SYMBOLS:
        return _xz_size(read, section)
    head = read(section.offset, _OLD.size)
    # Without the word it is not packed.
    return int(_OLD.unpack(head)[1]) if len(head) == _OLD.size and head[:4] == b"ZLIB" else section.size


def _xz_size(read: Read, section: Section) -> int:
    end = section.offset + section.size
    foot = read(end - _XZ_FOOTER.size, _XZ_FOOTER.size) if section.size > _XZ_FOOTER.size else b""
    if len(foot) != _XZ_FOOTER.size or foot[-2:] != b"YZ":
        return section.size  # no xz stream: nobody unpacks it
    size = (_XZ_FOOTER.unpack(foot)[1] + 1) * 4
    if size > min(_MOST_INDEX, section.size - _XZ_FOOTER.size):
        return NO_FILE_SIZE
    index = read(end - _XZ_FOOTER.size - size, size)
    first = _number(index, 1)
    if index[:1] != b"\0" or first is None:
        return section.size
    count, at = first
    total = 0
    for _ in range(min(count, len(index))):
        packed = _number(index, at)
        length = _number(index, packed[1]) if packed else None
        if length is None:
            break
        total, at = total + length[0], length[1]
    return max(total, section.size)


def _number(data: bytes, at: int) -> Optional[Tuple[int, int]]:
    """A number of seven bits a byte, the lowest first, and where the next one begins."""
    found = 0
    for place, byte in enumerate(data[at : at + _LONGEST_NUMBER]):
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return found, at + place + 1
    return None
