"""Bytes of a file -> lines of text: limits, encodings, and files that are no text at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Tuple

LIMIT = 64 << 20
"""Bytes that are read of one text. Of a longer one the head (who was started) and the tail (where it hung) are read."""

HEAD = 16 << 20

LONGEST_LINE = 16 << 10
"""Characters of one line that are looked at; gdb prints some thousand for deep templates."""

_KNOWN_BINARIES = (
    (b"\x7fELF", "an ELF file; open a core file in gdb and type llm-nccl-diagnose there"),
    (b"\x1f\x8b", "compressed by gzip; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd; unpack it first"),
    (b"\xfd7zXZ", "compressed by xz; unpack it first"),
    (b"BZh", "compressed by bzip2; unpack it first"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
)
_CONTROL = bytes(code for code in range(32) if code not in b"\b\t\n\v\f\r\x1b") + b"\x7f"
"""Bytes that no tool prints; terminals' colours and progress bars begin with the others."""
_UTF16 = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class Source:
    """One text and what was wrong with reading it. `data` is already cut to the limit."""

    name: str
    data: bytes
    problems: Tuple[str, ...] = ()


def head_and_tail(name: str, data: bytes, limit: int = LIMIT) -> Source:
    """At most `limit` bytes: the head and, where that is not all, the tail."""
    if len(data) <= limit:
        return Source(name, data)
    head = min(HEAD, limit // 2)
    skipped = len(data) - limit
    text = f"{name}: {len(data) >> 20} MiB; {skipped >> 20} MiB in the middle were not read"
    return Source(name, data[:head] + b"\n" + data[-(limit - head) :], (text,))


def as_text(source: Source) -> Tuple[str, Tuple[str, ...]]:
    """The text, or none and the reason why these bytes are no text. What a stack says is ASCII: bytes that are wrong
    in UTF-8 become replacement marks."""
    data = source.data
    if not data.strip():
        return "", (f"{source.name}: empty",)
    for magic, what in _KNOWN_BINARIES:
        if data.startswith(magic):
            return "", (f"{source.name}: not text but {what}",)
    encoding = next((name for mark, name in _UTF16 if data.startswith(mark)), "") or _guess_utf16(data[:4096])
    if encoding:
        return data.decode(encoding, "replace"), ()
    start = data[: 64 << 10]
    control = len(start) - len(start.translate(None, _CONTROL))
    if start.count(0) * 50 > len(start) or control * 25 > len(start):
        return "", (f"{source.name}: binary data, not text",)
    return data.decode("utf-8", "replace"), ()


def _guess_utf16(start: bytes) -> str:
    """UTF-16 without a mark: every other byte of Latin text is zero."""
    half = len(start) // 2
    if half < 8:
        return ""
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if odd * 10 > half * 8 and even * 10 < half:
        return "utf-16-le"
    return "utf-16-be" if even * 10 > half * 8 and odd * 10 < half else ""


def lines(text: str) -> Iterator[str]:
    """Lines without their ends; a carriage return (of a progress bar) ends a line too."""
    start, length = 0, len(text)
    while start < length:
        end = text.find("\n", start)
        end = length if end < 0 else end
        line = text[start:end]
        for part in line.rstrip("\r").split("\r") if "\r" in line else (line,):
            yield part[:LONGEST_LINE]
        start = end + 1
