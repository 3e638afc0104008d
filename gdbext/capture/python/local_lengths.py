"""How many items the lists, tuples, dictionaries and sets have that are local variables of a program's own functions:
ranks that go through different numbers of items call different numbers of collectives."""

from __future__ import annotations

import re
from typing import Callable, Dict, Mapping, Optional

from gdbext.capture.python.local_variables import Locals
from gdbext.capture.python.python_frames import Frozen, FrozenThread, Pages
from gdbext.capture.python.runtime import Read
from gdbext.knowledge.runtimes.cpython import LOCALS, OBJECT_TYPE, TUPLE_LENGTH, TYPE_NAME
from gdbext.knowledge.runtimes.cpython_objects import DICT, SET_USED

_MOST_FRAMES = 4  # of the program's own, the innermost ones
_MOST_LOCALS = 64  # of a frame
_LARGEST = 1 << 32
_LENGTH_AT = {
    **dict.fromkeys((b"list", b"tuple", b"deque"), TUPLE_LENGTH),
    b"dict": DICT.used,
    b"set": SET_USED,
}
_OF_LIBRARIES = re.compile(r"/(site|dist)-packages/|/lib/python3[^/]*/|^<frozen ")


def reader(frozen: Frozen, read: Read) -> Callable[[FrozenThread], Mapping[str, int]]:
    """For a thread the lengths by `function.variable`; {} where this Python's frames are not known."""
    row = LOCALS.get(frozen.interpreter.version)
    if row is None:
        return lambda thread: {}
    pages = Pages(read)
    variables = Locals(frozen, row, pages)

    def of(thread: FrozenThread) -> Mapping[str, int]:
        found: Dict[str, int] = {}
        own = 0
        for frame in zip(thread.addresses, thread.frames):
            for one in variables.of(*frame):
                if one.is_module or _OF_LIBRARIES.search(one.file or ""):
                    continue
                own += 1
                for local in one.variables[:_MOST_LOCALS]:
                    length = _length(pages, local.address)
                    if length is not None:
                        found.setdefault(f"{one.function}.{local.name}", length)
            if own >= _MOST_FRAMES:
                break
        return found

    return of


def _length(pages: Pages, address: int) -> Optional[int]:
    kind = pages.word(address + OBJECT_TYPE)
    name = pages.word(kind + TYPE_NAME) if kind else None
    data = pages.read(name, 24) if name else None
    at = _LENGTH_AT.get(data.split(b"\0", 1)[0].rpartition(b".")[2]) if data else None
    length = pages.word(address + at) if at is not None else None
    return length if length is not None and length < _LARGEST else None
