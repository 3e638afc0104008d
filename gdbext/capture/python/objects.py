"""Objects of another process's Python: code, str, bytes. Nothing is trusted: types are checked, lengths are capped."""

from __future__ import annotations

import struct
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from gdbext.capture.python.line_table import UNIT, line_of
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.runtimes.cpython import OBJECT_TYPE, TYPE_NAME, InterpreterLayout

_WORD = struct.Struct("<Q")
_NAME_CAP = 512  # characters
_FILE_CAP = 4096
_TABLE_CAP = 1 << 20  # bytes; 200,000 lines
_CODE_CAP = 1 << 28  # bytes of instructions
_MOST_TABLES = 32 << 20  # bytes of all tables that are gone through: some seconds
_SECONDS = 10.0  # for all code objects
_TOO_LONG = "the line tables are too long to be read: Python frames lack lines"
_TOO_LATE = f"the code objects took more than {_SECONDS:g} s: Python frames lack names"
_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


class _Code(NamedTuple):
    name: str
    file: str
    first_line: int
    table: Optional[bytes]


Place = Tuple[Optional[str], Optional[str], Optional[int]]
"""Function, file and line."""


class Objects:
    """Reads and remembers code objects. `problems` collects one text per object that was not what it should be, and
    `limits` what there was too much of."""

    def __init__(self, layout: InterpreterLayout, read: Read) -> None:
        self._layout = layout
        self._read = read
        self._codes: Dict[int, Optional[_Code]] = {}
        self._types: Dict[int, Optional[bytes]] = {}
        self._lines: Dict[Tuple[int, int], Optional[int]] = {}
        self._gone_through = self._kept = 0  # bytes of tables
        self._until = time.monotonic() + _SECONDS
        self.problems: List[str] = []
        self.limits: List[str] = []  # that were reached

    def place(self, code: int, instruction: int) -> Place:
        """Where a frame is that executes `instruction` of the code object at `code`; all None when unreadable."""
        if code not in self._codes and time.monotonic() > self._until:
            self._note(_TOO_LATE)
            return None, None, None
        if code not in self._codes:
            self._codes[code] = self._code(code)
            if self._codes[code] is None:
                self.problems.append("a Python code object cannot be read")
        known = self._codes[code]
        if known is None:
            return None, None, None
        return known.name, known.file, self._line(code, known, instruction)

    def _line(self, address: int, code: _Code, instruction: int) -> Optional[int]:
        rows = self._layout.code
        if rows.table == "locations":
            offset = instruction - address - rows.instructions
        else:
            offset = instruction * (UNIT if rows.table == "linetable" else 1)
        if code.table is None or offset > _CODE_CAP:
            return None
        key = address, offset
        if key not in self._lines:
            self._gone_through += len(code.table)
            if self._gone_through > _MOST_TABLES:
                self._note(_TOO_LONG)
                return None
            self._lines[key] = line_of(rows.table, code.table, code.first_line, offset)
        return self._lines[key]

    def _code(self, address: int) -> Optional[_Code]:
        rows = self._layout.code
        data = self._read(address, 8 + max(rows.filename, rows.name, rows.first_line, rows.line_table))
        if data is None or self._type_name(data) != b"code":
            return None
        name = self.text(_WORD.unpack_from(data, rows.name)[0], _NAME_CAP)
        file = self.text(_WORD.unpack_from(data, rows.filename)[0], _FILE_CAP)
        if name is None or file is None:
            return None
        first_line = struct.unpack_from("<i", data, rows.first_line)[0]
        table = self._bytes(_WORD.unpack_from(data, rows.line_table)[0])
        self._kept += len(table or b"")
        if self._kept > _MOST_TABLES:
            self._note(_TOO_LONG)
            table = None
        return _Code(name, file, first_line, table)

    def _note(self, text: str) -> None:
        if text not in self.limits:
            self.limits.append(text)

    def text(self, address: int, cap: int) -> Optional[str]:
        """The characters of a compact str, at most `cap`; unprintable ones become "?". None for anything else."""
        rows = self._layout.strings
        header = self._read(address, max(rows.length + 8, rows.state + 4))
        if header is None or self._type_name(header) != b"str":
            return None
        length = _WORD.unpack_from(header, rows.length)[0]
        state = struct.unpack_from("<I", header, rows.state)[0]
        width, compact, ascii_only = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
        if not compact or width not in _CODECS:
            return None
        at = address + (rows.ascii_header if ascii_only else rows.wide_header)
        data = self._read(at, width * min(length, cap)) if length else b""
        if data is None:
            return None
        decoded = data.decode(_CODECS[width], "replace")
        shown = "".join(character if character.isprintable() else "?" for character in decoded)
        return shown + "..." if length > cap else shown

    def _bytes(self, address: int) -> Optional[bytes]:
        rows = self._layout.strings
        header = self._read(address, rows.bytes_length + 8)
        if header is None or self._type_name(header) != b"bytes":
            return None
        length = _WORD.unpack_from(header, rows.bytes_length)[0]
        if length > _TABLE_CAP:
            return None
        return self._read(address + rows.bytes_data, length) if length else b""  # 3.8, 3.9: all on the first line

    def _type_name(self, instance: bytes) -> Optional[bytes]:
        """Name of an object's type, from the object's first bytes."""
        address = _WORD.unpack_from(instance, OBJECT_TYPE)[0]
        if address not in self._types:
            pointer = self._read(address + TYPE_NAME, 8)
            name = self._read(_WORD.unpack(pointer)[0], 8) if pointer else None
            self._types[address] = name.split(b"\0", 1)[0] if name else None
        return self._types[address]
