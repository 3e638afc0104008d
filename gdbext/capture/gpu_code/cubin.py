"""One cubin: the code of some kernels for one kind of GPU, as a file, in a fatbin, or relocated in a GPU core.

In a file every function's section lies at address 0. In a GPU core the driver has put addresses of the device there.
Both are answered by (section, offset); `locate` turns an address of the device into that.
"""

from __future__ import annotations

import bisect
import io
from functools import cached_property
from typing import Dict, List, NamedTuple, Optional, Tuple

from gdbext.capture.elf.layout import EM_CUDA, HEADER, RELOCATION, SHF_EXECINSTR, SHT_RELA, SYMBOL, header_of
from gdbext.capture.elf.reader import ElfSymbols, Section, tables_of
from gdbext.capture.gpu_code.line_rows import LineRow, Sequence, sequences
from gdbext.model.stack import Frame
from gdbext.model.text.mangled import qualified_name

_MOST_SYMBOLS = 1 << 20
_LONGEST_NAME = 4096
_FUNCTION, _ENTRY = 2, 0x10  # STT_FUNC; STO_CUDA_ENTRY in `other`: a kernel
_REL = 16  # bytes of a relocation without an addend
_DEEPEST = 64  # calls that are inlined into each other
_INNER = "$"  # a function that is called has the kernel's name and its own: $_Z1kPf$_Z4deepPfi


class Function(NamedTuple):
    """A function on the device. `name` is the linker's."""

    section: int
    offset: int
    size: int
    name: str
    is_kernel: bool


class Cubin:
    """Raises `ValueError` with the reason on what is no cubin, or is damaged."""

    def __init__(self, data: bytes) -> None:
        header = header_of(data[: HEADER.size])
        if header is None or header.machine != EM_CUDA:
            raise ValueError("not a cubin")
        self._elf = ElfSymbols(io.BytesIO(data))
        self._identity, self._flags = header.identity, header.flags
        sections = self._elf.sections
        self._code = {number: one for number, one in enumerate(sections) if one.flags & SHF_EXECINSTR and one.size}
        self._placed = sorted((one.address, number) for number, one in self._code.items() if one.address)
        self._symbols = self._all_symbols()

    @property
    def architecture(self) -> str:
        """`sm_90`. Where the number stands depends on the ABI: nvcc 13 writes OSABI 0x41, releases before 0x33."""
        newer = self._identity[7] == 0x41
        return f"sm_{self._flags >> 8 & 0xFFFF if newer else self._flags & 0xFF}"

    @property
    def has_lines(self) -> bool:
        """Built with -lineinfo or -G."""
        return bool(self._content(".debug_line"))

    @property
    def is_for_debugging(self) -> bool:
        """Built with -G: not optimised, with variables."""
        return self._elf.section(".debug_info") is not None

    @cached_property
    def functions(self) -> Tuple[Function, ...]:
        found = {}
        for value, size, info, other, number, name in self._symbols:
            if info & 15 == _FUNCTION and number in self._code:
                one = Function(number, self._offset(number, value), size, name, bool(other & _ENTRY))
                found[(one.section, one.offset, one.size, one.name)] = one
        return tuple(sorted(found.values()))

    def locate(self, address: int) -> Optional[Tuple[int, int]]:
        """Section and offset of an address of the device; None for one that lies elsewhere, or in a file."""
        at = bisect.bisect_right(self._placed, (address, 1 << 32)) - 1
        if at < 0:
            return None
        start, number = self._placed[at]
        return (number, address - start) if address < start + self._code[number].size else None

    def function_at(self, section: int, offset: int) -> Optional[Function]:
        """The innermost function there: one that is called lies within its kernel's section."""
        inside = [one for one in self._by_section.get(section, ()) if one.offset <= offset < one.offset + one.size]
        return min(inside, key=lambda one: one.size, default=None)

    def kernel_of(self, section: int) -> Optional[Function]:
        """The kernel whose section it is."""
        return next((one for one in self._by_section.get(section, ()) if one.is_kernel), None)

    def kernel_named(self, handle_entry: int) -> Optional[Function]:
        """The kernel that begins at an address of the device."""
        at = self.locate(handle_entry)
        return None if at is None else self.kernel_of(at[0]) or self.function_at(*at)

    def frames_at(self, section: int, offset: int) -> Tuple[Frame, ...]:
        """The calls at an instruction, innermost first: those that were inlined, then the function itself."""
        function = self.function_at(section, offset)
        name = readable(function.name) if function else None
        rows, number = self._row_at(section, offset)
        frames: List[Frame] = []
        while rows and number >= 0 and len(frames) < _DEEPEST:
            row = rows[number]
            inlined = 0 < row.context <= len(rows) and row.context - 1 != number
            own = readable(row.function) if inlined and row.function else name
            frames.append(Frame(own, file=row.file or None, line=row.line, inlined=inlined))
            if not inlined:
                break
            number = row.context - 1
        return tuple(frames) or (Frame(name),)

    @cached_property
    def _by_section(self) -> Dict[int, List[Function]]:
        found: Dict[int, List[Function]] = {}
        for one in self.functions:
            found.setdefault(one.section, []).append(one)
        return found

    def _row_at(self, section: int, offset: int) -> Tuple[Tuple[LineRow, ...], int]:
        """The last row at or before an instruction, and its sequence."""
        best: Tuple[Tuple[LineRow, ...], int] = ((), -1)
        for start, sequence in self._lines.get(section, ()):
            inside = offset - start
            if not 0 <= inside < sequence.size:
                continue
            for number, row in enumerate(sequence.rows):  # in order of addresses, as they are written
                if row.offset > inside:
                    break
                best = (sequence.rows, number)
        return best

    @cached_property
    def _lines(self) -> Dict[int, List[Tuple[int, Sequence]]]:
        """Sequences by section, each with the offset that it begins at."""
        found: Dict[int, List[Tuple[int, Sequence]]] = {}
        lines = self._content(".debug_line")
        moved = self._relocations() if lines else {}
        for one in sequences(lines, self._content(".debug_str")):
            at = self.locate(one.address) or moved.get(one.at)
            if at is None and len(self._code) == 1:
                at = next(iter(self._code)), one.address
            if at is not None:
                found.setdefault(at[0], []).append((at[1], one))
        return found

    def _relocations(self) -> Dict[int, Tuple[int, int]]:
        """What the addresses in .debug_line mean where nobody has put them in: by the place of each of them."""
        found: Dict[int, Tuple[int, int]] = {}
        for section in self._elf.sections:
            if section.name not in (b".rela.debug_line", b".rel.debug_line"):
                continue
            size = RELOCATION.size if section.kind == SHT_RELA else _REL
            data = self._elf.content(section)
            for at in range(0, len(data) - size + 1, size):
                place, info, addend = RELOCATION.unpack(data[at : at + size].ljust(RELOCATION.size, b"\0"))
                symbol = info >> 32
                if symbol < len(self._symbols):
                    value, _size, _info, _other, number, _name = self._symbols[symbol]
                    if number in self._code:
                        found[place] = number, self._offset(number, value) + addend
        return found

    def _offset(self, section: int, value: int) -> int:
        """A symbol's value, which is an address of the device once the driver has put one there."""
        start = self._code[section].address
        return value - start if start and start <= value <= start + self._code[section].size else value

    def _all_symbols(self) -> List[Tuple[int, int, int, int, int, str]]:
        table = next(iter(tables_of(self._elf.sections)), None)
        if table is None or table.link >= len(self._elf.sections):
            return []
        if table.size // SYMBOL.size > _MOST_SYMBOLS:
            raise ValueError("its symbol table is damaged, or too long")
        names = self._elf.content(self._elf.sections[table.link])
        rows = self._elf.content(table)
        found = []
        whole = rows[: len(rows) // SYMBOL.size * SYMBOL.size]
        for name, info, other, number, value, size in SYMBOL.iter_unpack(whole):
            end = names.find(b"\0", name, name + _LONGEST_NAME)
            found.append((value, size, info, other, number, names[name : max(end, name)].decode("utf-8", "replace")))
        return found

    def _content(self, name: str) -> bytes:
        section: Optional[Section] = self._elf.section(name)
        return b"" if section is None else self._elf.content(section)


def readable(name: str) -> str:
    """A function's name for people: without arguments, of a called one without its kernel's."""
    if name.startswith(_INNER):
        name = name.rpartition(_INNER)[2]
    return qualified_name(name) or name
