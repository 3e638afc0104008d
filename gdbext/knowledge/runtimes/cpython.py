"""CPython from outside: where thread states, frames and code objects keep what a stack needs, and how the
interpreter's own frames are called on a native stack.

Rows hold for 64-bit little-endian builds with the GIL. Up to 3.12 the offsets come from the headers of the release
(`offsetof` compiled against them); from 3.13 on `_PyRuntime` begins with a table of its own offsets, which is read
instead, and the row says only what that table leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Mapping, Optional, Tuple

from gdbext.knowledge.word_tables import pairs


@dataclass(frozen=True)
class GilLayout:
    """Where `last_holder` (a thread state) and `locked` (1 = held) of the lock's struct lie.

    `at` is the struct's offset in `_PyRuntime`, or, with `per_interpreter`, the offset in the interpreter state of
    a pointer to it.
    """

    at: int
    last_holder: int
    locked: int
    per_interpreter: bool = False


@dataclass(frozen=True)
class FrameLayout:
    """One frame: a PyFrameObject on the heap up to 3.10, a _PyInterpreterFrame from 3.11 on.

    `boundary` is the byte that ends the run of frames which one native eval frame executes: `is_entry` (3.11, the
    frame that has it belongs to the run) or `owner` (3.12+, a frame with one of `shim_owners` is a marker and no
    Python function). None: every frame has a native eval frame of its own.
    """

    previous: int
    code: int
    instruction: int
    boundary: Optional[int] = None
    shim_owners: Tuple[int, ...] = ()
    code_tag_mask: int = 0  # low bits of the code pointer that are no address
    base_frame: bool = False  # the outermost frame is a marker that no native eval frame belongs to


@dataclass(frozen=True)
class CodeLayout:
    """A code object. `table` names the format of `line_table` and with it the unit of a frame's instruction:

    "lnotab" (index of a byte), "linetable" (PEP 626, index of a 2-byte unit), "locations" (PEP 657, an address).
    """

    filename: int
    name: int
    first_line: int
    line_table: int
    table: str
    instructions: int = 0  # offset of the first instruction, where a frame's instruction is an address


@dataclass(frozen=True)
class StringLayout:
    """A compact str: characters follow the header, which is longer when they are not ASCII. A bytes object."""

    length: int = 16
    state: int = 32
    ascii_header: int = 40
    wide_header: int = 56
    bytes_length: int = 16
    bytes_data: int = 32


@dataclass(frozen=True)
class InterpreterLayout:
    """Everything needed to walk one release, in bytes from the start of the struct in question."""

    version: Tuple[int, int]
    source: str
    interpreters: int  # in _PyRuntime
    next_interpreter: int
    threads: int  # in the interpreter state
    next_thread: int
    pthread: int  # in the thread state: pthread_self()
    native_id: Optional[int]  # in the thread state: gettid()
    frame: int  # in the thread state: the innermost frame ...
    frame_through: Optional[int]  # ... or a pointer to a struct that has it at this offset
    frames: FrameLayout
    code: CodeLayout
    strings: StringLayout
    gil: GilLayout


_WIDE_STRINGS = StringLayout(ascii_header=48, wide_header=72)  # with wstr, until PEP 623 removed it in 3.12

_3_8 = InterpreterLayout(
    version=(3, 8),
    source="headers of 3.8.18: pycore_pystate.h, cpython/pystate.h, frameobject.h, code.h",
    interpreters=32,
    next_interpreter=0,
    threads=8,
    next_thread=8,
    pthread=176,
    native_id=None,
    frame=24,
    frame_through=None,
    frames=FrameLayout(previous=24, code=32, instruction=104),
    code=CodeLayout(filename=104, name=112, first_line=40, line_table=120, table="lnotab"),
    strings=_WIDE_STRINGS,
    gil=GilLayout(at=1160, last_holder=0, locked=8),
)
_3_9 = replace(
    _3_8,
    version=(3, 9),
    source="headers of 3.9.18: pycore_runtime.h, pycore_interp.h, cpython/pystate.h, cpython/frameobject.h",
    gil=GilLayout(at=360, last_holder=0, locked=8),
)
_3_10 = replace(
    _3_9,
    version=(3, 10),
    source="headers of 3.10.13: pycore_runtime.h, pycore_interp.h, cpython/pystate.h, cpython/frameobject.h",
    frames=FrameLayout(previous=24, code=32, instruction=96),
    code=replace(_3_9.code, table="linetable"),
)

LAYOUTS: Mapping[Tuple[int, int], InterpreterLayout] = {
    row.version: row
    for row in (
        _3_8,
        _3_9,
        _3_10,
        InterpreterLayout(
            version=(3, 11),
            source="headers of 3.11.7: pycore_runtime.h, pycore_interp.h, pycore_frame.h, cpython/code.h",
            interpreters=40,
            next_interpreter=0,
            threads=16,
            next_thread=8,
            pthread=152,
            native_id=160,
            frame=56,
            frame_through=8,
            frames=FrameLayout(previous=48, code=32, instruction=56, boundary=68),
            code=CodeLayout(filename=112, name=128, first_line=72, line_table=136, table="locations", instructions=184),
            strings=_WIDE_STRINGS,
            gil=GilLayout(at=368, last_holder=0, locked=8),
        ),
        InterpreterLayout(
            version=(3, 12),
            source="headers of 3.12.1: pycore_runtime.h, pycore_interp.h, pycore_frame.h, pycore_gil.h, cpython/code.h",
            interpreters=40,
            next_interpreter=0,
            threads=72,
            next_thread=8,
            pthread=136,
            native_id=144,
            frame=56,
            frame_through=0,
            frames=FrameLayout(previous=8, code=0, instruction=56, boundary=70, shim_owners=(3,)),
            code=CodeLayout(filename=112, name=128, first_line=68, line_table=136, table="locations", instructions=192),
            strings=StringLayout(),
            gil=GilLayout(at=384, last_holder=8, locked=16, per_interpreter=True),
        ),
    )
}


@dataclass(frozen=True)
class SelfDescribed:
    """A release whose `_PyRuntime` begins with `_Py_DebugOffsets`: cookie, version, free-threaded, then one 64-bit
    number per field. `fields` is the position of each field that a layout needs, counted in such numbers from the
    start of the table."""

    version: Tuple[int, int]
    source: str
    fields: Mapping[str, int]
    shim_owners: Tuple[int, ...]
    code_tag_mask: int = 0
    base_frame: bool = False


DEBUG_COOKIE = b"xdebugpy"
DEBUG_TABLE_NUMBERS = 100  # upper bound of the fields read

_TABLE_3_13 = {
    name: int(at)
    for name, at in pairs(
        "interpreters=5 next_interpreter=8 threads=9 gil_pointer=14 gil=15 gil_locked=17 gil_holder=18 next_thread=21 "
        "frame=23 pthread=24 native_id=25 frame_previous=29 frame_code=30 frame_instruction=31 frame_owner=33 "
        "code_filename=35 code_name=37 code_line_table=38 code_first_line=39 code_instructions=43 bytes_length=65 "
        "bytes_data=66 str_state=68 str_length=69 str_ascii_header=70"
    ).items()
}
_TABLE_3_14 = {
    name: int(at)
    for name, at in pairs(
        "interpreters=5 next_interpreter=8 threads=9 gil_pointer=15 gil=16 gil_locked=18 gil_holder=19 next_thread=24 "
        "frame=26 pthread=27 native_id=28 frame_previous=32 frame_code=33 frame_instruction=34 frame_owner=36 "
        "code_filename=40 code_name=42 code_line_table=43 code_first_line=44 code_instructions=48 bytes_length=75 "
        "bytes_data=76 str_state=78 str_length=79 str_ascii_header=80"
    ).items()
}

SELF_DESCRIBED: Mapping[Tuple[int, int], SelfDescribed] = {
    row.version: row
    for row in (
        SelfDescribed(
            version=(3, 13),
            source="headers of 3.13.0: pycore_runtime.h, pycore_frame.h (FRAME_OWNED_BY_CSTACK = 3)",
            fields=_TABLE_3_13,
            shim_owners=(3,),
        ),
        SelfDescribed(
            version=(3, 14),
            source="headers of 3.14.10: pycore_debug_offsets.h, pycore_interpframe_structs.h; "
            "FRAME_OWNED_BY_INTERPRETER = 3, FRAME_OWNED_BY_CSTACK = 4; f_executable is a _PyStackRef; each thread "
            "state has a base_frame",
            fields=_TABLE_3_14,
            shim_owners=(3, 4),
            code_tag_mask=3,
            base_frame=True,
        ),
    )
}


@dataclass(frozen=True)
class LocalsRow:
    """Where a frame keeps the objects of its local variables, and a code object their names: tuples, in this order."""

    values: int
    names: Tuple[int, ...]
    stack_size: int  # offset of `co_stacksize` in a code object: so many values of the interpreter's stack come then
    tags: int = 0  # low bits of a value that are no address
    tuple_items: int = 24  # offset of a tuple's first item


_OLD_NAMES = (72, 88, 80)  # co_varnames, co_cellvars, co_freevars
LOCALS: Mapping[Tuple[int, int], LocalsRow] = {
    (3, 8): LocalsRow(360, _OLD_NAMES, 32),
    (3, 9): LocalsRow(360, _OLD_NAMES, 32),
    (3, 10): LocalsRow(352, _OLD_NAMES, 32),
    (3, 11): LocalsRow(72, (96,), 68),  # localsplus, co_localsplusnames
    (3, 12): LocalsRow(72, (96,), 64),
    (3, 13): LocalsRow(72, (96,), 64),
    (3, 14): LocalsRow(80, (96,), 64, tags=3, tuple_items=32),  # _PyStackRef; a tuple keeps its hash
}
"""`offsetof` compiled against the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0 and 3.14.10."""

TUPLE_LENGTH = 16
"""Offset of a tuple's length; a list's is the same."""

CELL_CONTENT = 16
"""Offset of `ob_ref` in a cell."""

TYPE_NAME = 24
"""Offset of `tp_name` in a type object (GIL builds): behind refcount, type and size; unchanged since 3.0."""

OBJECT_TYPE = 8
"""Offset of `ob_type` in an object (GIL builds)."""
