"""One gzip file made of parts that several processes compressed: also readers of one member read it whole."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import BinaryIO, List

from gdbext.traces.gzip_text import LEVEL, LIBRARY

HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_END = b"\x03\x00"  # an empty last block


@dataclass
class Sum:
    """Check sum and length of text."""

    crc: int = 0
    length: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(crc32_combine(self.crc, other.crc, other.length), self.length + other.length)


class Part:
    """Compresses into a file; the end of a part is a whole byte, so that parts can stand one behind the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._engine = LIBRARY.compressobj(LEVEL, LIBRARY.DEFLATED, -15)
        self.sum = Sum()

    def write(self, text: bytes) -> None:
        self.sum = Sum(LIBRARY.crc32(text, self.sum.crc), self.sum.length + len(text))
        self._file.write(self._engine.compress(text))

    def close(self) -> None:
        self._file.write(self._engine.flush(LIBRARY.Z_FULL_FLUSH))


def compress_part(text: bytes) -> tuple[bytes, Sum]:
    """A short text as a part of its own."""
    engine = zlib.compressobj(6, zlib.DEFLATED, -15)
    return engine.compress(text) + engine.flush(zlib.Z_FULL_FLUSH), Sum(zlib.crc32(text), len(text))


def end(total: Sum) -> bytes:
    """What closes the file."""
    return _END + struct.pack("<II", total.crc, total.length & 0xFFFFFFFF)


def crc32_combine(first: int, second: int, length: int) -> int:
    """The CRC-32 of two texts, one behind the other, from those of each: zlib's crc32_combine."""
    if not length:
        return first
    odd = [0xEDB88320] + [1 << bit for bit in range(31)]  # the operator for one zero bit
    even = _matrix_square(odd)
    odd = _matrix_square(even)
    while length:
        even = _matrix_square(odd)
        if length & 1:
            first = _times(even, first)
        length >>= 1
        if not length:
            break
        odd = _matrix_square(even)
        if length & 1:
            first = _times(odd, first)
        length >>= 1
    return first ^ second


def _times(matrix: List[int], vector: int) -> int:
    total = 0
    for row in matrix:
        if not vector:
            break
        if vector & 1:
            total ^= row
        vector >>= 1
    return total


def _matrix_square(matrix: List[int]) -> List[int]:
    return [_times(matrix, row) for row in matrix]
