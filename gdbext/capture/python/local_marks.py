"""One number for the local variables of each Python frame: a frame whose number has changed has had a turn.

A call leaves the variables of its callers alone. So where those of a caller differ in two looks, the call in which the
thread stands has returned in between, however alike the stacks are. Objects count by their address, and numbers, whose
memory is soon used again, by their value, too.
"""

from __future__ import annotations

import struct
from typing import Callable, Dict, Tuple
from zlib import crc32

from gdbext.capture.python.local_variables import MOST_LOCALS, count_of_variables
from gdbext.capture.python.python_frames import Frozen, FrozenThread, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.runtimes.cpython import LOCALS, OBJECT_TYPE, TYPE_NAME, LocalsRow

_WORD = struct.Struct("<Q")
_OUTERMOST = 64  # frames of a thread
_NUMBERS = (b"int\0", b"float\0", b"complex\0")
_LONGEST = max(map(len, _NUMBERS))
_VALUE = slice(16, 32)  # of a number: behind refcount and type

MarksOf = Callable[[FrozenThread], Tuple[int, ...]]


def reader(frozen: Frozen, read: Read) -> MarksOf:
    """For a thread its marks, the outermost frame first; 0 for a frame that was another by now. () where this Python's
    frames are not known."""
    row = LOCALS.get(frozen.interpreter.version)
    return (lambda thread: ()) if row is None else _Marks(frozen, row, read).of


class _Marks:
    def __init__(self, frozen: Frozen, row: LocalsRow, read: Read) -> None:
        self._rows, self._row, self._read, self._pages = frozen.interpreter.layout.frames, row, read, Pages(read)
        self._counts: Dict[int, int] = {}
        self._is_number: Dict[int, bool] = {}

    def of(self, thread: FrozenThread) -> Tuple[int, ...]:
        frames = [one for one in zip(thread.addresses, thread.frames) if not self._is_shim(one[1])]
        return tuple(self._mark(address, data) for address, data in reversed(frames[-_OUTERMOST:]))

    def _is_shim(self, data: bytes) -> bool:
        return self._rows.boundary is not None and data[self._rows.boundary] in self._rows.shim_owners

    def _mark(self, address: int, frame: bytes) -> int:
        code = int(_WORD.unpack_from(frame, self._rows.code)[0]) & ~self._rows.code_tag_mask
        count = self._count(code)
        data = self._read(address + self._row.values, 8 * count) if count else b""
        if data is None or self._read(address, len(frame)) != frame:
            return 0
        mark = crc32(data)
        for (tagged,) in _WORD.iter_unpack(data):
            mark = crc32(self._number(tagged & ~self._row.tags), mark)
        return mark or 1

    def _count(self, code: int) -> int:
        """How many variables a function has."""
        if code not in self._counts:
            self._counts[code] = min(count_of_variables(code, self._row, self._pages), MOST_LOCALS)
        return self._counts[code]

    def _number(self, address: int) -> bytes:
        kind = self._pages.word(address + OBJECT_TYPE) if address else None
        if not kind:
            return b""
        if kind not in self._is_number:
            name = self._pages.word(kind + TYPE_NAME)
            text = self._pages.read(name, _LONGEST) if name else None
            self._is_number[kind] = text is not None and text.startswith(_NUMBERS)
        data = self._pages.read(address, _VALUE.stop) if self._is_number[kind] else None
        return data[_VALUE] if data else b""
