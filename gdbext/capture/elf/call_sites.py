"""What cleans up where a call throws: the landing pads of a function (.gcc_except_table, as GCC and LLVM write it)."""

from __future__ import annotations

import struct
from typing import Optional, Tuple

from gdbext.capture.elf.unwind_entries import unsigned

_OMITTED, _RELATIVE = 0xFF, 0x10
_ULEB = 1
_FORMS = {0: "<Q", 2: "<H", 3: "<I", 4: "<Q", 10: "<h", 11: "<i", 12: "<q"}
_MOST_SITES = 1 << 16


def landing_pad(table: bytes, at: int, function: int, pc: int) -> Optional[int]:
    """Where control goes when the instruction at `pc` throws; None where nothing of this function is cleaned up.

    `table` is the function's exception data, which lie at address `at`. Raises `ValueError` where they are damaged.
    """
    try:
        start, here = _pointer(table, 0, at)
        start = function if start is None else start
        types = table[here]
        here += 1
        if types != _OMITTED:
            _, here = unsigned(table, here)
        encoding = table[here]
        length, here = unsigned(table, here + 1)
        end = here + length
        for _ in range(_MOST_SITES):
            if here >= end:
                return None
            begin, here = _number(table, here, encoding)
            size, here = _number(table, here, encoding)
            pad, here = _number(table, here, encoding)
            _, here = unsigned(table, here)  # which types are caught
            if begin <= pc - function < begin + size:
                return start + pad if pad else None
    except (IndexError, struct.error):
        raise ValueError("the table of call sites is cut off") from None
    raise ValueError("a table of call sites without an end")


def _pointer(table: bytes, here: int, at: int) -> Tuple[Optional[int], int]:
    encoding = table[here]
    if encoding == _OMITTED:
        return None, here + 1
    value, end = _number(table, here + 1, encoding & 15)
    if encoding & 0x70 not in (0, _RELATIVE):
        raise ValueError("exception data of an unknown encoding")
    return value + (at + here + 1 if encoding & _RELATIVE else 0), end


def _number(table: bytes, here: int, encoding: int) -> Tuple[int, int]:
    if encoding & 15 == _ULEB:
        return unsigned(table, here)
    form = _FORMS.get(encoding & 15)
    if form is None:
        raise ValueError("exception data of an unknown encoding")
    return struct.unpack_from(form, table, here)[0], here + struct.calcsize(form)
