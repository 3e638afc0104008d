"""Streams and events in the program's objects: what a value is, and which members of a type lead to one."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import gdb

from gdbext.analysis.streams.stream_ids import Decoded, of_handle, of_torch_id
from gdbext.inside_gdb.tensors.member_paths import NoMember, follow, matches, unwrap_layer
from gdbext.inside_gdb.tensors.object_by_dwarf import ValueNode
from gdbext.inside_gdb.tensors.target_object import NAME_CAP, Node, Null, Unreadable, same_everywhere, without_arguments
from gdbext.knowledge.engines.engine_row_kinds import Holder
from gdbext.knowledge.runtimes.cuda_streams import EVENT_HOLDERS, EVENT_TYPE, HOLDERS, STREAM_TYPE
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import NOT_IN_HANDLE

_MOST_PEELS = 8
_MOST_FIELDS = 2048  # of all types together that one root leads to
_MOST_PATHS = 64
_OWNERS = ("std::unique_ptr", "std::shared_ptr")
_REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
_CLASS = gdb.TYPE_CODE_STRUCT
_BY_THEMSELVES = tuple(row for row in HOLDERS if row.type != ".*")


class Found(NamedTuple):
    """A stream or event in an object."""

    event: bool
    decoded: Decoded
    device: Maybe[int]
    type_name: str


def found_in(node: Node) -> Optional[Found]:
    """What a value is, if it is a stream or an event itself; None for anything else. Raises `Null`, `Unreadable`."""
    name = node.type_name[:NAME_CAP]
    if isinstance(node, ValueNode) and _points_to(node.type, EVENT_TYPE):
        return Found(True, _event(node.integer()), NOT_IN_HANDLE, name)
    if isinstance(node, ValueNode) and _points_to(node.type, STREAM_TYPE):
        return Found(False, of_handle(node.integer()), NOT_IN_HANDLE, name)
    for rows, event in ((_BY_THEMSELVES, False), (EVENT_HOLDERS, True)):
        found = in_holder(node, rows, event)
        if found is not None:
            return found
    return None


def in_holder(node: Node, rows: Sequence[Holder], event: bool = False) -> Optional[Found]:
    """The stream (or event) of an object of one of these classes."""
    for row in rows:
        if not matches(row.type, node.type_name):
            continue
        try:
            end = follow(node, row.path)
        except NoMember:
            continue
        number = end.integer() if row.torch_id else _handle(end, EVENT_TYPE if event else STREAM_TYPE)
        decoded = _event(number) if event else of_torch_id(number) if row.torch_id else of_handle(number)
        return Found(event, decoded, _device(node, row), node.type_name[:NAME_CAP])
    return None


def _event(handle: int) -> Decoded:
    handle &= (1 << 64) - 1
    return Decoded("event", handle if handle else Missing("null: no event"))


def _handle(node: Node, pattern: str) -> int:
    """The handle at the end of a path: itself, or what a smart pointer holds."""
    for _ in range(_MOST_PEELS):
        if isinstance(node, ValueNode) and _points_to(node.type, pattern):
            return node.integer()
        if re.fullmatch(pattern, node.type_name) and node.address is not None:
            return node.address
        try:
            inner = unwrap_layer(node)
        except Null:
            raise Null("it holds no stream") from None
        if inner is None:
            break
        node = inner
    raise Unreadable(f"its stream is a {node.type_name[:NAME_CAP]}, which is not known")


def _points_to(kind: gdb.Type, pattern: str) -> bool:
    if kind.code != gdb.TYPE_CODE_PTR:
        return False
    return bool(re.fullmatch(pattern, str(kind.target().strip_typedefs().unqualified())))


def _device(node: Node, row: Holder) -> Maybe[int]:
    if not row.device:
        return NOT_IN_HANDLE
    try:
        return follow(node, row.device).integer()
    except Unreadable as problem:
        return Missing(str(problem))


class StreamPaths:
    """Which members of a type lead to streams, by the types alone: asked once a type, for one command."""

    def __init__(self) -> None:
        self._known: Dict[Tuple[str, int], Tuple[str, ...]] = {}

    def of(self, kind: gdb.Type, depth: int) -> Tuple[str, ...]:
        """Paths for `follow`; "" when the value itself is one. Pointers are followed `depth` times."""
        kind = object_of(kind)
        key = (f"{name_of(kind)}/{kind.sizeof}", depth)
        if key not in self._known:
            found: List[str] = []
            budget = [_MOST_FIELDS]
            try:
                self._collect(kind, depth, "", found, budget, ())
            except (gdb.error, RuntimeError, TypeError):  # damaged debug information
                pass
            self._known[key] = tuple(found)
        return self._known[key]

    def _collect(
        self, kind: gdb.Type, depth: int, path: str, found: List[str], budget: List[int], above: Tuple[str, ...]
    ) -> None:
        name = name_of(kind)
        if _is_stream(kind):
            found.append(path)
            return
        if kind.code != _CLASS or name in above or len(found) >= _MOST_PATHS:
            return
        if without_arguments(name).startswith("std::"):
            return
        for member, inner in _members(kind):
            budget[0] -= 1
            if budget[0] < 0 or len(found) >= _MOST_PATHS:
                return
            target, steps = _pointed(inner)
            if _is_stream(inner) or depth >= steps:
                where = f"{path}.{member}" if path else member
                self._collect(
                    inner if _is_stream(inner) else target, depth - steps, where, found, budget, (*above, name)
                )


def object_of(kind: gdb.Type) -> gdb.Type:
    """The type without references, typedefs, cv; of a pointer the class that it points to."""
    kind = kind.strip_typedefs().unqualified()
    for _ in range(2):
        if kind.code in _REFERENCES or (kind.code == gdb.TYPE_CODE_PTR and not _is_stream(kind)):
            kind = kind.target().strip_typedefs().unqualified()
    return kind


def name_of(kind: gdb.Type) -> str:
    """A type's name, whatever language the selected frame is in: as text a class of C++ is a `struct` in C's words."""
    return same_everywhere(kind.name or kind.tag or str(kind))


def _pointed(kind: gdb.Type) -> Tuple[gdb.Type, int]:
    """What a member leads to, and whether through a pointer."""
    kind = kind.strip_typedefs().unqualified()
    if kind.code in _REFERENCES or (kind.code == gdb.TYPE_CODE_PTR and not _is_stream(kind)):
        return kind.target().strip_typedefs().unqualified(), 1
    if kind.code == _CLASS and without_arguments(name_of(kind)) in _OWNERS:
        return kind.template_argument(0).strip_typedefs().unqualified(), 1
    return kind, 0


def _is_stream(kind: gdb.Type) -> bool:
    kind = kind.strip_typedefs().unqualified()
    if _points_to(kind, STREAM_TYPE) or _points_to(kind, EVENT_TYPE):
        return True
    return kind.code == _CLASS and any(matches(row.type, name_of(kind)) for row in (*_BY_THEMSELVES, *EVENT_HOLDERS))


def _members(kind: gdb.Type) -> Iterator[Tuple[str, gdb.Type]]:
    """Data members with those of base classes."""
    for field in kind.fields():
        if not hasattr(field, "bitpos") or field.type is None:  # static
            continue
        if field.is_base_class:
            yield from _members(field.type.strip_typedefs())
        elif field.name:
            yield str(field.name), field.type


def owner_of(node: Node, path: str) -> str:
    """The class of the object that the last member of a path belongs to."""
    parent, _, _ = path.rpartition(".")
    try:
        holder = follow(node, parent) if parent else node
        for _ in range(_MOST_PEELS):
            inner = unwrap_layer(holder)
            if inner is None:
                break
            holder = inner
    except Unreadable:
        return ""
    return holder.type_name[:NAME_CAP]
