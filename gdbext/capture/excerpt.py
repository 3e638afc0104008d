"""Excerpts of object files: just what a debugger needs to unwind and name the code that occurs on copied stacks.

gdb reads every symbol and every unwind entry of a file before it says a word: 2.6 s for libtorch_cpu.so (530,000
symbols, 18 MB of .eh_frame; gdb 13.1), of which one look needs a few hundred. An excerpt is an ELF file of some
100 KB with the same code sections (without their content), the unwind entries of the addresses that occur, and the
symbols around these addresses. What gdb says of them is what it says with the whole file.

A file with debug information is left to gdb, which reads lines and arguments from it, up to a limit: for each
million functions it took 8 s of CPU and 0.4 GB of memory (gdb 13.1). Of what is beyond the limit there are names only.
"""

from __future__ import annotations

import bisect
import contextlib
import mmap
import struct
import zlib
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from gdbext.capture import symbol_sweep, user_cache
from gdbext.capture.elf_symbols import SYMTAB, ElfSymbols, Section, tables_of
from gdbext.capture.object_file import build_id_of, file_reader, segments_of
from gdbext.capture.symbol_index import MOST, SymbolIndex
from gdbext.capture.unwind_entries import UnwindTable

WORTH_IT = 1 << 19
"""Bytes of symbol table from which an excerpt is quicker than the file (21,000 symbols; gdb takes some 0.1 s)."""
LIMIT = 1 << 30
"""Bytes of symbols and debug information of one file beyond which gdb does not get it whole."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_PROGBITS, _STRTAB, _NOBITS = 1, 3, 8
_ALLOC, _EXEC = 2, 4
_DEBUG = frozenset((b".debug_info", b".zdebug_info", b".debug_types"))  # what gdb goes through, to know what there is
_ELSEWHERE = frozenset((b".gnu_debuglink", b".gnu_debugdata"))
_LONGEST_NAME = 64 << 10
Say = Callable[[int, int], None]


class _Symbol(NamedTuple):
    name: bytes
    info: int
    other: int
    value: int
    size: int


class Excerpt:
    """The excerpt of one file for a set of addresses (as linked). Raises `ValueError` when none can be made."""

    def __init__(self, path: str, cache: Optional[str] = None) -> None:
        """`cache`: folder of what was kept of earlier excerpts (user_cache.folder_of); `None`: nothing is."""
        self._path, self._cache = path, cache
        self._stream = open(path, "rb")  # noqa: SIM115 - `close` does it
        try:
            self._elf = ElfSymbols(self._stream)
            self._data = mmap.mmap(self._stream.fileno(), 0, prot=mmap.PROT_READ)
        except BaseException:
            self._stream.close()
            raise
        self._sections = self._elf.sections
        self._machine = struct.unpack_from("<H", self._data, 18)[0]

    def close(self) -> None:
        self._data.close()
        self._stream.close()

    @property
    def weight(self) -> int:
        """Bytes of this file that gdb would go through."""
        return self.debug + sum(table.size for table in tables_of(self._sections))

    @property
    def debug(self) -> int:
        """Bytes of debug information; what stands in a file of its own is not counted."""
        return sum(section.size for section in self._sections if section.name in _DEBUG and section.kind != _NOBITS)

    @property
    def worth_it(self) -> bool:
        """Whether the file is big, and says nothing that an excerpt would leave out (debug information)."""
        says_more = self.debug or any(section.name in _ELSEWHERE for section in self._sections)
        return self.weight >= WORTH_IT and not says_more

    def write(self, addresses: Sequence[int], path: str, say: Say = lambda done, symbols: None) -> None:
        """Write the excerpt for these addresses, sorted and as linked."""
        code = [section for section in self._sections if section.flags & _ALLOC and section.flags & _EXEC]
        inside = [one for one in addresses if any(s.address <= one < s.address + s.size for s in code)]
        unwind = UnwindTable(self._data, self._sections).excerpt(inside)
        _write(path, self._machine, self._elf.fixed, code, unwind, self._symbols(inside, say))

    def _symbols(self, addresses: Sequence[int], say: Say) -> List[_Symbol]:
        """Symbols that cover one of the addresses, and those at the last start before each address."""
        kept: Dict[_Symbol, int] = {}  # and where its name stands: both tables have what is exported
        numbers = sorted(self._numbers(addresses, say))
        first = 0
        for table in tables_of(self._sections):
            count = table.size // _SYMBOL.size
            names = self._sections[table.link] if table.link < len(self._sections) else None
            for number in numbers[bisect.bisect_left(numbers, first) : bisect.bisect_left(numbers, first + count)]:
                name, info, other, _, value, size = _SYMBOL.unpack_from(
                    self._data, table.offset + (number - first) * _SYMBOL.size
                )
                if names is not None:
                    kept.setdefault(self._named(names, name, info, other, value, size), name)
            first += count
        # Of several names for one address a debugger takes one by the order in which the file has them.
        return sorted(kept, key=lambda symbol: (symbol.value, kept[symbol]))

    def _numbers(self, addresses: Sequence[int], say: Say) -> Set[int]:
        """Of the symbols around these addresses, by what an earlier look kept."""
        name = self._kept_as()
        kept = user_cache.read(self._cache, name) if name else None
        if self.symbols > MOST:
            pieces = symbol_sweep.load(kept, self._elf) if kept is not None else None
            if pieces is None:
                pieces = symbol_sweep.pieces_of(self._elf, lambda done: say(done, self.symbols))
                self._keep(name, symbol_sweep.dump(pieces))
            return symbol_sweep.around(self._elf, pieces, addresses)
        if kept is not None:
            with contextlib.suppress(ValueError):
                return SymbolIndex.load(kept).around(addresses)
        index = SymbolIndex.of(self._elf)
        self._keep(name, index.dump())
        return index.around(addresses)

    @property
    def symbols(self) -> int:
        """How many there are."""
        return sum(table.size // _SYMBOL.size for table in tables_of(self._sections))

    def _keep(self, name: Optional[str], data: bytes) -> None:
        if name:
            user_cache.write(self._cache, name, data)

    def _kept_as(self) -> Optional[str]:
        """A name for this build. With the places of its tables: a stripped file has the build-id of the whole one."""
        read = file_reader(self._path)
        build_id = build_id_of(read, segments_of(read))
        places = repr([(table.offset, table.size, table.link) for table in tables_of(self._sections)])
        codes = repr([(section.flags, section.address) for section in self._sections])
        return f"{build_id}-{zlib.crc32((places + codes).encode()):08x}.symbols" if build_id else None

    def _named(self, names: Section, name: int, info: int, other: int, value: int, size: int) -> _Symbol:
        start = names.offset + name
        end = self._data.find(b"\0", start, min(start + _LONGEST_NAME, names.offset + names.size))
        return _Symbol(self._data[start : end if end >= 0 else start], info, other, value, size)


def _write(
    path: str, machine: int, fixed: bool, code: Sequence[Section], unwind: bytes, symbols: Sequence[_Symbol]
) -> None:
    """An ELF file of code sections without content, .eh_frame, .symtab and their names."""
    names, texts = _Names(), _Names()
    rows: List[Tuple[int, ...]] = [(0,) * 10]
    for section in code:
        rows.append((names.add(section.name), _NOBITS, section.flags, section.address, 0, section.size, 0, 0, 16, 0))
    table = b"".join(
        _SYMBOL.pack(
            texts.add(symbol.name), symbol.info, symbol.other, _home(code, symbol.value), symbol.value, symbol.size
        )
        for symbol in symbols
        if _home(code, symbol.value)
    )
    top = max((section.address + section.size for section in code), default=0)
    unwind_at = (top + 0xFFFF) & ~0xFFFF  # where no code is
    strings = len(rows) + 2
    blob = bytearray()

    def put(name: bytes, kind: int, data: bytes, flags: int = 0, at: int = 0, link: int = 0, entry: int = 0) -> None:
        number = names.add(name)
        blob.extend(bytes(-len(blob) % 8))
        data = data or bytes(names.data)
        info = 1 if link else 0  # of a symbol table: none of its symbols is local
        rows.append((number, kind, flags, at, _HEADER.size + len(blob), len(data), link, info, 8, entry))
        blob.extend(data)

    put(b".eh_frame", _PROGBITS, unwind, _ALLOC, unwind_at)
    put(b".symtab", SYMTAB, bytes(24) + table, link=strings, entry=_SYMBOL.size)
    put(b".strtab", _STRTAB, bytes(texts.data))
    put(b".shstrtab", _STRTAB, b"")  # its own name comes first
    blob.extend(bytes(-len(blob) % 8))
    header = _HEADER.pack(
        b"\x7fELF\x02\x01\x01" + bytes(9), 2 if fixed else 3, machine, 1, 0, 0, _HEADER.size + len(blob), 0,
        _HEADER.size, 56, 0, _SECTION.size, len(rows), len(rows) - 1,
    )  # fmt: skip
    with open(path, "wb") as stream:
        stream.write(header + blob + b"".join(_SECTION.pack(*row) for row in rows))


def _home(code: Sequence[Section], address: int) -> int:
    """Number of the code section of an address in the new file; 0 when it is in none."""
    for number, section in enumerate(code, 1):
        if section.address <= address < section.address + section.size:
            return number
    return 0


class _Names:
    """A string table."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, name: bytes) -> int:
        at = len(self.data)
        self.data += name + b"\0"
        return at


class Written(NamedTuple):
    """What an excerpt leaves out of what its file says, in bytes."""

    debug: int


def write_excerpt(
    path: str,
    addresses: Sequence[int],
    target: str,
    cache: Optional[str] = None,
    limit: int = LIMIT,
    say: Say = lambda done, symbols: None,
) -> Optional[Written]:
    """Write the excerpt of a file for sorted `addresses` (as linked). `None` when the file itself is better, or none
    can be made: for those see `weight_of`. Beyond `limit` bytes (`Excerpt.weight`) an excerpt is always better.
    `say` is told how many symbols are done, of how many, where that takes long."""
    try:
        with contextlib.closing(Excerpt(path, cache)) as excerpt:
            if not excerpt.worth_it and excerpt.weight <= limit:
                return None
            excerpt.write(addresses, target, say)
            return Written(excerpt.debug)
    except (OSError, ValueError, IndexError, struct.error):
        return None


def weight_of(path: str) -> int:
    """Bytes of a file that gdb would go through; 0 when it is no object file."""
    try:
        with contextlib.closing(Excerpt(path)) as excerpt:
            return excerpt.weight
    except (OSError, ValueError, IndexError, struct.error):
        return 0
