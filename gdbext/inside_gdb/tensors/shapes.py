"""Shapes and strides as the model wants them: sane, outermost dimension first, in values, nothing said twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Sequence, Tuple, Union

from gdbext.analysis.tensors.index import contiguous, product
from gdbext.knowledge.dtypes import DType, dtype_named
from gdbext.knowledge.row_kinds import TensorLayout
from gdbext.model.missing import Maybe, Missing
from gdbext.model.tensor import TensorInfo

LARGEST = 1 << 56  # elements, bytes: more than any address space has
_SYMBOLIC, _TOP_BITS = 0b101, 0b111  # c10::SymInt: how a pointer to a SymNode is marked in the top three bits


class Contradiction(str):
    """A problem of a tensor that only another layout explains, and no mistake of the program."""


def row_of(dtype: Maybe[str]) -> Optional[DType]:
    """The row of a dtype; None when it is not known."""
    return None if isinstance(dtype, Missing) else dtype_named(dtype)


def checked_dims(dims: Tuple[int, ...]) -> Maybe[Tuple[int, ...]]:
    for length in dims:
        if length < 0 and (length >> 61) & _TOP_BITS == _SYMBOLIC:
            return Missing("symbolic: a dimension is an expression, not a number")
        if length < 0:
            return Missing(f"a dimension is negative: {length:,}")
    if product(dims) >= LARGEST:
        return Missing("out of any range: the object is not initialised or overwritten")
    return dims


def in_elements(strides: Tuple[int, ...], element: Maybe[str]) -> Union[Tuple[int, ...], Missing]:
    """Byte strides in elements. Of block types the innermost stride is that of a block: its values lie in a row."""
    dtype = row_of(element)
    if dtype is None:
        return Missing("in bytes, of elements of unknown size")
    if any(stride % dtype.unit for stride in strides):
        return Missing(f"not multiples of the element's {dtype.unit} bytes")
    return tuple(
        1 if number == 0 and stride == dtype.unit else stride // dtype.unit * dtype.per_unit
        for number, stride in enumerate(strides)
    )


def ordered(row: TensorLayout, info: TensorInfo) -> TensorInfo:
    """Outermost dimension first; strides only where they say something; no elements where rank 0 means none."""
    shape, strides = info.shape, info.strides
    if isinstance(shape, Missing):
        return replace(info, strides=None)
    if row.reversed:
        rank = max((number + 1 for number, length in enumerate(shape) if length != 1), default=1)
        shape = shape[:rank][::-1]
        strides = strides[:rank][::-1] if strides is not None else None
    if not shape and not row.rank0_elements:
        return replace(info, shape=(0,), strides=None, notes=(*info.notes, "rank 0 means no elements here"))
    return replace(info, shape=shape, strides=None if _is_contiguous(shape, strides) else strides)


def _is_contiguous(shape: Sequence[int], strides: Optional[Sequence[int]]) -> bool:
    if strides is None or not product(shape):
        return True
    return all(length == 1 or stride == usual for length, stride, usual in zip(shape, strides, contiguous(shape)))


def double_last_dimension(info: TensorInfo) -> TensorInfo:
    """Two values in each element that the shape counts: the last dimension has twice as many values."""
    if isinstance(info.shape, Missing) or not info.shape:
        return info
    strides = info.strides
    if strides is not None:
        strides = (*(2 * stride for stride in strides[:-1]), 1) if strides[-1] == 1 else None
    shape = (*info.shape[:-1], 2 * info.shape[-1])
    return replace(info, shape=shape, strides=strides, notes=(*info.notes, "two values in each element"))
