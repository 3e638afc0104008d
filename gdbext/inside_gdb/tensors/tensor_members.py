"""What a tensor object says of itself, by the paths of its row in `knowledge.engines`: dtype, shape, address."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Sequence, Tuple, Union

from gdbext.analysis.tensors.index import contiguous, product
from gdbext.inside_gdb.tensors import placement, shapes
from gdbext.inside_gdb.tensors.member_paths import NoMember, address_node, first_of, integer, integers
from gdbext.inside_gdb.tensors.target_object import NAME_CAP, Node, Null, Unreadable
from gdbext.knowledge.all_tensor_layouts import DTYPE_TABLES, PLACE_TABLES
from gdbext.knowledge.row_kinds import EnumTable, TensorLayout
from gdbext.model.missing import Maybe, Missing
from gdbext.model.tensor import TensorInfo

_NULL = Missing("null pointer")


def dtype_of(row: TensorLayout, node: Node) -> Tuple[Maybe[str], bool]:
    """The element type, and whether two values make one element."""
    if not row.dtype:
        return Missing("this type has no element type"), False
    try:
        word = _meaning(first_of(node, row.dtype), DTYPE_TABLES[row.dtypes])
    except Unreadable as error:
        return Missing(str(error)), False
    if isinstance(word, Missing):
        return word, False
    name, star, _ = word.partition("*")
    return name, bool(star)


def shape_of(row: TensorLayout, node: Node) -> Maybe[Tuple[int, ...]]:
    """As the object has it, not yet in the order of the row."""
    try:
        if row.count:
            dims: Tuple[int, ...] = (integer(node, row.count),)
        else:
            dims = _first_integers(node, row.shape)
    except Unreadable as error:
        return Missing(str(error))
    return shapes.checked_dims(dims)


def _first_integers(node: Node, paths: Sequence[str]) -> Tuple[int, ...]:
    problem = Unreadable("not known")
    for path in paths:
        try:
            return integers(node, path)
        except Unreadable as error:
            problem = error
    raise problem


def strides_of(
    row: TensorLayout, node: Node, shape: Maybe[Tuple[int, ...]], element: Maybe[str]
) -> Union[Tuple[int, ...], Missing, None]:
    """In elements; None where there are none to be had."""
    if not row.strides or isinstance(shape, Missing):
        return None
    try:
        strides = _first_integers(node, row.strides)
    except Null:
        return None
    except Unreadable as error:
        return Missing(str(error))
    if len(strides) != len(shape):
        return Missing(f"{len(strides)} for {len(shape)} dimensions")
    if any(abs(stride) >= shapes.LARGEST for stride in strides):
        return Missing("out of any range: the object is not initialised or overwritten")
    return shapes.in_elements(strides, element) if row.strides_unit == "bytes" else strides


def place_of(row: TensorLayout, node: Node) -> Maybe[str]:
    """`cpu`, `gpu 3`, ..."""
    for pattern, by_type in row.place_by_type:
        if re.search(pattern, node.type_name):
            return by_type
    if not row.place:
        return Missing("the type does not say")
    try:
        place = _meaning(first_of(node, row.place), PLACE_TABLES[row.places])
    except Unreadable as error:
        return Missing(str(error))
    if isinstance(place, Missing) or place not in placement.ACCELERATORS:
        return place or Missing("not set")
    number = number_of(row.device_index, node) if row.device_index else -1
    return place if isinstance(number, Missing) or not 0 <= number < 1024 else f"{place} {number}"


def number_of(paths: Sequence[str], node: Node) -> Maybe[int]:
    """A number of a member; 0 where the row names none, or a pointer on the way is null."""
    if not paths:
        return 0
    try:
        return integer(node, paths)
    except Null:
        return 0
    except Unreadable as error:
        return Missing(str(error))


def address_of(row: TensorLayout, node: Node) -> Maybe[int]:
    """Where the data begin, by the first path that leads anywhere."""
    if not row.data:
        return Missing("this type holds no data")
    reason = Missing("not known")
    for path in row.data:
        try:
            address = address_node(first_of(node, (path,))).integer()
        except NoMember as error:
            reason = reason if reason is _NULL else Missing(str(error))
            continue
        except Null:
            reason = _NULL
            continue
        except Unreadable as error:
            return Missing(str(error))
        if address:
            return address
        reason = _NULL
    return reason


def with_address(row: TensorLayout, node: Node, info: TensorInfo) -> TensorInfo:
    """The tensor with its first element's place, and whose storage that is."""
    start = address_of(row, node)
    offset = number_of(row.offset, node)
    if isinstance(start, Missing):
        return replace(info, address=start)
    info = placement.offset_tensor(replace(info, address=start), offset)
    owner = f"{placement.place_word(info.where)} storage at {start:#x}" if info.offset else None
    return _within(row, node, replace(info, owner=owner))


def _within(row: TensorLayout, node: Node, info: TensorInfo) -> TensorInfo:
    """Says when the elements reach beyond the storage they lie in."""
    size = number_of(row.storage_bytes, node)
    dtype = shapes.row_of(info.dtype)
    if not row.storage_bytes or isinstance(size, Missing) or dtype is None or isinstance(info.shape, Missing):
        return info
    strides = info.strides if info.strides is not None else contiguous(info.shape)
    last = sum((length - 1) * stride for length, stride in zip(info.shape, strides))
    end = dtype.nbytes(info.offset + last + 1)
    if not size < end <= shapes.LARGEST or not product(info.shape):
        return info
    problem = f"reaches to byte {end:,} of a storage of {size:,} bytes"
    return replace(info, problems=(*info.problems, problem))


def with_notes(row: TensorLayout, node: Node, info: TensorInfo) -> TensorInfo:
    """The tensor with the name and the number of elements that the object gives itself, where they are others."""
    notes = list(info.notes)
    if row.name:
        try:
            called = first_of(node, row.name).text()
            if called and called != info.name:
                notes.append(f"called {called[:NAME_CAP]}")
        except Unreadable:
            pass
    problems = list(info.problems)
    said = number_of(row.elements, node) if row.elements else Missing("")
    if not isinstance(said, Missing) and not isinstance(info.shape, Missing):
        values = 2 if info.notes else 1
        if said * values != product(info.shape) and product(info.shape) < shapes.LARGEST:
            problems.append(shapes.Contradiction(f"says {said:,} elements, its shape {product(info.shape):,}"))
    return replace(info, notes=tuple(notes), problems=tuple(problems))


def _meaning(node: Node, table: EnumTable) -> Maybe[str]:
    """What an enumerator or a number says, by name where there is one."""
    node = address_node(node)
    name, number = node.enumerator(), node.integer()
    if name is not None:
        return table.names.get(name) or table.numbers.get(number) or name
    found = table.numbers.get(number)
    return Missing(f"{number} is not a value of its type here") if found is None else found
