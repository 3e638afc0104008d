"""The one reader of tensor objects: follows rows of `knowledge.engines` over nodes, returns `TensorInfo`.

It reads what an object says about itself; the values are read later, elsewhere. Whatever stands in memory, the answer
is an object with the reasons for what is missing: uninitialised, freed and overwritten tensors are everyday input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Callable, List, Optional, Sequence, Set, Tuple, Union

from gdbext.inside_gdb.base import memory
from gdbext.inside_gdb.tensors import placement, shapes
from gdbext.inside_gdb.tensors.member_paths import (
    MOST_PEELS,
    address_node,
    entries,
    first_of,
    items,
    matches,
    members_of_graph,
    unwrap_layer,
)
from gdbext.inside_gdb.tensors.target_object import NAME_CAP, Node, Null, Unreadable, without_arguments
from gdbext.inside_gdb.tensors.tensor_members import (
    dtype_of,
    number_of,
    place_of,
    shape_of,
    strides_of,
    with_address,
    with_notes,
)
from gdbext.knowledge.all_tensor_layouts import LAYOUTS
from gdbext.knowledge.row_kinds import TensorLayout
from gdbext.model.codes import Code
from gdbext.model.errors import UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorMapInfo

MOST_ENTRIES = 256
"""Tensors shown of a map, a vector or a struct."""
MOST_STEPS = 4096
"""Objects looked at for one answer."""
DEEPEST = 3
"""Maps of vectors of structs of tensors; deeper is somebody else's data structure."""
_NO_TYPE = "invalid"  # what rows call the number that stands for no element type
_CONTAINER = -1  # stands for a map, a vector or a struct where the addresses of enclosing tensors are kept

Pairs = Tuple[Sequence[Tuple[str, Node]], Optional[int]]
"""Keys and values, and how many the container says there are."""
Described = Union[TensorInfo, TensorMapInfo]
SymbolAt = Callable[[int], Optional[str]]
"""The symbol that starts at an address."""


class UnknownType(UsageError):
    """No row is about the type of an expression."""

    def __init__(self, type_name: str) -> None:
        super().__init__(
            f"no layout of a tensor is known for the type {type_name[:NAME_CAP]}",
            "give its address with --dtype, --shape and, if you know it, --where",
        )


@lru_cache(maxsize=2048)
def layout_of(type_name: str) -> Optional[TensorLayout]:
    """The row about a type by its name alone."""
    return next((row for row in LAYOUTS if matches(row.type, type_name)), None)


@lru_cache(maxsize=2048)
def mentions_tensor(type_name: str) -> bool:
    """Whether a tensor's type stands anywhere in a type's name, as in that of an empty vector of tensors."""
    return any(re.search(rf"\b(?:{row.type})\b", type_name) for row in LAYOUTS)


def find_layout(node: Node, depth: int = 0) -> Optional[Tuple[TensorLayout, Node]]:
    """The row about a node or one of its base classes, and that subobject."""
    row = layout_of(node.type_name)
    if row is not None:
        return row, node
    if depth > DEEPEST:
        return None
    return next((found for base in node.bases() for found in [find_layout(base, depth + 1)] if found), None)


@dataclass(frozen=True)
class Reader:
    """`classify` says what lies at an address, `symbol_at` which symbol, `kind_note` what is said behind a kind."""

    classify: Callable[[int], memory.Place]
    symbol_at: SymbolAt = lambda address: None
    device_memory: bool = False  # this debugger can read the GPU's
    substitute: Callable[[Node], Node] = lambda node: node  # for types whose debug information is not there
    behind: Callable[[Node, TensorInfo], TensorInfo] = lambda node, info: info  # what a class derived of it adds
    kind_note: str = ""
    only: str = ""  # of a graph only the tensors of this name
    steps: List[int] = field(default_factory=lambda: [MOST_STEPS])  # what is left of them: garbage must end too
    graphs: Set[Optional[int]] = field(default_factory=set)  # where those that were shown lie: once is enough

    # --- finding the tensor ---

    def describe(self, node: Node, name: str, seen: Tuple[int, ...] = ()) -> Described:
        """The tensor, or the tensors, that a node is, holds or points to. Raises `UnknownType`."""
        outer = node.type_name
        self.steps[0] -= 1
        if self.steps[0] < 0:
            raise UnknownType(outer)
        for _ in range(MOST_PEELS):
            try:
                node = self.substitute(node)
                found = find_layout(node)
                if found is not None:
                    return self._tensor(*self._concrete(*found), name, seen)
                container = self._container(node, name, outer, seen)
                if container is not None:
                    return container
                inner = unwrap_layer(node)
                struct = self._struct(node, name, seen) if inner is None else None
                if struct is not None:
                    return struct
            except Null as error:
                return _nothing(name, outer, f"holds nothing: {error}")
            except Unreadable as error:
                return _nothing(name, outer, f"cannot be read: {error}", Code.UNREADABLE)
            if inner is None:
                raise UnknownType(node.type_name)
            node = inner
        return _nothing(name, outer, "an endless chain of pointers")

    def _concrete(self, row: TensorLayout, node: Node) -> Tuple[TensorLayout, Node]:
        """The row of the class that an object really is."""
        dynamic = node.dynamic()
        if dynamic is not node:
            found = find_layout(dynamic)
            if found is not None:
                return found
        return row, node

    def _container(self, node: Node, name: str, kind: str, seen: Tuple[int, ...]) -> Optional[TensorMapInfo]:
        """A map, a sequence or a graph of tensors; None when it is none of these."""
        graph = members_of_graph(node, MOST_ENTRIES, self.only)
        if graph is not None:
            if node.address in self.graphs:
                raise UnknownType(node.type_name)
            self.graphs.add(node.address)
            return TensorMapInfo(name, node.type_name, tuple(self._entries(graph[0], (*seen, _CONTAINER))), graph[1])
        if len(seen) >= DEEPEST or node.is_scalar or node.is_pointer:
            return None
        found: Optional[Pairs] = entries(node, MOST_ENTRIES)
        if found is None:  # turbomind's TensorMap is derived from a map
            found = next((one for base in node.bases() for one in [entries(base, MOST_ENTRIES)] if one), None)
        if found is None:
            sequence = items(node, MOST_ENTRIES)
            if sequence is None:
                return None
            found = [(f"[{number}]", item) for number, item in enumerate(sequence[0])], sequence[1]
        tensors = self._entries(found[0], (*seen, _CONTAINER))
        if not tensors and (found[0] or not mentions_tensor(node.type_name)):
            return None
        total = len(tensors) if found[1] is None else found[1]
        return TensorMapInfo(name, without_arguments(kind).rstrip(" *"), tuple(tensors), total)

    def _struct(self, node: Node, name: str, seen: Tuple[int, ...]) -> Optional[TensorMapInfo]:
        """A plain struct with tensors among its members."""
        if len(seen) >= DEEPEST:
            return None
        tensors = self._entries([*node.fields()][:MOST_ENTRIES], (*seen, _CONTAINER))
        return TensorMapInfo(name, node.type_name[:NAME_CAP], tuple(tensors), len(tensors)) if tensors else None

    def _entries(self, pairs: Sequence[Tuple[str, Node]], seen: Tuple[int, ...]) -> List[TensorInfo]:
        tensors: List[TensorInfo] = []
        strangers = 0
        for key, value in pairs:
            if len(tensors) >= MOST_ENTRIES or strangers > MOST_ENTRIES:
                break
            try:
                described = self.describe(value, key, seen)
            except UsageError:
                strangers += 1
                continue
            if isinstance(described, TensorInfo):
                tensors.append(described)
            else:
                tensors += [replace(one, name=_joined(key, one.name)) for one in described.entries]
        # Null pointers alone make no collection: any struct has those.
        return tensors if any(one.kind for one in tensors) else []

    # --- reading it ---

    def _tensor(self, row: TensorLayout, node: Node, name: str, seen: Tuple[int, ...]) -> TensorInfo:
        if row.interface:
            reason = f"an interface: its implementation is unknown ({node.type_name[:NAME_CAP]})"
            return TensorInfo(name=name, kind=row.id, problems=(reason,))
        if row.undefined and node.address and self._is_undefined(row, node.address):
            missing = Missing("undefined tensor")
            return TensorInfo(
                name=name, kind=self._kind(row), dtype=missing, shape=missing, address=missing, where=missing
            )
        if row.parent:
            return self._view(row, node, name, seen)
        element, pair = dtype_of(row, node)
        shape = shape_of(row, node)
        strides = strides_of(row, node, shape, element)
        info = TensorInfo(
            name=name,
            kind=self._kind(row),
            type_name="" if layout_of(node.type_name) is row else node.type_name[:NAME_CAP],
            dtype=element,
            shape=shape,
            strides=strides if isinstance(strides, tuple) else None,
            where=place_of(row, node),
            problems=(shapes.Contradiction(f"strides: {strides.reason}"),) if isinstance(strides, Missing) else (),
        )
        info = shapes.ordered(row, info)
        info = shapes.double_last_dimension(info) if pair else info
        info = with_address(row, node, info)
        if info.dtype == _NO_TYPE and isinstance(info.address, Missing):
            return _empty(info)
        info = with_notes(row, node, info)
        info = self.finish(replace(info, parts=self._parts(row, node, seen)))
        return self.behind(node, info)

    def _kind(self, row: TensorLayout) -> str:
        return row.id + self.kind_note

    def _is_undefined(self, row: TensorLayout, address: int) -> bool:
        return (self.symbol_at(address) or "").startswith(row.undefined)

    def _view(self, row: TensorLayout, node: Node, name: str, seen: Tuple[int, ...]) -> TensorInfo:
        """A view has its own shape and position, and everything else from its parent."""
        place = node.address or 0
        if place in seen or len(seen) > 2 * DEEPEST:
            return TensorInfo(name=name, kind=row.id, problems=("a view of itself",))
        try:
            above = self.describe(first_of(node, row.parent), "parent", (*seen, place))
        except (Unreadable, UsageError) as error:
            return TensorInfo(name=name, kind=row.id, problems=(f"parent: {error}",))
        if not isinstance(above, TensorInfo):
            return TensorInfo(name=name, kind=row.id, problems=("its parent is not a single tensor",))
        info = replace(above, name=name, kind=row.id, shape=shape_of(row, node), strides=None, notes=())
        info = replace(info, type_name="", unreadable=None, owner=_view_of(above), parts=(above,))
        offset = number_of(row.offset, node)
        info = replace(placement.offset_tensor(info, offset), offset=0 if isinstance(offset, Missing) else offset)
        return self.finish(shapes.ordered(row, info))

    def _parts(self, row: TensorLayout, node: Node, seen: Tuple[int, ...]) -> Tuple[TensorInfo, ...]:
        parts: List[TensorInfo] = []
        here = (*seen, node.address or 0)
        if len(here) > DEEPEST:
            return ()
        for label, path in row.parts:
            try:
                part = first_of(node, (path,))
                target = address_node(part)
                if not target.integer() or target.integer() in here:
                    continue
                described = self.describe(part, label, here)
            except (Unreadable, UsageError):
                continue
            if isinstance(described, TensorInfo):
                parts.append(described)
        return tuple(parts)

    def finish(self, info: TensorInfo) -> TensorInfo:
        """Fill in what follows from dtype, shape and address: bytes, the place, and why values cannot be read."""
        return placement.placed(info, self.classify, self.device_memory)


def _empty(info: TensorInfo) -> TensorInfo:
    """One that was made and never given anything."""
    missing = Missing("empty: it has no element type and no memory")
    return replace(info, dtype=missing, shape=missing, strides=None, where=missing, address=missing, problems=())


def _nothing(name: str, type_name: str, reason: str, code: Code = Code.OTHER) -> TensorInfo:
    missing = Missing(reason, code)
    return TensorInfo(
        name=name,
        kind="",
        type_name=type_name[:NAME_CAP],
        dtype=missing,
        shape=missing,
        where=missing,
        address=missing,
        problems=(reason,),
    )


def _joined(key: str, name: str) -> str:
    return f"{key}{name}" if name.startswith("[") else f"{key}.{name}"


def _view_of(above: TensorInfo) -> str:
    place = above.address if isinstance(above.address, Missing) else f"{above.address:#x}"
    return f"view of {above.kind} at {place}"
