"""Which mapped files have the tensors of which engine's releases, by the names in them that stay in a release build."""

from __future__ import annotations

import functools
import re
import struct
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.knowledge.all_tensor_layouts import RELEASES
from gdbext.knowledge.row_kinds import ReleaseRow, StructRow
from gdbext.safe_open import files

_SECTIONS = (".dynstr", ".strtab", ".rodata")
"""Names of symbols, and of types (those that are thrown, shared or virtual have theirs as a constant)."""
_LITERAL = re.compile(r"\w+")
_PIECE = 8 << 20  # bytes that are searched at once
_OVERLAP = 4096  # a longer name is not found where two pieces meet
_MOST = 512 << 20  # bytes of one file


_STRUCTS: Dict[str, Dict[str, StructRow]] = {}


class Library(NamedTuple):
    """A file with an engine's tensors, and the tables that may be right for it."""

    path: str
    rows: Tuple[ReleaseRow, ...]


def libraries(bytes_of: TargetMemory) -> List[Library]:
    """Those of the selected inferior."""
    found = [Library(path, _rows_of(bytes_of.root + path)) for path in bytes_of.files() if path.startswith("/")]
    return [one for one in found if one.rows]


def tables(bytes_of: TargetMemory) -> Tuple[ReleaseRow, ...]:
    """The tables that some library of the inferior calls for, each once."""
    return tuple({row.id: row for library in libraries(bytes_of) for row in library.rows}.values())


def structs_of(row: ReleaseRow) -> Dict[str, StructRow]:
    """The structs of a table by id."""
    found = _STRUCTS.get(row.id)
    if found is None:
        found = _STRUCTS[row.id] = {one.id: one for one in row.structs}
    return found


def struct_named(row: ReleaseRow, name: str) -> Optional[StructRow]:
    """The struct that a type is, as the engine or the linker writes it."""
    return structs_of(row).get(row.same.get(name, name))


def _rows_of(path: str) -> Tuple[ReleaseRow, ...]:
    try:
        state = files.status(path)
    except OSError:
        return ()
    return _cached(path, state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=4096)
def _cached(path: str, *identity: int) -> Tuple[ReleaseRow, ...]:
    try:
        with files.stream(path) as stream:
            return rows_in(ElfSymbols(stream))
    except (OSError, ValueError, struct.error):
        return ()


def rows_in(file: ElfSymbols) -> Tuple[ReleaseRow, ...]:
    """The tables that the names in a file call for. Raises `ValueError` where it is damaged."""
    left = {pattern: re.compile(pattern.encode()) for row in RELEASES for pattern in (*row.names, *row.without)}
    words = {literal for pattern in left for literal in _literals(pattern)}
    found: Set[str] = set()
    for text in _texts(file):
        if any(word in text for word in words):  # much faster than a pattern, and nearly every library has none
            found.update(pattern for pattern, compiled in left.items() if compiled.search(text))
            left = {pattern: compiled for pattern, compiled in left.items() if pattern not in found}
    return tuple(row for row in RELEASES if found.issuperset(row.names) and found.isdisjoint(row.without))


def _literals(pattern: str) -> Iterator[bytes]:
    """What each alternative of a pattern begins with."""
    for alternative in pattern.split("|"):
        found = _LITERAL.match(alternative)
        assert found is not None, pattern
        yield found.group().encode()


def _texts(file: ElfSymbols) -> Iterator[bytes]:
    for section in file.sections:
        if section.name.decode("ascii", "replace") not in _SECTIONS:
            continue
        for start in range(0, min(section.size, _MOST), _PIECE):
            yield file.at(section.offset + start, min(_PIECE + _OVERLAP, section.size - start))


def known_releases(names: Iterable[ReleaseRow] = RELEASES) -> str:
    """The releases that there are tables of, for people."""
    return ", ".join(row.id for row in names)
