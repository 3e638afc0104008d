"""What a Python function was called with, of those calls whose arguments name ranks (rows of knowledge/frames).

Read when the target runs again: a thread that waits keeps its frame, and one whose frame is another by then has none.
"""

from __future__ import annotations

import re
import struct
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.python.local_variables import Locals
from gdbext.capture.python.python_frames import Frozen, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.engines.torch.groups import GROUP, NAMES_OF_GROUPS, RANKS, RANKS_OF_GROUPS
from gdbext.knowledge.frames import RULES
from gdbext.knowledge.runtimes.cpython import LOCALS, OBJECT_TYPE, TUPLE_ITEMS, TUPLE_LENGTH, TYPE_NAME
from gdbext.knowledge.runtimes.cpython_objects import DICT, INTEGER, LIST_ITEMS, OBJECTS, SPLIT, UNICODE, ObjectsRow
from gdbext.model.stack import Captured, Frame

_RULES = tuple(
    (re.compile(rule.function), re.compile(rule.file), rule.captures)
    for rule in RULES
    if rule.captures and rule.language == "python"
)
_LONGEST = 256  # characters of a name
_MOST_ITEMS = 1 << 14  # of a list or dictionary: ranks, groups, names of a module
_WORD = struct.Struct("<Q")


def wanted(frame: Frame) -> Tuple[str, ...]:
    """The names of arguments that say something in this function."""
    function, file = frame.function or "", frame.file or ""
    names = (names for call, home, names in _RULES if call.match(function) and home.search(file))
    return tuple(dict.fromkeys(name for some in names for name in some))


def reader(frozen: Frozen, read: Read) -> Callable[[Frame, int, bytes], Mapping[str, Captured]]:
    """For a frame that was copied as these bytes from this address: its arguments, as far as they can be read."""
    version = frozen.interpreter.version
    row, objects = LOCALS.get(version), OBJECTS.get(version)
    if row is None or objects is None:
        return lambda frame, address, data: {}
    return _Arguments(Locals(frozen, row, Pages(read)), objects, read).of


class _Arguments:
    def __init__(self, variables: Locals, row: ObjectsRow, read: Read) -> None:
        self._variables, self._row, self._read = variables, row, read
        self._objects = Objects(variables, row)
        self._groups: Dict[int, Tuple[Dict[int, int], Dict[int, int]]] = {}

    def of(self, frame: Frame, address: int, data: bytes) -> Mapping[str, Captured]:
        names = wanted(frame)
        if not names or self._read(address, len(data)) != data:
            return {}
        found: Dict[str, Captured] = {}
        bound = {one.name: one.address for one in self._variables.of_frame(address, data)}
        for name in names:
            if name in bound and name == GROUP:
                found.update(self._group(bound[name], data))
            elif name in bound:
                value = self._objects.value(bound[name])
                if value is not None:
                    found[name] = value
        return found if self._read(address, len(data)) == data else {}

    def _group(self, group: int, frame: bytes) -> Iterator[Tuple[str, Captured]]:
        """The name and the ranks of a ProcessGroup; None is the group that was made first."""
        module = _WORD.unpack_from(frame, self._row.frame_globals)[0]
        if module not in self._groups:
            self._groups[module] = self._registered(module)
        names, ranks = self._groups[module]
        if self._objects.kind(group) == b"NoneType":
            group = next(iter(names), 0)
        name = self._objects.value(names.get(group, 0))
        if isinstance(name, str):
            yield GROUP, name
        global_ranks = [self._objects.number(key) for key, _ in self._objects.items(ranks.get(group, 0))]
        if global_ranks and None not in global_ranks:
            yield RANKS, ",".join(map(str, global_ranks))

    def _registered(self, module: int) -> Tuple[Dict[int, int], Dict[int, int]]:
        """What torch knows of its groups, from the names of its module."""
        found: Dict[Optional[str], int] = {}
        for key, value in self._objects.items(module):
            found.setdefault(self._objects.text(key), value)
        both = [dict(self._objects.items(found.get(name, 0))) for name in (NAMES_OF_GROUPS, RANKS_OF_GROUPS)]
        return both[0], both[1]


class Objects:
    """Numbers, names, lists and dictionaries. Nothing is trusted: types are checked, lengths are capped."""

    def __init__(self, variables: Locals, row: ObjectsRow) -> None:
        self._pages, self._row = variables.pages, row
        self._text = variables.objects.text

    def kind(self, address: int) -> Optional[bytes]:
        """The name of an object's type."""
        kind = self._pages.word(address + OBJECT_TYPE) if address else None
        name = self._pages.word(kind + TYPE_NAME) if kind else None
        data = self._pages.read(name, 16) if name else None
        return data.split(b"\0", 1)[0] if data else None

    def text(self, address: int) -> Optional[str]:
        return self._text(address, _LONGEST)

    def value(self, address: int) -> Optional[Captured]:
        """A number, a name, or the numbers of a list, separated by commas."""
        kind = self.kind(address)
        if kind == b"int":
            return self.number(address)
        if kind == b"str":
            return self.text(address)
        if kind in (b"list", b"tuple"):
            numbers = [self.number(item) for item in self._elements(address, kind == b"list")]
            return ",".join(map(str, numbers)) if numbers and None not in numbers else None
        return None

    def number(self, address: int) -> Optional[int]:
        """One that fits into one digit, as all ranks do."""
        data = self._pages.read(address + INTEGER, 12) if self.kind(address) == b"int" else None
        if data is None:
            return None
        tag, digit = struct.unpack("<qI", data)
        digits = tag >> 3 if self._row.tagged else abs(tag)
        negative = tag & 3 == 2 if self._row.tagged else tag < 0
        if digits > 1:
            return None
        return (-digit if negative else digit) if digits and not (self._row.tagged and tag & 3 == 1) else 0

    def _elements(self, address: int, is_list: bool) -> Sequence[int]:
        length = self._pages.word(address + TUPLE_LENGTH) or 0
        items = self._pages.word(address + LIST_ITEMS) if is_list else address + TUPLE_ITEMS
        data = self._pages.read(items, 8 * length) if items and 0 < length <= _MOST_ITEMS else None
        return [item for (item,) in _WORD.iter_unpack(data)] if data else []

    def items(self, address: int) -> Iterator[Tuple[int, int]]:
        """The keys and values of a dictionary, in the order in which they came."""
        if self.kind(address) != b"dict":
            return
        keys = self._pages.word(address + DICT.keys)
        header = self._pages.read(keys, self._row.indices) if keys else None
        if not keys or header is None or self._pages.word(address + DICT.values):
            return  # that of an instance keeps its values apart
        entries = _WORD.unpack_from(header, self._row.entries)[0]
        if self._row.log_sizes:
            wide, kind = 1 << min(header[9], 40), header[10]
        else:
            size = _WORD.unpack_from(header, 8)[0]
            wide, kind = size * (1 if size <= 0xFF else 2 if size <= 0xFFFF else 4), 0
        if kind == SPLIT or entries > _MOST_ITEMS:
            return
        words = 2 if kind == UNICODE else 3
        data = self._pages.read(keys + self._row.indices + wide, 8 * words * entries) if entries else None
        table: List[Tuple[int, ...]] = list(struct.iter_unpack(f"<{words}Q", data)) if data else []
        yield from ((one[-2], one[-1]) for one in table if one[-2] and one[-1])
