"""How many items a program's own Python functions have before them: in the containers that are local variables, and in
their `for` loops. Ranks that go through different numbers of items call different numbers of collectives, and a loop
that counts down goes on.

A loop's iterator lies on the interpreter's stack of its frame. How deep that is, nobody says of a frame that runs; so
what lay there before may be taken for a loop. It stays as it is, or is gone, while a loop that goes on counts down.
"""

from __future__ import annotations

from itertools import islice
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from gdbext.capture.python.classes import Classes
from gdbext.capture.python.containers import Containers
from gdbext.capture.python.local_variables import MODULE, Locals
from gdbext.capture.python.python_frames import Frozen, FrozenThread, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.runtimes.cpython import LOCALS, TUPLE_LENGTH
from gdbext.knowledge.runtimes.cpython_objects import (
    COROUTINES,
    DEQUES,
    DICT,
    FRAME_SIZE,
    GENERATOR,
    ITERATORS,
    OBJECTS,
    RANGE_ITERATOR,
    RANGE_LEFT,
    SET_USED,
    IteratorRow,
    ObjectsRow,
)
from gdbext.model.stack import Loop

_MOST_WITH_LOCALS, _MOST_WITH_LOOPS = 4, 8  # frames of the program's own functions, the innermost ones
_MOST_LOCALS = 64  # of a frame
_LARGEST = 1 << 32
_LENGTH_AT = {**dict.fromkeys(("list", "tuple", *DEQUES), TUPLE_LENGTH), "dict": DICT.used, "set": SET_USED}
_MOST_NESTED = 4  # iterators that pass on what another one gives
_MOST_ASKED = 1 << 12  # values of a process: damaged generators may lead to each other


def lengths(frozen: Frozen, read: Read) -> Callable[[FrozenThread], Mapping[str, int]]:
    """For a thread the lengths of its containers by `function.variable`; {} where this Python's frames are not
    known."""
    row, objects = LOCALS.get(frozen.interpreter.version), OBJECTS.get(frozen.interpreter.version)
    if row is None or objects is None:
        return lambda thread: {}
    variables = Locals(frozen, row, Pages(read))
    classes = Classes(Containers(variables, objects))

    def of(thread: FrozenThread) -> Mapping[str, int]:
        found: Dict[str, int] = {}
        own = (one for one in variables.own_functions(thread) if one[0] != MODULE)
        for function, address, frame in islice(own, _MOST_WITH_LOCALS):
            for local in variables.of_frame(address, frame)[:_MOST_LOCALS]:
                length = _length(classes, local.address)
                if length is not None:
                    found.setdefault(f"{function}.{local.name}", length)
        return found

    return of


def _length(classes: Classes, address: int) -> Optional[int]:
    one = classes.class_of(address)
    at = _LENGTH_AT.get(one.full_name) if one is not None else None
    length = classes.pages.word(address + at) if at is not None else None
    return length if length is not None and length < _LARGEST else None


def loops(frozen: Frozen, read: Read) -> Callable[[FrozenThread], Tuple[Loop, ...]]:
    """For a thread its loops, the innermost first; () where this Python's frames are not known."""
    row, objects = LOCALS.get(frozen.interpreter.version), OBJECTS.get(frozen.interpreter.version)
    if row is None or objects is None:
        return lambda thread: ()
    variables = Locals(frozen, row, Pages(read))
    coroutine = COROUTINES.get(frozen.interpreter.version)
    iterators = _Iterators(variables, objects, coroutine.frame if coroutine is not None else 0)

    def of(thread: FrozenThread) -> Tuple[Loop, ...]:
        found: List[Loop] = []
        for function, address, frame in islice(variables.own_functions(thread), _MOST_WITH_LOOPS):
            for value in reversed(variables.stack_values(address, frame)):
                left = iterators.left(value) if value else None
                if left is not None:
                    found.append(Loop(function, value, left))
        return tuple(found)

    return of


class _Iterators:
    def __init__(self, variables: Locals, objects: ObjectsRow, frame: int) -> None:
        """`frame`: where a generator has its own; 0: not known."""
        self._variables, self._pages, self._frame = variables, variables.pages, frame
        self._classes = Classes(Containers(variables, objects))
        self._rows = {**ITERATORS, RANGE_ITERATOR: RANGE_LEFT[objects.tagged]}
        self._asked = 0

    def left(self, address: int, nested: int = 0) -> Optional[int]:
        """How many items it has still to give; None of what is no iterator that is known."""
        self._asked += 1
        if nested > _MOST_NESTED or self._asked > _MOST_ASKED:
            return None
        kind = self._classes.class_of(address)
        if kind is None:
            return None
        if kind.full_name == GENERATOR:
            return self._left_of_generator(address, nested)
        row = self._rows.get(kind.full_name)
        if row is None:
            return None
        inner = self._inner(address, row)
        if inner is not None:
            return self.left(inner, nested + 1) if inner else None
        length = self._pages.word(address + row.left) if row.left else self._length(address, row)
        done = self._pages.word(address + row.done) if row.done else 0
        return length - done if length is not None and done is not None and done <= length < 1 << 63 else None

    def _left_of_generator(self, address: int, nested: int) -> Optional[int]:
        """Of its outermost loop, as in `tqdm(range(9))`: it gives one item in each turn."""
        frame = self._pages.read(address + self._frame, FRAME_SIZE) if self._frame else None
        values = self._variables.stack_values(address + self._frame, frame) if frame is not None else ()
        found = (self.left(value, nested + 1) for value in values if value)
        return next((left for left in found if left is not None), None)

    def _inner(self, address: int, row: IteratorRow) -> Optional[int]:
        """The iterator that it takes its items from, 0 of one that cannot be read; None where it has none."""
        if row.inner:
            return self._pages.word(address + row.inner) or 0
        if not row.first_of:
            return None
        several = self._pages.word(address + row.first_of)
        found = self._classes.containers.elements(several, False, 0, 1) if several else ()
        return found[0] if found else 0

    def _length(self, address: int, row: IteratorRow) -> Optional[int]:
        sequence = self._pages.word(address + row.sequence)
        return self._pages.word(sequence + TUPLE_LENGTH) if sequence else None
