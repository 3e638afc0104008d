"""Tasks of asyncio that have not ended: which coroutines each is in, which lock it asks for and which it has.

A coroutine that waits keeps its frame, and its frame the bound `__aexit__` of each `async with` that it is in. Read
when the target runs again: of a task whose coroutine is resumed meanwhile nothing is known but that it is there.
"""

from __future__ import annotations

import re
import struct
import time
from dataclasses import replace
from itertools import islice
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Pattern, Tuple

from gdbext.capture.python.attributes import Attributes
from gdbext.capture.python.containers import MOST_ITEMS, Containers
from gdbext.capture.python.local_variables import FrameLocals, Locals
from gdbext.capture.python.objects import Place
from gdbext.capture.python.python_frames import Frozen, FrozenThread, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.causes.asyncio_waits import GATHERED, HAS_TASKS, LOCKS, RUNS_LOOP, TASK, WAITED, WAITS
from gdbext.knowledge.runtimes.cpython import LOCALS
from gdbext.knowledge.runtimes.cpython_objects import (
    AWAITED,
    AWAITED_INSIDE,
    COROUTINES,
    FRAME_SIZE,
    FUNCTION_NAME,
    MODULE_NAMES,
    OBJECTS,
    OF_LOOP,
    SET_MASK,
    SET_TABLE,
    CoroutineRow,
)
from gdbext.model.missing import Missing
from gdbext.model.python import PythonStacks
from gdbext.model.stack import Frame
from gdbext.model.tasks import MOST_TASKS, PythonTask

_LARGEST_SET = 1 << 16
_DEEPEST = 64  # coroutines of a task
_MOST_VALUES = 256  # of one frame
_SECONDS = 2.0  # for the tasks of all loops of a process
_FIRST, _LAST = 2, 40  # words of a task among which its coroutine is
_DELETED = (1 << 64) - 1  # the hash of an entry of a set that was removed
_RUNS = [(re.compile(RUNS_LOOP), re.compile(HAS_TASKS))]
_ASKS = [(re.compile(function), re.compile(file)) for kind, function, file in WAITS if kind == LOCKS]
_WAITED = [(re.compile(WAITED[0]), re.compile(WAITED[1]))]
_LOCK_CLASSES = ("Lock", "Semaphore", "BoundedSemaphore")
_LIMIT = "Timeout"  # asyncio.timeout() and, from 3.12 on, wait_for()


class _Coroutine(NamedTuple):
    place: Place
    address: int  # of its frame
    frame: bytes
    values: Tuple[int, ...]  # its variables, and above them what stands on its stack

    @property
    def function(self) -> str:
        return self.place[0] or ""


TasksOf = Callable[[FrozenThread, int], Tuple[PythonTask, ...]]


def reader(frozen: Frozen, read: Read) -> TasksOf:
    """For a thread and its LWP the tasks of the loop that it runs, at most MOST_TASKS, and one of which nothing is
    known where reading all takes too long; () of any other thread, and of releases that are not known."""
    version = frozen.interpreter.version
    coroutines, variables, objects = COROUTINES.get(version), LOCALS.get(version), OBJECTS.get(version)
    if coroutines is None or variables is None or objects is None:
        return lambda thread, lwp: ()
    walk = Locals(frozen, variables, Pages(read))
    return _Tasks(walk, Attributes(Containers(walk, objects)), coroutines).of


def with_unread(stacks: PythonStacks) -> PythonStacks:
    """With a task of which nothing is known for each loop whose tasks this release hides, and what is to be said."""
    version = tuple(map(int, stacks.version.split(".")))
    loops = (tid for tid, one in stacks.threads.items() if any(_is_one(_place(frame), _RUNS) for frame in one.frames))
    hidden = () if version in COROUTINES else tuple(PythonTask(thread=tid, frames=()) for tid in loops)
    found = (*stacks.tasks, *hidden)
    unread = len({task.thread for task in found}.difference(task.thread for task in found if task.frames))
    if not unread:
        return stacks
    many = "an event loop" if unread == 1 else f"{unread} event loops"
    text = f"what tasks of {many} wait for was not read (asyncio of Python {stacks.version})"
    return replace(stacks, tasks=found, problems=(*stacks.problems, text))


def _place(frame: Frame) -> Place:
    return frame.function, frame.file, frame.line


class _Tasks:
    def __init__(self, variables: Locals, objects: Attributes, row: CoroutineRow) -> None:
        self._variables, self._objects, self._row = variables, objects, row
        self._pages = variables.pages
        self._until: Optional[float] = None

    def of(self, thread: FrozenThread, lwp: int) -> Tuple[PythonTask, ...]:
        runs = next((one for one in zip(thread.addresses, thread.frames) if self._runs_loop(one[1])), None)
        found = next(self._variables.of(*runs), None) if runs is not None else None
        if found is None:
            return ()
        self._until = self._until or time.monotonic() + _SECONDS
        loops = self._loops(_variable(found, "self"))
        own = (task for task in self._all(found.module) if self._pages.word(task + OF_LOOP) in loops)
        tasks = tuple(islice(filter(None, (self._task(task, lwp) for task in own)), MOST_TASKS))
        return (PythonTask(thread=lwp, frames=()),) if self._late() else tasks

    def _late(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def _runs_loop(self, frame: bytes) -> bool:
        place = self._variables.place(frame)
        return place is not None and _is_one(place, _RUNS)

    def _loops(self, runner: int) -> Tuple[int, ...]:
        """A loop that runs itself, or the one that an `asyncio.Runner` has."""
        held = self._objects.attribute(runner, "_loop") if runner else 0
        return (runner, held) if isinstance(held, int) else (runner,)

    def _all(self, module: int) -> Iterator[int]:
        """The addresses of all tasks, by the names of a module of asyncio."""
        tasks = self._names(module).get("tasks", 0)
        inner = self._pages.word(tasks + MODULE_NAMES) if self._objects.name_of(tasks) == "module" else None
        weak_set = self._names(inner or 0).get(self._row.tasks, 0)
        held = self._objects.attribute(weak_set, "data")
        for key in () if isinstance(held, Missing) else self._in_set(held):
            one = self._objects.class_of(key)
            yield (self._objects.referred(key, one) or 0) if one is not None else 0
            if self._late():
                return

    def _names(self, dictionary: int) -> Dict[str, int]:
        return self._objects.by_name(self._objects.containers.pairs(dictionary, 1 << 12))

    def _in_set(self, address: int) -> List[int]:
        """What a set has; nothing of one that is very large."""
        is_set = self._objects.name_of(address) == "set"
        mask, table = (self._pages.word(address + at) or 0 if is_set else 0 for at in (SET_MASK, SET_TABLE))
        data = self._pages.read(table, 16 * (mask + 1)) if table and mask < _LARGEST_SET else None
        return [key for key, hashed in struct.iter_unpack("<QQ", data or b"") if key and hashed != _DELETED]

    def _task(self, task: int, lwp: int) -> Optional[PythonTask]:
        """None of one that runs or has ended."""
        words = struct.unpack(f"<{_LAST}Q", self._pages.read(task, 8 * _LAST) or bytes(8 * _LAST))
        at = next((at for at in range(_FIRST, _LAST - 1) if self._is_coroutine(words[at])), 0)
        state = self._pages.read(words[at] + self._row.state, 1) if at else None
        if state is not None and state[0] < 128:
            return None
        chain = list(self._chain(words[at])) if at else []
        if not chain:
            return PythonTask(thread=lwp, frames=())
        inner = next(self._variables.of(chain[-1].address, chain[-1].frame), None)
        wants = _variable(inner, "self") if _is_one(chain[-1].place, _ASKS) else 0
        inside = [found for one in reversed(chain) for found in self._inside(one)]
        holds = [lock for lock, kind in inside if kind in _LOCK_CLASSES]
        if wants in holds and any(one.function.endswith("__aenter__") for one in chain):
            holds.remove(wants)  # its `__aexit__` is there before it has the lock
        frames = [Frame(function=name, file=file, line=line, language="python") for (name, file, line), *_ in chain]
        return PythonTask(
            thread=lwp,
            frames=tuple(reversed(frames)),
            name=self._name(words[at + 1]),
            waits_for=self._waits_for(words[at - 1], inner),
            wants=wants,
            holds=tuple(dict.fromkeys(holds)),
            limited=any(kind == _LIMIT for _, kind in inside),
        )

    def _waits_for(self, future: int, inner: Optional[FrameLocals]) -> str:
        """The class of a future; of one for several futures that of the first which is no task."""
        name, several = self._objects.name_of(future), []
        if name == GATHERED[0]:
            found = self._objects.attribute(future, GATHERED[1])
            several = (
                [] if isinstance(found, Missing) else [*self._objects.containers.elements(found, True, 0, MOST_ITEMS)]
            )
        elif inner is not None and _is_one(inner[:3], _WAITED):
            several = self._in_set(_variable(inner, WAITED[2]))
        kinds = [self._objects.name_of(one) for one in several]
        name = next((kind for kind in kinds if kind != TASK), TASK) if kinds else name
        return "" if name == "NoneType" else name

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
            if found is None or self._late():
                return
            yield found
            coroutine = self._awaited(found.values[-1])
            if not coroutine:
                return

    def _awaited(self, address: int) -> int:
        """The coroutine or asynchronous generator that a coroutine awaits by this; 0 where it is a future."""
        if self._is_coroutine(address):
            return address
        inside = self._pages.word(address + AWAITED) if self._objects.name_of(address) in AWAITED_INSIDE else None
        return inside if inside and self._objects.name_of(inside) in ("async_generator", "coroutine") else 0

    def _suspended(self, coroutine: int) -> Optional[_Coroutine]:
        row, pages = self._row, self._pages
        state = pages.read(coroutine + row.state, 1)
        address = coroutine + row.frame
        frame = pages.read(address, FRAME_SIZE)
        if state is None or frame is None or state[0] < 128:
            return None
        place = self._variables.place(frame)
        (top,) = struct.unpack_from("<i", frame, row.stack_top)
        if place is None or not 0 < top <= _MOST_VALUES:
            return None
        data = pages.read(address + self._variables.row.values, 8 * top)
        values = tuple(value for (value,) in struct.iter_unpack("<Q", data or b""))
        return _Coroutine(place, address, frame, values) if values else None

    def _inside(self, one: _Coroutine) -> Iterator[Tuple[int, str]]:
        """In whose `async with` it is, and their classes: the bound `__aexit__` is on the stack. Another method may be
        there to be called later."""
        for value in one.values:
            if value and self._objects.name_of(value) == "method":
                owner, function = (self._objects.attribute(value, name) for name in ("__self__", "__func__"))
                if isinstance(owner, Missing) or isinstance(function, Missing):
                    continue
                name = self._objects.containers.text(self._pages.word(function + FUNCTION_NAME) or 0)
                if name == "__aexit__":
                    yield owner, self._objects.name_of(owner)


def _variable(frame: Optional[FrameLocals], name: str) -> int:
    """The address of its object; 0 where there is none of that name."""
    return next((one.address for one in frame.variables if one.name == name), 0) if frame is not None else 0


def _is_one(place: Place, rows: List[Tuple[Pattern[str], Pattern[str]]]) -> bool:
    """Whether a row has both its function and its file."""
    function, file, _ = place
    return any(call.search(function or "") and home.search(file or "") for call, home in rows)
