"""Which compilers made an object file, and with which options: the texts that DW_AT_producer points to.

They are looked for as texts in the sections of strings: an engine's debug information has gigabytes, and it takes
seconds to look at each of its units. GCC writes its options into them (-grecord-gcc-switches, on by default), clang its
release alone.
"""

from __future__ import annotations

import mmap
import re
import time
import zlib
from typing import Dict, Iterator, NamedTuple, Optional, Sequence, Set, Tuple, Union

from gdbext.capture.elf.layout import SHF_COMPRESSED, SHT_NOBITS
from gdbext.capture.elf.reader import Section
from gdbext.capture.elf.unpacked import unpacked_size
from gdbext.capture.gpu_code.fatbins import ZSTD
from gdbext.capture.gpu_code.unpacking import decompress

_STRINGS = (b".debug_str", b".debug_line_str")
_BEGINNINGS = (b"GNU C", b"GNU F", b"clang version ", b"clang LLVM ")
_LONGEST = 8192  # bytes of a producer
_LONGEST_NAME = 64  # of a distribution, before "clang version"
_MOST = 4096  # different ones
_PIECE = 64 << 20
_MOST_UNPACKED = 256 << 20
_SECONDS = 5.0  # of the processor, for one file
_CHDR = 24  # bytes before the content of a compressed section
_ZLIB, _ZSTD = 1, 2
_NAME = re.compile(r"GNU \S+ \d[\d.]*|.{0,64}?clang (?:version|LLVM \(rustc version) [\d.]+")
_LEVEL = re.compile(r"(?<!\S)-O(\w*)")
Bytes = Union[bytes, mmap.mmap]


class Compiled(NamedTuple):
    """What the producers say together. `inlined` is None where none of them says how it optimised."""

    compilers: Tuple[str, ...] = ()
    levels: Tuple[str, ...] = ()
    inlined: Optional[bool] = None
    lines_only: bool = False  # -g1: no variables
    in_objects: bool = False  # -gsplit-dwarf: most of it lies in .dwo files beside the objects
    problem: str = ""


def compiled(data: mmap.mmap, sections: Sequence[Section]) -> Compiled:
    """Of a file with debug information."""
    until = time.thread_time() + _SECONDS
    found: Set[str] = set()
    in_objects, problem = False, ""
    for section in sections:
        if section.name not in _STRINGS or section.kind == SHT_NOBITS:
            continue
        content = _content(data, section)
        if content is None:
            problem = f"{section.name.decode()} is compressed and could not be read"
            continue
        texts, start, end = content
        in_objects = in_objects or texts.find(b".dwo\0", start, end) >= 0
        for text in _producers(texts, start, end, until):
            found.add(text)
            if len(found) >= _MOST:
                break
        if time.thread_time() > until:
            problem = f"not all of {section.name.decode()} was looked through within {_SECONDS:g} s"
    return _together(found, in_objects, problem)


def _content(data: mmap.mmap, section: Section) -> Optional[Tuple[Bytes, int, int]]:
    """The strings of a section: (bytes, start, end)."""
    end = min(section.offset + section.size, len(data))
    if not section.flags & SHF_COMPRESSED:
        return data, section.offset, end
    size = unpacked_size(lambda offset, length: data[offset : offset + length], section)
    if not 0 < size <= _MOST_UNPACKED:
        return None
    packed = data[section.offset + _CHDR : end]
    kind = int.from_bytes(data[section.offset : section.offset + 4], "little")
    if kind == _ZLIB:
        try:
            text: Optional[bytes] = zlib.decompressobj().decompress(packed, size)
        except zlib.error:
            return None
    else:
        text = decompress(packed, ZSTD, size, _MOST_UNPACKED) if kind == _ZSTD else None
    return (text, 0, len(text)) if text else None


def _producers(texts: Bytes, start: int, end: int, until: float) -> Iterator[str]:
    """Each text in [start, end) that begins like a producer."""
    for first in range(start, end, _PIECE):
        if time.thread_time() > until:
            return
        last = min(first + _PIECE + _LONGEST, end)
        for beginning in _BEGINNINGS:
            at = texts.find(beginning, first, last)
            while at >= 0 and time.thread_time() <= until:
                text_start = texts.rfind(b"\0", max(start, at - _LONGEST_NAME), at) + 1 or max(
                    start, at - _LONGEST_NAME
                )
                ends = texts.find(b"\0", at, min(at + _LONGEST, end))
                text = texts[text_start : ends if ends >= 0 else last].decode("utf-8", "replace")
                if _NAME.match(text):
                    yield text
                at = texts.find(beginning, max(ends, at + 1), last)


def _together(producers: Set[str], in_objects: bool, problem: str) -> Compiled:
    names: Dict[str, None] = {}
    levels: Set[str] = set()
    inlined: Set[bool] = set()
    sparse: Set[bool] = set()
    for text in sorted(producers):
        name = _NAME.match(text)
        if name is None or text.startswith("GNU AS"):
            continue
        names[f"{name[0]})" if "(" in name[0] else name[0]] = None
        if not text.startswith("GNU") or " -" not in text:
            continue  # it does not say its options
        sparse.add(re.search(r"(?<!\S)-g1(?!\S)", text) is not None)
        given = _LEVEL.findall(text)
        level = f"-O{given[-1] or '1'}" if given else "-O0"
        levels.add(level)
        inlined.add(level != "-O0" and not re.search(r"(?<!\S)-fno-inline(?!\S)", text))
    return Compiled(
        compilers=tuple(names),
        levels=tuple(sorted(levels)),
        inlined=any(inlined) if inlined else None,
        lines_only=sparse == {True},
        in_objects=in_objects,
        problem=problem,
    )
