"""Excerpts of object files: just what a debugger needs to unwind and name the code that occurs on copied stacks.

gdb reads every symbol and every unwind entry of a file before it says a word: 2.6 s for libtorch_cpu.so (530,000
symbols, 18 MB of .eh_frame; gdb 13.1), of which one look needs a few hundred. An excerpt is an ELF file of some
100 KB with the code sections that are in use (without their content), the unwind entries of the addresses that occur,
and the symbols around these addresses. What gdb says of them is what it says with the whole file.

A file with debug information is left to gdb, which reads lines and arguments from it, up to a limit: for each
million functions it took 8 s of CPU and 0.4 GB of memory (gdb 13.1). Of what is beyond the limit there are names only.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import math
import struct
import time
import zlib
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from gdbext.capture import user_cache
from gdbext.capture.elf.excerpt_file import Parts, Symbol
from gdbext.capture.elf.layout import SHT_SYMTAB, SYMBOL
from gdbext.capture.elf.object_file import build_id_of, segments_of
from gdbext.capture.elf.reader import CODE, ElfSymbols, Section, tables_of
from gdbext.capture.elf.separate_debug import IN_ANOTHER_FILE, LINK, SeparateDebugFile, separate_debug_file
from gdbext.capture.elf.unpacked import MORE_SYMBOLS, is_packed, unpacked_size
from gdbext.capture.elf.unwind_entries import UnwindTable
from gdbext.capture.symbols import large_symbol_tables
from gdbext.capture.symbols.large_symbol_tables import TimeUp
from gdbext.capture.symbols.symbol_index import MOST, SymbolIndex
from gdbext.safe_open.kept_open_files import Opened

LEAST_SYMBOL_BYTES = 1 << 19
"""Bytes of symbol table from which an excerpt is quicker than the file (21,000 symbols; gdb takes some 0.1 s)."""
LIMIT = 1 << 30
"""Bytes of symbols and debug information of one file beyond which gdb does not get it whole."""

_DEBUG = frozenset((b".debug_info", b".zdebug_info", b".debug_types"))  # what gdb goes through, to know what there is
_MORE_ENTRIES = b".debug_frame"
_STUBS = b".plt"
_LONGEST_NAME = 64 << 10
_MOST_NAMES = 64 << 20  # bytes of all names in an excerpt
_MOST_SYMBOLS = 1 << 18
_OVERLAP = 2  # an address at the end of a section counts for the next one too
Say = Callable[[int, int], None]


class Excerpt:
    """The excerpt of one file for a set of addresses (as linked). Raises `ValueError` when none can be made."""

    def __init__(self, file: Opened, cache: Optional[str] = None) -> None:
        """`cache`: folder of what was kept of earlier excerpts (user_cache.folder_of); `None`: nothing is."""
        self._file, self._cache = file, cache
        self._stream = file.stream()
        try:
            self._elf = ElfSymbols(self._stream)
            self._data = file.mapped()
        except BaseException:
            self._stream.close()
            raise
        self._sections = self._elf.sections

    def close(self) -> None:
        self._data.close()
        self._stream.close()

    @property
    def symbol_bytes(self) -> int:
        """Bytes of symbols and debug information that gdb would go through."""
        return self.debug + sum(table.size for table in tables_of(self._sections))

    @property
    def debug(self) -> int:
        """Bytes of debug information as gdb has them, here and in the file that it may have for itself."""
        return _debug_in(self._file, self._sections) + self._debug_apart

    @functools.cached_property
    def apart(self) -> Optional[SeparateDebugFile]:
        """The file that it may have for them, if gdb can have that one."""
        found = separate_debug_file(self._file, self._data, self._sections)
        if found is None or found.name is None:
            return found
        return None if any(section.name in IN_ANOTHER_FILE for section in _sections_of(found.file)) else found

    @functools.cached_property
    def _debug_apart(self) -> int:
        """Bytes in that file."""
        if not self.apart:
            return 0
        sections = _sections_of(self.apart.file)
        return _debug_in(self.apart.file, sections) + sum(table.size for table in tables_of(sections))

    @property
    def links(self) -> bool:
        """Whether it names a file with its debug information."""
        return self._has(LINK)

    @property
    def shares(self) -> bool:
        """Whether its debug information is in part in a file that it names."""
        return any(self._has(name) for name in IN_ANOTHER_FILE)

    @property
    def is_worthwhile(self) -> bool:
        """Whether the file is big, and says nothing that an excerpt would leave out (debug information)."""
        return self.symbol_bytes >= LEAST_SYMBOL_BYTES and not self.debug and not self._has(MORE_SYMBOLS)

    def _has(self, name: bytes) -> bool:
        return any(section.name == name for section in self._sections)

    def replaceable(self, addresses: Sequence[int]) -> bool:
        """Whether gdb says the same with an excerpt, however small the file is: nothing stands in another file; no
        address is in a stub of the procedure linkage table, whose names gdb makes itself, or in code without an unwind
        entry, whose instructions gdb looks at."""
        if self.debug or self._has(MORE_SYMBOLS) or self._has(_MORE_ENTRIES):
            return False
        unwind = UnwindTable(self._data, self._sections)
        for section, inside in self._in_code(addresses, 0):
            if section.name.startswith(_STUBS):
                return False
            if not all(unwind.entry(one) or unwind.entry(one - 1) for one in inside):
                return False
        return True

    def parts(self, addresses: Sequence[int], say: Say = lambda done, symbols: None, until: float = math.inf) -> Parts:
        """The excerpt for these addresses, sorted and as linked; without symbols when there is no time for them `until`
        then (CLOCK_MONOTONIC)."""
        found = self._in_code(addresses, 1)  # a call that does not return may be the last thing in it
        code = [section for section, _ in found]
        wanted = sorted({address for _, inside in found for address in inside})
        unwind = UnwindTable(self._data, self._sections).excerpt(wanted)
        try:
            symbols, named = tuple(self._symbols(wanted, say, until)), True
        except TimeUp:
            symbols, named = (), False
        more = bool(self._debug_apart) or self._has(MORE_SYMBOLS)
        exported = more and not any(section.kind == SHT_SYMTAB for section in self._sections)
        return Parts(self._elf.machine, self._elf.fixed, tuple(code), unwind, symbols, self.debug, named, exported)

    def _in_code(self, addresses: Sequence[int], behind: int) -> List[Tuple[Section, Sequence[int]]]:
        """The code sections with addresses in them, and so far behind them. Raises `ValueError` where these overlap."""
        found: List[Tuple[Section, Sequence[int]]] = []
        total = 0
        for section in self._sections:
            if section.flags & CODE == CODE:
                inside = _between(addresses, section.address, section.address + section.size + behind)
                total += len(inside)
                if total > _OVERLAP * len(addresses):
                    raise ValueError("its sections lie over each other")
                found += [(section, inside)] if inside else []
        return found

    def _symbols(self, addresses: Sequence[int], say: Say, until: float) -> List[Symbol]:
        """Symbols that cover one of the addresses, and those at the last start before each address."""
        kept: Dict[Symbol, int] = {}  # and where its name stands: both tables have what is exported
        numbers = sorted(self._numbers(addresses, say, until))
        if len(numbers) > _MOST_SYMBOLS:
            raise ValueError("its symbols lie over each other")
        first = length = 0
        for table in tables_of(self._sections):
            count = table.size // SYMBOL.size
            names = self._sections[table.link] if table.link < len(self._sections) else None
            for number in numbers[bisect.bisect_left(numbers, first) : bisect.bisect_left(numbers, first + count)]:
                name, info, other, _, value, size = SYMBOL.unpack_from(
                    self._data, table.offset + (number - first) * SYMBOL.size
                )
                if names is not None:
                    symbol = self._named(names, name, info, other, value, size)
                    length += len(symbol.name)
                    if length > _MOST_NAMES:
                        raise ValueError("the names of its symbols have no size")
                    kept.setdefault(symbol, name)
            first += count
        # Of several names for one address a debugger takes one by the order in which the file has them.
        return sorted(kept, key=lambda symbol: (symbol.value, kept[symbol]))

    def _numbers(self, addresses: Sequence[int], say: Say, until: float) -> Set[int]:
        """Of the symbols around these addresses, by what an earlier look kept."""
        large = self.symbols * SYMBOL.size >= LEAST_SYMBOL_BYTES
        name = self._cache_name() if large else None
        kept = user_cache.read(self._cache, name) if name else None
        if self.symbols > MOST:
            return self._symbols_by_sweep(addresses, kept, name, say, until)
        if kept is not None:
            with contextlib.suppress(ValueError):
                return SymbolIndex.load(kept).around(addresses)
        if time.monotonic() >= until:
            raise TimeUp
        index = SymbolIndex.of(self._elf)
        if name:
            self._keep(name, index.dump())
        return index.around(addresses)

    def _symbols_by_sweep(
        self, addresses: Sequence[int], kept: Optional[bytes], name: Optional[str], say: Say, until: float
    ) -> Set[int]:
        """The same for more symbols than an index is made of. What there was no time for is left to the next look."""
        pieces = large_symbol_tables.load(kept, self._elf) if kept is not None else []
        if not large_symbol_tables.is_whole(self._elf, pieces):
            pieces = large_symbol_tables.pieces_of(self._elf, lambda done: say(done, self.symbols), pieces, until)
            self._keep(name, large_symbol_tables.dump(pieces))
            if not large_symbol_tables.is_whole(self._elf, pieces):
                raise TimeUp
        return large_symbol_tables.symbols_around(self._elf, pieces, addresses, until)

    @property
    def symbols(self) -> int:
        """How many there are."""
        return sum(table.size // SYMBOL.size for table in tables_of(self._sections))

    def _keep(self, name: Optional[str], data: bytes) -> None:
        if name:
            user_cache.write(self._cache, name, data)

    def _cache_name(self) -> Optional[str]:
        """A name for this build. With the places of its tables: a stripped file has the build-id of the whole one."""
        build_id = build_id_of(self._file.read, segments_of(self._file.read))
        places = repr([(table.offset, table.size, table.link) for table in tables_of(self._sections)])
        codes = repr([(section.flags, section.address) for section in self._sections])
        # Anybody can write a build-id: what is kept of one user's file is not believed of another's.
        file_key = repr((self._file.owner, self._file.identity.content))
        return f"{build_id}-{zlib.crc32((places + codes + file_key).encode()):08x}.symbols" if build_id else None

    def _named(self, names: Section, name: int, info: int, other: int, value: int, size: int) -> Symbol:
        start = names.offset + name
        end = self._data.find(b"\0", start, min(start + _LONGEST_NAME, names.offset + names.size))
        return Symbol(self._data[start : end if end >= 0 else start], info, other, value, size)


def _debug_in(file: Opened, sections: Sequence[Section]) -> int:
    """Bytes that gdb goes through, or takes memory for to unpack them."""
    return sum(unpacked_size(file.read, one) for one in sections if one.name in _DEBUG or is_packed(one))


def _between(addresses: Sequence[int], start: int, end: int) -> Sequence[int]:
    """Those of sorted addresses in [start, end)."""
    return addresses[bisect.bisect_left(addresses, start) : bisect.bisect_left(addresses, end)]


def _sections_of(file: Opened) -> Sequence[Section]:
    try:
        with file.stream() as stream:
            return ElfSymbols(stream).sections
    except _DAMAGED:
        return ()


class Look(NamedTuple):
    """What gdb should get of a file."""

    parts: Optional[Parts] = None  # an excerpt; None: the file itself, unless `problem` says why not
    symbol_bytes: int = 0  # bytes that gdb would go through
    links: bool = False  # it names a file with its debug information
    apart: Optional[SeparateDebugFile] = None  # that file
    problem: Optional[str] = None


def look(
    file: Opened,
    addresses: Sequence[int],
    cache: Optional[str] = None,
    limit: int = LIMIT,
    say: Say = lambda done, symbols: None,
    until: float = math.inf,
    small: bool = False,
) -> Look:
    """The excerpt of a file for sorted `addresses` (as linked), unless the file itself is better, or none can be made.
    Beyond `limit` bytes (`Excerpt.symbol_bytes`) an excerpt is always better.
    `say` is told how many symbols are done, of how many, where that takes long; `until` is when it must have an end.
    `small`: also of files that gdb reads quickly, where it says the same."""
    try:
        with contextlib.closing(Excerpt(file, cache)) as excerpt:
            try:
                wanted = excerpt.is_worthwhile or excerpt.symbol_bytes > limit or excerpt.shares
                wanted = wanted or (small and excerpt.replaceable(addresses))
                parts = excerpt.parts(addresses, say, until) if wanted else None
            except _DAMAGED:
                parts = None
            problem = "its debug information is in part in another file" if excerpt.shares else None
            return Look(parts, excerpt.symbol_bytes, excerpt.links, excerpt.apart, problem)
    except _DAMAGED as error:
        return Look(problem=f"it cannot be read ({getattr(error, 'strerror', None) or error})")


_DAMAGED = (OSError, ValueError, IndexError, OverflowError, MemoryError, struct.error)
