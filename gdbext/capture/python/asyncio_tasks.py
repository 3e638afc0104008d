"""Suspended tasks of asyncio: which coroutines each is in, which lock it asks for and which it has.

A coroutine that waits keeps its frame, and its frame the bound `__aexit__` of each `async with` that it is in. Read
when the target runs again: a task whose coroutine is resumed meanwhile is left out.
"""

from __future__ import annotations

import re
import struct
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

from gdbext.capture.python.attributes import Attributes
from gdbext.capture.python.containers import Containers
from gdbext.capture.python.local_variables import FrameLocals, Locals
from gdbext.capture.python.python_frames import Frozen, FrozenThread, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.causes.asyncio_waits import HAS_TASKS, LOCKS, RUNS_LOOP, WAITS
from gdbext.knowledge.runtimes.cpython import LOCALS
from gdbext.knowledge.runtimes.cpython_objects import (
    BOUND_TO,
    COROUTINES,
    MODULE_NAMES,
    OBJECTS,
    OF_LOOP,
    SET_MASK,
    SET_TABLE,
    WEAK_TARGET,
    CoroutineRow,
)
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame
from gdbext.model.tasks import PythonTask

MOST_TASKS = 256
_LARGEST_SET = 1 << 16
_DEEPEST = 64  # coroutines of a task
_MOST_VALUES = 256  # of one frame
_FIRST, _LAST = 2, 40  # words of a task among which its coroutine is
_FRAME_SIZE = 96
_HOME, _RUNS = re.compile(HAS_TASKS), re.compile(RUNS_LOOP)
_ASKS = [(re.compile(function), re.compile(file)) for kind, function, file in WAITS if kind == LOCKS]
_LOCK_CLASSES = ("Lock", "Semaphore", "BoundedSemaphore")


class _Coroutine(NamedTuple):
    place: FrameLocals
    above: Tuple[int, ...]  # what stands on its stack
    awaits: int


TasksOf = Callable[[FrozenThread, int], Tuple[PythonTask, ...]]


def reader(frozen: Frozen, read: Read) -> TasksOf:
    """For a thread and its LWP the suspended tasks of the loop that it runs, at most 256; () of any other thread, and
    of releases that are not known."""
    version = frozen.interpreter.version
    coroutines, variables, objects = COROUTINES.get(version), LOCALS.get(version), OBJECTS.get(version)
    if coroutines is None or variables is None or objects is None:
        return lambda thread, lwp: ()
    walk = Locals(frozen, variables, Pages(read))
    return _Tasks(walk, Attributes(Containers(walk, objects)), coroutines).of


class _Tasks:
    def __init__(self, variables: Locals, objects: Attributes, row: CoroutineRow) -> None:
        self._variables, self._objects, self._row = variables, objects, row
        self._pages = variables.pages

    def of(self, thread: FrozenThread, lwp: int) -> Tuple[PythonTask, ...]:
        for frame in zip(thread.addresses, thread.frames):
            for one in self._variables.of(*frame):
                if not (_HOME.search(one.file or "") and _RUNS.match(one.function or "")):
                    continue
                loops = self._loops(next((local.address for local in one.variables if local.name == "self"), 0))
                own = (task for task in self._all(one.module) if self._pages.word(task + OF_LOOP) in loops)
                tasks = (self._task(task, lwp) for task in own)
                return tuple(task for task in tasks if task is not None)[:MOST_TASKS]
        return ()

    def _loops(self, runner: int) -> Tuple[int, ...]:
        """A loop that runs itself, or the one that an `asyncio.Runner` has."""
        held = self._objects.attribute(runner, "_loop") if runner else 0
        return (runner, held) if isinstance(held, int) else (runner,)

    def _all(self, module: int) -> Iterator[int]:
        """The addresses of all tasks, by the names of a module of asyncio."""
        objects = self._objects
        for name in ("tasks", self._row.tasks):
            found = objects.by_name(objects.containers.pairs(module, 1 << 12)).get(name, 0)
            if name == "tasks":
                module = self._pages.word(found + MODULE_NAMES) or 0 if objects.name_of(found) == "module" else 0
        held = objects.attribute(found, "data") if found else 0
        if isinstance(held, Missing) or objects.name_of(held) != "set":
            return
        mask, table = self._pages.word(held + SET_MASK) or 0, self._pages.word(held + SET_TABLE) or 0
        data = self._pages.read(table, 16 * (mask + 1)) if table and mask < _LARGEST_SET else None
        for key, _ in struct.iter_unpack("<QQ", data or b""):
            one = objects.class_of(key) if key else None
            if one is not None and objects.referred(key, one) is not None:
                yield self._pages.word(key + WEAK_TARGET) or 0

    def _task(self, task: int, lwp: int) -> Optional[PythonTask]:
        words = struct.unpack(f"<{_LAST}Q", self._pages.read(task, 8 * _LAST) or bytes(8 * _LAST))
        at = next((at for at in range(_FIRST, _LAST - 1) if self._is_coroutine(words[at])), 0)
        chain = list(self._chain(words[at])) if at else []
        if not chain:
            return None
        asked = chain[-1].place
        wants = next((one.address for one in asked.variables if one.name == "self"), 0) if _asks(asked) else 0
        holds = [lock for one in reversed(chain) for lock in self._held(one)]
        if wants in holds and any((one.place.function or "").endswith("__aenter__") for one in chain):
            holds.remove(wants)  # its `__aexit__` is there before it has the lock
        waits_for = self._objects.name_of(words[at - 1])
        return PythonTask(
            thread=lwp,
            frames=tuple(
                Frame(function=one.place.function, file=one.place.file, line=one.place.line, language="python")
                for one in reversed(chain)
            ),
            name=self._name(words[at + 1]),
            waits_for="" if waits_for == "NoneType" else waits_for,
            wants=wants,
            holds=tuple(dict.fromkeys(holds)),
        )

    def _name(self, address: int) -> str:
        """A task that nobody named has a text, from 3.12 on a number until somebody asks."""
        text = self._objects.containers.text(address, 64)
        number = None if text else self._objects.containers.number(address)
        return text or (f"Task-{number}" if number is not None else "")

    def _is_coroutine(self, address: int) -> bool:
        return bool(address) and address % 8 == 0 and self._objects.containers.kind(address) == b"coroutine"

    def _chain(self, coroutine: int) -> Iterator[_Coroutine]:
        """From the outermost one to that which waits."""
        for _ in range(_DEEPEST):
            found = self._suspended(coroutine)
            if found is None:
                return
            yield found
            coroutine = found.awaits
            if not self._is_coroutine(coroutine):
                return

    def _suspended(self, coroutine: int) -> Optional[_Coroutine]:
        row, pages = self._row, self._pages
        state = pages.read(coroutine + row.state, 1)
        address = coroutine + row.frame
        frame = pages.read(address, _FRAME_SIZE)
        if state is None or frame is None or state[0] < 128:
            return None
        place = next(self._variables.of(address, frame), None)
        (top,) = struct.unpack_from("<i", frame, row.stack_top)
        if place is None or not 0 < top <= _MOST_VALUES:
            return None
        data = pages.read(address + self._variables.row.values, 8 * top) or b""
        values: List[int] = [value for (value,) in struct.iter_unpack("<Q", data)]
        return _Coroutine(place, tuple(values), values[-1]) if values else None

    def _held(self, one: _Coroutine) -> Iterator[int]:
        """Locks whose bound `__aexit__` is on the stack."""
        for value in one.above:
            if value and self._objects.name_of(value) == "method":
                owner = self._pages.word(value + BOUND_TO) or 0
                if self._objects.name_of(owner) in _LOCK_CLASSES:
                    yield owner


def _asks(place: FrameLocals) -> bool:
    return any(call.search(place.function or "") and home.search(place.file or "") for call, home in _ASKS)
