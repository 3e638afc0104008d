"""Names and objects of the local variables in Python frames of another process; what an object is stays its own.

Offsets: `offsetof` compiled against the headers of 3.8.18 to 3.14.10. Values of other types are not looked at.
"""

from __future__ import annotations

import re
import struct
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.python.objects import Objects, Place
from gdbext.capture.python.python_frames import Frozen, FrozenThread, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.runtimes.cpython import CELL_CONTENT, LOCALS, OBJECT_TYPE, TUPLE_LENGTH, TYPE_NAME, LocalsRow
from gdbext.knowledge.runtimes.cpython_objects import OBJECTS
from gdbext.model.missing import Maybe, Missing

MOST_FRAMES = 256  # the innermost ones
MOST_LOCALS = 512  # of one frame
MOST_ON_STACK = 64  # of one frame
_NAME_CAP = 256
_WORD = struct.Struct("<Q")
MODULE = "<module>"
_OF_LIBRARIES = re.compile(r"/(site|dist)-packages/|/lib/python3[^/]*/|^<frozen ")


class Local(NamedTuple):
    """A variable that is bound, and the address of its object."""

    name: str
    address: int


class FrameLocals(NamedTuple):
    """The local variables of one frame. Those of a module's top level stand in the dictionary at `module`."""

    function: Optional[str]
    file: Optional[str]
    line: Optional[int]
    variables: Tuple[Local, ...]
    module: int = 0  # the names of the module that the function was written in

    @property
    def is_module(self) -> bool:
        return self.function == MODULE


def locals_of(frozen: Frozen, thread: FrozenThread, read: Read) -> Maybe[Tuple[FrameLocals, ...]]:
    """The frames of one thread, innermost first, and what each variable is bound to."""
    row = LOCALS.get(frozen.interpreter.version)
    if row is None:
        return Missing("local variables of Python {}.{} are not known".format(*frozen.interpreter.version))
    walk = Locals(frozen, row, Pages(read))
    return tuple(found for frame in zip(thread.addresses, thread.frames[:MOST_FRAMES]) for found in walk.of(*frame))


def count_of_variables(code: int, row: LocalsRow, pages: Pages) -> int:
    """How many variables a function has."""
    names = [pages.word(code + offset) for offset in row.names]
    return sum(pages.word(one + TUPLE_LENGTH) or 0 for one in names if one)


class Locals:
    """Reads variables of frames, each given by its address and its first bytes."""

    def __init__(self, frozen: Frozen, row: LocalsRow, pages: Pages) -> None:
        self._version = frozen.interpreter.version
        self._layout, self.row, self.pages = frozen.interpreter.layout, row, pages
        self.objects = Objects(self._layout, pages.read)

    def of(self, address: int, frame: bytes) -> Iterator[FrameLocals]:
        """Nothing for a marker that is no Python function."""
        place = self.place(frame)
        row = OBJECTS.get(self._version)
        module = _WORD.unpack_from(frame, row.frame_globals)[0] if row is not None else 0
        if place is not None:
            yield FrameLocals(*place, self.of_frame(address, frame), module)

    def place(self, frame: bytes) -> Optional[Place]:
        """Function, file and line, which cost little; None for a marker that is no Python function."""
        rows = self._layout.frames
        if rows.boundary is not None and frame[rows.boundary] in rows.shim_owners:
            return None
        form = "<Q" if self._layout.code.table == "locations" else "<i"
        return self.objects.place(self._code(frame), struct.unpack_from(form, frame, rows.instruction)[0])

    def own_functions(self, thread: FrozenThread) -> Iterator[Tuple[str, int, bytes]]:
        """The innermost frames whose functions are of no library, with their names and addresses."""
        for address, frame in zip(thread.addresses, thread.frames[:MOST_FRAMES]):
            function, file, _ = self.place(frame) or (None, None, None)
            if function is not None and not _OF_LIBRARIES.search(file or ""):
                yield function, address, frame

    def of_frame(self, address: int, frame: bytes) -> Tuple[Local, ...]:
        """Of a Python function."""
        code = self._code(frame)
        names = [name for offset in self.row.names for name in self._names(code + offset)]
        return tuple(self._bound(address + self.row.values, names[:MOST_LOCALS]))

    def stack_values(self, address: int, frame: bytes) -> Sequence[int]:
        """Objects on the interpreter's stack of a Python function, the first one pushed first. Behind the last one are
        some that were there before, and may be gone."""
        code = self._code(frame)
        size = self.pages.read(code + self.row.stack_size, 4)
        count = min(struct.unpack("<i", size)[0], MOST_ON_STACK) if size else 0
        first = count_of_variables(code, self.row, self.pages)
        if count <= 0 or first > MOST_LOCALS:
            return []
        data = self.pages.read(address + self.row.values + 8 * first, 8 * count)
        return [tagged & ~self.row.tags for (tagged,) in _WORD.iter_unpack(data or b"")]

    def _code(self, frame: bytes) -> int:
        rows = self._layout.frames
        return int(_WORD.unpack_from(frame, rows.code)[0]) & ~rows.code_tag_mask

    def _names(self, pointer: int) -> List[str]:
        """The strings of a tuple; what is none is "?" so that the others keep their places."""
        found = self.pages.word(pointer)
        length = self.pages.word(found + TUPLE_LENGTH) if found and self._is(found, b"tuple") else 0
        if not found or not length or length > MOST_LOCALS:
            return []
        data = self.pages.read(found + self.row.tuple_items, 8 * length)
        items: Sequence[Tuple[int]] = list(_WORD.iter_unpack(data)) if data else []
        return [self.objects.text(item, _NAME_CAP) or "?" for (item,) in items]

    def _bound(self, start: int, names: Sequence[str]) -> Iterator[Local]:
        data = self.pages.read(start, 8 * len(names)) if names else None
        for name, (tagged,) in zip(names, _WORD.iter_unpack(data or b"")):
            value = tagged & ~self.row.tags
            if value and self._is(value, b"cell"):  # a variable that an inner function shares
                value = self.pages.word(value + CELL_CONTENT)
            if value:
                yield Local(name, value)

    def _is(self, address: int, name: bytes) -> bool:
        kind = self.pages.word(address + OBJECT_TYPE)
        text = self.pages.word(kind + TYPE_NAME) if kind else None
        return bool(text) and self.pages.read(text or 0, len(name) + 1) == name + b"\0"
