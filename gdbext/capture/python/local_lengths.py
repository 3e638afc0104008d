"""How many items the lists, tuples, dictionaries and sets have that are local variables of a program's own functions:
ranks that go through different numbers of items call different numbers of collectives."""

from __future__ import annotations

from itertools import islice
from typing import Callable, Dict, Mapping, Optional

from gdbext.capture.python.classes import Classes
from gdbext.capture.python.containers import Containers
from gdbext.capture.python.local_variables import MODULE, Locals
from gdbext.capture.python.python_frames import Frozen, FrozenThread, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.runtimes.cpython import LOCALS, TUPLE_LENGTH
from gdbext.knowledge.runtimes.cpython_objects import DEQUES, DICT, OBJECTS, SET_USED

_MOST_OWN = 4  # frames of the program's own functions, the innermost ones
_MOST_LOCALS = 64  # of a frame
_LARGEST = 1 << 32
_LENGTH_AT = {**dict.fromkeys(("list", "tuple", *DEQUES), TUPLE_LENGTH), "dict": DICT.used, "set": SET_USED}


def reader(frozen: Frozen, read: Read) -> Callable[[FrozenThread], Mapping[str, int]]:
    """For a thread the lengths by `function.variable`; {} where this Python's frames are not known."""
    row, objects = LOCALS.get(frozen.interpreter.version), OBJECTS.get(frozen.interpreter.version)
    if row is None or objects is None:
        return lambda thread: {}
    variables = Locals(frozen, row, Pages(read))
    classes = Classes(Containers(variables, objects))

    def of(thread: FrozenThread) -> Mapping[str, int]:
        found: Dict[str, int] = {}
        own = (one for one in variables.own_functions(thread) if one[0] != MODULE)
        for function, address, frame in islice(own, _MOST_OWN):
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
