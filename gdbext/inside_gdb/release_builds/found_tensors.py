"""Tensors of a frame without debug information: its parameters, and what its registers and its stack lead to.

What nobody has named is shown only where everything in it is as in a tensor in use, and it says how it was found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import gdb

from gdbext.capture.machine import gdb_registers
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.inside_gdb.base.selected_frame import register
from gdbext.inside_gdb.release_builds.engine_libraries import known_releases, structs_of, tables
from gdbext.inside_gdb.release_builds.frame_parameters import Found, Parameters, without_offsets
from gdbext.inside_gdb.release_builds.likely_addresses import Kind, kinds_of, looks_like
from gdbext.inside_gdb.release_builds.release_objects import (
    Describe,
    Seen,
    holds_up,
    is_called,
    is_freed,
    object_at,
    shape_storage,
)
from gdbext.inside_gdb.release_builds.stack_in_use import StackInUse, bounds_of
from gdbext.inside_gdb.stacks.stack_walk import modules_of
from gdbext.inside_gdb.tensors.target_object import StructNode, Unreadable, unpack_integers
from gdbext.knowledge.row_kinds import ReleaseRow
from gdbext.model.errors import NothingFound
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorList

MOST_STACK = 32 << 10
"""Bytes of a frame that are looked at."""
MOST_OBJECT = 4096
"""Bytes of an object that a register points to."""
MOST_OBJECTS = 32
MOST_TENSORS = 256
_ON_STACK = 512  # bytes of an object on the stack, whose size nobody knows
_SMALLEST = 128  # bytes that are read to tell what lies somewhere
_WORD = 8
_CHUNK_FLAGS = 7


class Region(NamedTuple):
    """Memory in which objects or pointers to them may lie. `name`: an expression of its address."""

    name: str
    address: int
    data: bytes
    what: str


class Candidate(NamedTuple):
    name: str
    address: int
    kind: Kind
    what: str


class FrameTensors:
    """The tensors of one frame of the selected inferior."""

    def __init__(self, frame: gdb.Frame, bytes_of: TargetMemory, describe: Describe) -> None:
        self._frame, self._bytes_of, self._describe = frame, bytes_of, describe
        self._rows: Tuple[ReleaseRow, ...] = tables(bytes_of)
        self._kinds = [kind for row in self._rows for kind in kinds_of(row)]
        self._problems: List[str] = []
        self._objects: Set[int] = set()
        self._untold = 0
        inferior = gdb.selected_inferior()
        is_core = compat.kind_of(inferior) != compat.HAS_PROCESS
        self._stack_in_use = StackInUse(frame, bytes_of, modules_of(inferior, is_core))

    def listed(self, place: str) -> TensorList:
        """Raises `NothingFound` where no engine's library is known."""
        if not self._rows:
            for error in without_offsets(self._frame.name() or "").values():
                raise NothingFound(f"{place}: {error.args[0]}", error.hint)
            raise NothingFound(
                f"no debug information in {place}, and no library here has tensors that are known by offsets",
                f"offsets are known of {known_releases()}; for torch, --as torch or llm-tensor list --python",
            )
        parameters = Parameters(self._bytes_of, self._rows, self._describe)
        found: Dict[object, TensorInfo] = {}
        for one in parameters.of(self._frame):
            self._add_parameter(one, parameters.how(self._frame), found)
        for candidate, object_seen in self._scanned(parameters):
            for info in _rows_of(object_seen, candidate.name):
                key = (info.address, info.dtype, info.shape, info.strides)
                if key not in found and len(found) < MOST_TENSORS:
                    found[key] = replace(info, notes=(f"--as {object_seen.type_name}", candidate.what, *info.notes))
        if self._untold:
            place_word = "place looks" if self._untold == 1 else "places look"
            self._problems.append(
                f"{self._untold} more {place_word} like a tensor on the stack; whether it is in use there is not known"
            )
        if not found and not self._problems:
            self._problems.append("its parameters, registers and stack lead to no tensor")
        return TensorList(
            f"{place}, no debug information: by offsets of {known_releases(self._rows)}",
            tuple(found.values()),
            tuple(self._problems),
        )

    def _add_parameter(self, one: Found, how: str, found: Dict[object, TensorInfo]) -> None:
        if isinstance(one.seen, Missing):
            self._problems.append(f"{one.name} ({one.type}): {one.seen.reason}")
            return
        self._objects.add(one.seen.address)
        entries = _rows_of(one.seen, one.name)
        for info in entries:
            key = (info.address, info.dtype, info.shape, info.strides)
            found.setdefault(key if info.kind else info.name, replace(info, notes=(f"parameter {how}", *info.notes)))
        if not entries:
            self._problems.append(f"{one.name} ({one.type}): no tensors in it")

    # --- what was not named ---

    def _scanned(self, parameters: Parameters) -> Iterator[Tuple[Candidate, Seen]]:
        for candidate in self._candidates(parameters):
            if candidate.address in self._objects:
                continue
            seen = self._checked(candidate)
            if seen is None:
                continue
            self._objects.add(candidate.address)
            if self._is_in_use(candidate):
                yield candidate, seen

    def _is_in_use(self, candidate: Candidate) -> bool:
        """Whether an object on the stack is no leftover. Those on the heap are: they hold together."""
        if not self._stack_in_use.holds(candidate.address):
            return True
        size = structs_of(candidate.kind.row)[candidate.kind.type].size
        if self._stack_in_use.uses(candidate.address, size):
            return True
        self._untold += not self._stack_in_use.has_clean_up(candidate.address)
        return False

    def _checked(self, candidate: Candidate) -> Optional[Seen]:
        kind, read = candidate.kind, self._bytes_of.read
        try:
            seen = object_at(candidate.address, kind.type, candidate.name, (kind.row,), read, self._describe)
        except Unreadable:
            return None
        if not holds_up(seen, read):
            return None
        structs = structs_of(kind.row)
        node = StructNode(candidate.address, structs[kind.type], structs, read)
        storage = shape_storage(node)
        return None if not is_called(node) or (storage is not None and is_freed(storage, read)) else seen

    def _candidates(self, parameters: Parameters) -> Iterator[Candidate]:
        regions = [*self._pointed(parameters)]
        for region in regions:
            yield from self._at(region.name, region.address, region.what)
        stack = self._stack()
        if stack is not None:
            yield from self._inside(stack)
        for region in regions:
            yield from self._inside(region)
        objects = 0
        for region in ([stack] if stack is not None else []) + regions:
            for name, value in self._words(region):
                yield from self._at(name, value, region.what)
                if region is stack and objects < MOST_OBJECTS:
                    held = self._polymorphic(name, value, region.what)
                    if held is not None:
                        objects += 1
                        yield from self._inside(held)
                        for inner, pointer in self._words(held):
                            yield from self._at(inner, pointer, held.what)

    def _pointed(self, parameters: Parameters) -> Iterator[Region]:
        """What the registers point to that are known in this frame."""
        names = gdb_registers()
        if names is None:
            return
        newest = self._frame == gdb.newest_frame()
        for name in (*names.kept, *(names.arguments if newest else ())):
            value = register(self._frame, name)
            if value:
                yield from self._region(f"${name}", value, f"by ${name}")
        if not newest:
            for number, passed in enumerate(parameters.registers(self._frame)):
                if isinstance(passed, int) and passed:
                    yield from self._region(f"{passed:#x}", passed, f"by argument register {number + 1}")

    def _region(self, name: str, address: int, what: str) -> Iterator[Region]:
        size = self._size_of(address)
        data = self._bytes_of.read(address, size)
        if data is not None:
            yield Region(name, address, data, what)

    def _size_of(self, address: int) -> int:
        """How many bytes there are of an object: those of its piece of the heap, where it is one."""
        if self._stack_in_use.holds(address):  # each that is found there is looked up in its frame's clean-up code
            return _ON_STACK if self._bytes_of.read(address, _ON_STACK) is not None else _WORD
        head = self._bytes_of.read(address - _WORD, _WORD)
        size = int.from_bytes(head, "little") & ~_CHUNK_FLAGS if head is not None else 0
        if address % 16 or not 32 <= size <= MOST_OBJECT or size % 16:
            return _WORD
        return size - _WORD

    def _stack(self) -> Optional[Region]:
        bounds = bounds_of(self._frame)
        if bounds is None:
            return None
        start, end = bounds
        if end - start > MOST_STACK:
            self._problems.append(f"only the first {MOST_STACK >> 10} KiB of the frame's stack were looked at")
        data = self._bytes_of.read(start, min(end - start, MOST_STACK) & -_WORD)
        return None if data is None else Region("$sp", start, data, "on the stack")

    def _words(self, region: Region) -> Iterator[Tuple[str, int]]:
        for number, value in enumerate(unpack_integers(region.data[: len(region.data) & -_WORD], _WORD, False)):
            if value > 0xFFFF and value % _WORD == 0 and value < 1 << 48:
                yield f"*(long*)({region.name}+{number * _WORD:#x})", value

    def _at(self, name: str, address: int, what: str) -> Iterator[Candidate]:
        data = self._bytes_of.read(address, _SMALLEST) if address not in self._objects else None
        if data is not None:
            words = unpack_integers(data, _WORD, False)
            for kind in self._kinds:
                if looks_like(kind, words, 0):
                    yield Candidate(name, address, kind, what)

    def _inside(self, region: Region) -> Iterator[Candidate]:
        words = unpack_integers(region.data[: len(region.data) & -_WORD], _WORD, False)
        for number in range(len(words)):
            for kind in self._kinds:
                if looks_like(kind, words, number):
                    name = f"{region.name}+{number * _WORD:#x}" if number or region.name == "$sp" else region.name
                    yield Candidate(name, region.address + number * _WORD, kind, region.what)

    def _polymorphic(self, name: str, address: int, what: str) -> Optional[Region]:
        """An object with a virtual table, as most layers and models are."""
        head = self._bytes_of.read(address, _WORD)
        table = int.from_bytes(head, "little") if head is not None else 0
        if not table or not self._bytes_of.classify(table).name.startswith("/"):
            return None
        return next(self._region(name, address, what), None)


def _rows_of(seen: Seen, name: str) -> List[TensorInfo]:
    """One row per tensor, by names that can be typed."""
    if isinstance(seen.described, TensorInfo):
        return [replace(seen.described, name=name)]
    outer = f"({name})" if "+" in name or name.startswith("*") else name
    entries = [one for one in seen.described.entries if one.kind]
    return [replace(one, name=outer + (one.name if one.name.startswith("[") else f'["{one.name}"]')) for one in entries]
