"""What a Python function was called with, of those calls whose arguments name ranks (rows of knowledge/frames).

Read when the target runs again: a thread that waits keeps its frame, and one whose frame is another by then has none.
"""

from __future__ import annotations

import re
import struct
from typing import Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from gdbext.capture.python.attributes import Attributes
from gdbext.capture.python.containers import Containers
from gdbext.capture.python.local_variables import Locals
from gdbext.capture.python.python_frames import Frozen, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.engines.torch.groups import GROUP, NAMES_OF_GROUPS, RANKS, RANKS_OF_GROUPS
from gdbext.knowledge.frames import RULES
from gdbext.knowledge.runtimes.cpython import LOCALS
from gdbext.knowledge.runtimes.cpython_frames import JOIN_OF_THREAD, JOINED
from gdbext.knowledge.runtimes.cpython_objects import OBJECTS, ObjectsRow
from gdbext.knowledge.runtimes.tried_locks import LOCK_FILE, LOCK_FILES, LockFileRow
from gdbext.model.stack import Captured, Frame

_RULES = tuple(
    (re.compile(rule.function), re.compile(rule.file), rule.captures)
    for rule in RULES
    if rule.captures and rule.language == "python"
)
_FILES = tuple((row, re.compile(row.function), re.compile(row.file)) for row in LOCK_FILES)
_JOIN, _OF_THREADS = map(re.compile, JOIN_OF_THREAD[:2])
_WORD = struct.Struct("<Q")


def wanted_arguments(frame: Frame) -> Tuple[str, ...]:
    """The names of arguments that say something in this function."""
    function, file = frame.function or "", frame.file or ""
    names = (names for call, home, names in _RULES if call.match(function) and home.search(file))
    return tuple(dict.fromkeys(name for some in names for name in some))


def _lock_files(frame: Frame) -> Sequence[LockFileRow]:
    """Rows of a function that waits for a lock which is a file."""
    name = (frame.function or "").rpartition(".")[2]
    return [row for row, call, home in _FILES if call.fullmatch(name) and home.search(frame.file or "")]


def _joins(frame: Frame) -> bool:
    name = (frame.function or "").rpartition(".")[2]
    return _JOIN.fullmatch(name) is not None and _OF_THREADS.search(frame.file or "") is not None


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
        self._objects = Containers(variables, row)
        self._groups: Dict[int, Tuple[Dict[int, int], Dict[int, int]]] = {}

    def of(self, frame: Frame, address: int, data: bytes) -> Mapping[str, Captured]:
        names, files, joins = wanted_arguments(frame), _lock_files(frame), _joins(frame)
        if not (names or files or joins) or self._read(address, len(data)) != data:
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
        ident = self._ident(bound.get(JOIN_OF_THREAD[2], 0)) if joins else None
        if ident is not None:
            found[JOINED] = ident
        for row in files:
            path = self._path(bound.get(row.local, 0), row.attribute)
            if path:
                found[LOCK_FILE] = path
        return found if self._read(address, len(data)) == data else {}

    def _ident(self, thread: int) -> Optional[int]:
        held = Attributes(self._objects).attribute(thread, JOIN_OF_THREAD[3]) if thread else None
        return self._objects.number(held, 3) if isinstance(held, int) else None

    def _path(self, address: int, attribute: str) -> Optional[str]:
        if address and attribute:
            held = Attributes(self._objects).attribute(address, attribute)
            address = held if isinstance(held, int) else 0
        return self._objects.text(address) if address else None

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
