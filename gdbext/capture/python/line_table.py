"""The line table of a code object: which line an instruction belongs to. Three formats in seven releases.

Sources: Objects/lnotab_notes.txt of 3.9 and 3.10, Objects/locations.md of 3.11. Tables come from another process's
memory: any bytes are accepted, nothing raises.
"""

from __future__ import annotations

from typing import Iterator, Optional

UNIT = 2  # bytes of a code unit


def line_of(table_kind: str, table: bytes, first_line: int, offset: int) -> Optional[int]:
    """The line of the instruction at byte `offset`; None for instructions without a line, e.g. of the compiler.

    `table_kind` as in CodeLayout.table. An offset below 0 means that the code has not begun: its first line.
    """
    if offset < 0:
        return first_line
    if table_kind == "lnotab":
        return _from_lnotab(table, first_line, offset)
    if table_kind == "linetable":
        return _from_linetable(table, first_line, offset)
    return _from_locations(table, first_line, offset)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _from_lnotab(table: bytes, line: int, offset: int) -> Optional[int]:
    """3.8, 3.9: pairs (bytes of code, signed step of the line)."""
    at = 0
    for index in range(0, len(table) - 1, 2):
        at += table[index]
        if at > offset:
            break
        line += _signed(table[index + 1])
    return line


def _from_linetable(table: bytes, line: int, offset: int) -> Optional[int]:
    """3.10: pairs (bytes of code, signed step of the line that holds for them; -128: they have no line)."""
    end = 0
    for index in range(0, len(table) - 1, 2):
        end += table[index]
        step = _signed(table[index + 1])
        if step != -128:
            line += step
        if offset < end:
            return None if step == -128 else line
    return None


_NO_LINE, _LONG, _NO_COLUMN = 15, 14, 13
_ONE_LINE = (10, 11, 12)


def _from_locations(table: bytes, line: int, offset: int) -> Optional[int]:
    """3.11 and later: entries of a head byte (bit 7 set, kind, code units less one) and kind-dependent numbers."""
    end = 0
    stream = iter(table)
    for head in stream:
        if not head & 0x80:
            continue  # a number of the entry before
        kind = head >> 3 & 15
        if kind in (_LONG, _NO_COLUMN):
            line += _signed_varint(stream)
        elif kind in _ONE_LINE:
            line += kind - _ONE_LINE[0]
        end += ((head & 7) + 1) * UNIT
        if offset < end:
            return None if kind == _NO_LINE else line
    return None


def _signed_varint(stream: Iterator[int]) -> int:
    """Six bits a byte, lowest first, bit 6 set when more follow; the lowest bit of the sum is the sign."""
    value = shift = 0
    for byte in stream:
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64 or shift > 60:
            break
    return -(value >> 1) if value & 1 else value >> 1
