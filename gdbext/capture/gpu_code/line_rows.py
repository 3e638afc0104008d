"""The line tables of a cubin (`-lineinfo`, `-G`): DWARF's line programs with NVIDIA's two opcodes for inlined calls.

pyelftools reads the headers and knows neither opcode, so the programs are run here. `DW_LNE_NVIDIA_inlined_call` (0x90)
says that what follows was inlined: at which row (numbered from 1 in its sequence; 0: it no longer is) and, as an offset
into .debug_str, from which function. Checked with cubins of nvcc 13.0 and ptxas 12.9; the names are elfutils'.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Iterator, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from elftools.dwarf.structs import DWARFStructs

MOST_ROWS = 4 << 20
_MOST_PROGRAMS = 1 << 14
_LONGEST_NAME = 4096
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS, _INLINED_CALL, _SET_FUNCTION_NAME = 1, 2, 0x90, 0x91


class LineRow(NamedTuple):
    """From `offset` on (counted from the sequence's beginning) the code is of this line."""

    offset: int
    file: str
    line: int
    context: int  # number of the row at which its function was inlined, 1 being the first; 0: it was not
    function: str  # the function that was inlined, as the linker knows it


class Sequence(NamedTuple):
    """The rows of one piece of code. `at`: where in .debug_line its address stands, for a relocation."""

    at: int
    address: int
    size: int
    rows: Tuple[LineRow, ...]


class _State:
    def __init__(self) -> None:
        self.address, self.file, self.line, self.context, self.function = 0, 1, 1, 0, ""


def sequences(lines: bytes, strings: bytes) -> Iterator[Sequence]:
    """All of .debug_line, `strings` being .debug_str. What is damaged ends it: the rows before are kept."""
    from elftools.common.exceptions import ELFParseError
    from elftools.dwarf.structs import DWARFStructs

    at, left = 0, MOST_ROWS
    for _ in range(_MOST_PROGRAMS):
        if at + 4 >= len(lines):
            return
        wide = lines[at : at + 4] == b"\xff\xff\xff\xff"
        structs = DWARFStructs(little_endian=True, dwarf_format=64 if wide else 32, address_size=8)
        try:
            program = _Program(lines, strings, structs, at)
            for found in program.run(left):
                left -= len(found.rows)
                yield found
        except (ELFParseError, IndexError, ValueError, KeyError, AttributeError, TypeError):
            return
        at = program.end
        if left <= 0:
            return


class _Program:
    """One line program."""

    def __init__(self, lines: bytes, strings: bytes, structs: DWARFStructs, at: int) -> None:
        from elftools.common.utils import struct_parse

        stream = io.BytesIO(lines)
        stream.seek(at)
        header: Any = struct_parse(structs.Dwarf_lineprog_header, stream)
        length = structs.initial_length_field_size()
        self.end = min(at + length + header["unit_length"], len(lines))
        self._at = at + length + 2 + length - (8 if length == 12 else 0) + header["header_length"]
        if self.end <= at or not at < self._at <= self.end or header["line_range"] == 0:
            raise ValueError("a line program is damaged")
        self._lines, self._strings, self._header = lines, strings, header
        self._files = _file_names(header)

    def run(self, most: int) -> Iterator[Sequence]:
        header, state, rows = self._header, _State(), []
        first, opened = 0, self._at
        at, left = self._at, most
        while at < self.end:
            opcode, at = self._lines[at], at + 1
            if opcode >= header["opcode_base"]:
                adjusted = opcode - header["opcode_base"]
                state.address += adjusted // header["line_range"] * header["minimum_instruction_length"]
                state.line += header["line_base"] + adjusted % header["line_range"]
                rows.append(self._row(state, first))
            elif opcode == 0:
                size, at = self._uleb(at)
                inner, after = self._lines[at], at + size
                if size < 1 or after > self.end:
                    return
                if inner == _END_SEQUENCE:
                    yield Sequence(opened, first, max(state.address - first, 0), tuple(rows))
                    left -= len(rows)
                    state, rows = _State(), []
                elif inner == _SET_ADDRESS:
                    state.address = int.from_bytes(self._lines[at + 1 : after], "little")
                    if not rows:
                        first, opened = state.address, at + 1
                elif inner == _INLINED_CALL:
                    state.context, middle = self._uleb(at + 1)
                    state.function = self._name(self._uleb(middle)[0]) if state.context else ""
                elif inner == _SET_FUNCTION_NAME:
                    state.function = self._name(self._uleb(at + 1)[0])
                at = after
            else:
                at = self._standard(opcode, at, state)
                if opcode == _COPY:
                    rows.append(self._row(state, first))
            if len(rows) > left:
                return

    def _standard(self, opcode: int, at: int, state: _State) -> int:
        """Does what a standard opcode asks for; returns where the next one stands."""
        header = self._header
        if opcode == _FIXED_ADVANCE_PC:
            state.address += int.from_bytes(self._lines[at : at + 2], "little")
            return at + 2
        if opcode == _CONST_ADD_PC:
            steps = (255 - header["opcode_base"]) // header["line_range"]
            state.address += steps * header["minimum_instruction_length"]
        for _ in range(header["standard_opcode_lengths"][opcode - 1]):
            start = at
            value, at = self._uleb(at)
            if opcode == _ADVANCE_PC:
                state.address += value * header["minimum_instruction_length"]
            elif opcode == _ADVANCE_LINE:
                state.line += _signed(value, at - start)
            elif opcode == _SET_FILE:
                state.file = value
        return at

    def _row(self, state: _State, first: int) -> LineRow:
        name = self._files[state.file] if 0 <= state.file < len(self._files) else ""
        return LineRow(state.address - first, name, state.line, state.context, state.function)

    def _uleb(self, at: int) -> Tuple[int, int]:
        value = shift = 0
        while True:
            byte, at = self._lines[at], at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > 63:
                return value, at

    def _name(self, offset: int) -> str:
        end = self._strings.find(b"\0", offset, offset + _LONGEST_NAME)
        return self._strings[offset : max(end, offset)].decode("utf-8", "replace")


def _signed(value: int, length: int) -> int:
    """What was read as an unsigned LEB128 of so many bytes, as a signed one."""
    return value - (1 << 7 * length) if value >> (7 * length - 1) & 1 else value


def _file_names(header: Any) -> List[str]:
    """Path by number. In versions before 5 the first has number 1."""
    if header["version"] >= 5:
        folders = [_text(one.get("DW_LNCT_path")) for one in header["directories"]]
        named = [(one.get("DW_LNCT_path"), one.get("DW_LNCT_directory_index")) for one in header["file_names"]]
        return [_path(folders, number, _text(name)) for name, number in named]
    folders = ["", *(_text(one) for one in header["include_directory"])]
    return ["", *(_path(folders, one["dir_index"], _text(one["name"])) for one in header["file_entry"])]


def _path(folders: List[str], number: Optional[int], name: str) -> str:
    folder = folders[number] if number is not None and 0 <= number < len(folders) else ""
    return name if name.startswith("/") or not folder else f"{folder}/{name}"


def _text(name: object) -> str:
    """A name that stands in a table of strings comes as a number: left out."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else ""
