"""Bytes of a file or a pipe -> lines of text: limits, encodings, and files that are no text at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import BinaryIO, Iterator, Tuple

LIMIT = 192 << 20
"""Bytes that are read of one text. Of a longer one the head (who was started) and the tail (where it hung) are read."""

HEAD = 32 << 20

LONGEST_LINE = 32 << 10
"""Bytes of one line that are looked at; gdb prints some thousand for deep templates."""

_CHUNK = 1 << 20
_BREAK = re.compile(rb"\r\n?|\n")
_KNOWN_BINARIES = (
    (b"\x7fELF", "an ELF file; give a core by its own option, not as text"),
    (b"\x1f\x8b", "compressed by gzip; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd; unpack it first"),
    (b"\xfd7zXZ", "compressed by xz; unpack it first"),
    (b"BZh", "compressed by bzip2; unpack it first"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
)
_UTF16 = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class Source:
    """One text and what was wrong with reading it. `data` is already cut to the limit."""

    name: str
    data: bytes
    problems: Tuple[str, ...] = ()


def read(name: str, file: BinaryIO, limit: int = LIMIT) -> Source:
    """Read a file or pipe in bounded memory: the head and, where that is not all, the tail."""
    head_size = min(HEAD, limit // 2)
    head, tail, total = bytearray(), bytearray(), 0
    while True:
        chunk = file.read(_CHUNK)
        if not chunk:
            break
        total += len(chunk)
        room = head_size - len(head)
        head += chunk[:room]
        tail += chunk[room:]
        if len(tail) > 2 * (limit - head_size):
            del tail[: len(tail) - (limit - head_size)]
    return _joined(name, bytes(head), bytes(tail[-(limit - head_size) :]), total)


def cut(name: str, data: bytes, limit: int = LIMIT) -> Source:
    """The same for bytes that are in memory."""
    if len(data) <= limit:
        return Source(name, data)
    head_size = min(HEAD, limit // 2)
    return _joined(name, data[:head_size], data[-(limit - head_size) :], len(data))


def _joined(name: str, head: bytes, tail: bytes, total: int) -> Source:
    skipped = total - len(head) - len(tail)
    if not skipped:
        return Source(name, head + tail)
    text = f"{name}: {total >> 20} MiB, of which {skipped >> 20} MiB in the middle were not read"
    return Source(name, head + b"\n" + tail, (text,))


def as_utf8(source: Source) -> Tuple[bytes, Tuple[str, ...]]:
    """The bytes as UTF-8, or none and the reason why they are no text."""
    data = source.data
    if not data.strip():
        return b"", (f"{source.name}: empty",)
    for magic, what in _KNOWN_BINARIES:
        if data.startswith(magic):
            return b"", (f"{source.name}: not text but {what}",)
    encoding = next((name for mark, name in _UTF16 if data.startswith(mark)), "") or _guess_utf16(data[:4096])
    if encoding:
        return data.decode(encoding, "replace").encode("utf-8", "replace"), ()
    start = data[: 64 << 10]
    if start.count(0) * 50 > len(start):
        return b"", (f"{source.name}: binary data, not text",)
    return data, ()


def _guess_utf16(start: bytes) -> str:
    """UTF-16 without a mark: every other byte of Latin text is zero."""
    half = len(start) // 2
    if half < 8:
        return ""
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if odd * 10 > half * 8 and even * 10 < half:
        return "utf-16-le"
    return "utf-16-be" if even * 10 > half * 8 and odd * 10 < half else ""


def lines(data: bytes) -> Iterator[str]:
    """Lines without their ends; a carriage return (of a progress bar) ends a line too.

    Broken UTF-8 becomes replacement marks: what a stack says is ASCII.
    """
    start = 0
    for found in _BREAK.finditer(data):
        yield data[start : min(found.start(), start + LONGEST_LINE)].decode("utf-8", "replace")
        start = found.end()
    if start < len(data):
        yield data[start : start + LONGEST_LINE].decode("utf-8", "replace")
