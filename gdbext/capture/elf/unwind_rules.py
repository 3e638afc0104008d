"""Where the caller's frame lies at one address of a function: DWARF's call frame instructions (DWARF 5, 6.4.2), run."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from gdbext.capture.elf.unwind_entries import Entry, read_sleb128, unsigned

_MOST_STATES = 64  # that are remembered at once; compilers write one
_MOST_REGISTERS = 256


class Row(NamedTuple):
    """The canonical frame address is `register` + `offset`, both as DWARF numbers them; `saved` says at which distance
    from it the caller's registers lie. No register: it takes an expression, which nobody evaluates here."""

    register: Optional[int]
    offset: int
    saved: Dict[int, int]


def row_at(entry: Entry, address: int) -> Optional[Row]:
    """The rules at an address of the entry's function; None where an instruction is not known."""
    try:
        first = _Run(entry)
        first.run(entry.initial, None)
        first.defaults = dict(first.saved)
        first.run(entry.instructions, address)
    except (IndexError, KeyError, ValueError):
        return None
    return Row(first.register, first.offset, first.saved)


class _Run:
    """The machine that the instructions are for."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self.register: Optional[int] = None
        self.offset = 0
        self.saved: Dict[int, int] = {}
        self.defaults: Dict[int, int] = {}  # what the restore instructions go back to
        self._stack: List[Tuple[Optional[int], int, Dict[int, int]]] = []

    def run(self, code: bytes, until: Optional[int]) -> None:
        """Up to the instructions that hold behind the address `until`."""
        location, at = self._entry.start, 0
        while at < len(code):
            byte = code[at]
            at += 1
            high, low = byte & 0xC0, byte & 0x3F
            if high == 0x40 or byte in _ADVANCES:
                size = _ADVANCES.get(byte, 0) if high == 0 else 0
                step = int.from_bytes(code[at : at + size], "little") if size else low
                at += size
                location += step * self._entry.code_step
                if until is not None and location > until:
                    return
            elif high == 0x80:
                value, at = unsigned(code, at)
                self.saved[low] = value * self._entry.data_step
            elif high == 0xC0:
                self._restore(low)
            else:
                at = self._extended(byte, code, at)

    def _extended(self, byte: int, code: bytes, at: int) -> int:
        """One instruction whose operands follow it; where the next one begins."""
        if byte == 0x0A:  # remember_state
            if len(self._stack) >= _MOST_STATES or len(self.saved) > _MOST_REGISTERS:
                raise ValueError("rules of unknown size")
            self._stack.append((self.register, self.offset, dict(self.saved)))
            return at
        if byte == 0x0B:  # restore_state
            self.register, self.offset, self.saved = self._stack.pop()
            return at
        values: List[int] = []
        for kind in _OPERANDS[byte]:
            value, at = unsigned(code, at) if kind == "u" else read_sleb128(code, at)
            values.append(value)
        if byte in _BLOCKS:
            at += values.pop()
        self._apply(byte, values)
        return at

    def _apply(self, byte: int, values: List[int]) -> None:
        step = self._entry.data_step
        if byte in (0x05, 0x11):  # offset_extended, offset_extended_sf
            self.saved[values[0]] = values[1] * step
        elif byte == 0x06:  # restore_extended
            self._restore(values[0])
        elif byte in (0x07, 0x08, 0x09, 0x10, 0x16):  # undefined, same_value, register, expression, val_expression
            self.saved.pop(values[0], None)
        elif byte in (0x0C, 0x12):  # def_cfa, def_cfa_sf
            self.register, self.offset = values[0], values[1] * (step if byte == 0x12 else 1)
        elif byte == 0x0D:  # def_cfa_register
            self.register = values[0]
        elif byte in (0x0E, 0x13):  # def_cfa_offset, def_cfa_offset_sf
            self.offset = values[0] * (step if byte == 0x13 else 1)
        elif byte == 0x0F:  # def_cfa_expression
            self.register = None

    def _restore(self, register: int) -> None:
        if register in self.defaults:
            self.saved[register] = self.defaults[register]
        else:
            self.saved.pop(register, None)


_ADVANCES = {0x02: 1, 0x03: 2, 0x04: 4}  # advance_loc1, 2 and 4: bytes of their operand
_OPERANDS = {
    0x00: "", 0x05: "uu", 0x06: "u", 0x07: "u", 0x08: "u", 0x09: "uu", 0x0C: "uu", 0x0D: "u", 0x0E: "u",
    0x0F: "u", 0x10: "uu", 0x11: "us", 0x12: "us", 0x13: "s", 0x16: "uu", 0x2E: "u",
}  # fmt: skip
_BLOCKS = (0x0F, 0x10, 0x16)  # their last operand is the length of an expression
