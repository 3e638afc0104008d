"""What part of a tensor is meant: shape and strides over memory, and numpy-like indexes that narrow them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import List, Optional, Sequence, Tuple, Union

from gdbext.knowledge.dtypes import DType, dtype_named
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo

MOST_DIMENSIONS = 64  # as numpy; more is garbage
MOST_ELEMENTS = 1 << 60
ADDRESSES = 1 << 64

Item = Union[int, slice, "ellipsis"]  # noqa: F821 - the type of `...` has no name before Python 3.10

_GROUP = re.compile(r"\[[^\[\]]{0,4096}\]")
_GROUPS = re.compile(r"\s*(?:\[[^\[\]]{0,4096}\]\s*)+\Z")
_NUMBER = re.compile(r"[+-]?\d{1,19}\Z")


@dataclass(frozen=True)
class View:
    """Elements in memory. Positions and strides count values from the first value of the unit at `base`."""

    dtype: DType
    base: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    origin: int = 0  # position of element [0, ..., 0]

    @property
    def count(self) -> int:
        """How many elements it has; 1 for rank 0."""
        return product(self.shape)


def product(numbers: Sequence[int]) -> int:
    """1 for none; stops being exact above MOST_ELEMENTS, so that hostile shapes cost nothing."""
    if 0 in numbers:
        return 0
    result = 1
    for number in numbers:
        result *= number
        if result > MOST_ELEMENTS:
            return MOST_ELEMENTS + 1
    return result


def contiguous(shape: Sequence[int]) -> Tuple[int, ...]:
    """The row-major strides of a shape, in elements."""
    strides: List[int] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step = min(step * max(length, 1), ADDRESSES)
    return tuple(reversed(strides))


def view_of(info: TensorInfo) -> View:
    """All of a tensor. Raises `GdbextError` that says what is missing or makes no sense."""
    dtype, shape, address = info.dtype, info.shape, info.address
    if info.unreadable:
        raise GdbextError(f"{info.name}: {info.unreadable}")
    if isinstance(dtype, Missing):
        if dtype == info.shape == info.address:  # nothing is known of it, or there is nothing
            raise GdbextError(f"{info.name}: {dtype.reason}")
        raise GdbextError(f"{info.name}: element type unknown ({dtype.reason})", "say --dtype, --shape")
    row = dtype_named(dtype)
    if row is None:
        raise GdbextError(f"{info.name}: unknown element type {dtype}", "say --dtype, --shape")
    if not row.decoded:
        raise GdbextError(f"{info.name}: {dtype} is {row.about}", "--dtype uint8 shows the bytes")
    if isinstance(shape, Missing):
        raise GdbextError(f"{info.name}: shape unknown ({shape.reason})", "say --dtype, --shape")
    strides = contiguous(shape) if info.strides is None else info.strides
    _check(info.name, shape, strides)
    count = product(shape)
    if isinstance(address, Missing):
        if count:
            raise GdbextError(f"{info.name}: no address to read from ({address.reason})")
        address = 0
    if not address and count:
        raise GdbextError(f"{info.name}: its data is a null pointer: nothing is allocated")
    return View(row, address, tuple(shape), tuple(strides))


def _check(name: str, shape: Sequence[int], strides: Sequence[int]) -> None:
    if len(shape) > MOST_DIMENSIONS:
        raise GdbextError(f"{name}: {len(shape)} dimensions: not a tensor, or an uninitialised one")
    if len(shape) != len(strides):
        raise GdbextError(f"{name}: {len(shape)} dimensions and {len(strides)} strides do not go together")
    if any(length < 0 for length in shape):
        raise GdbextError(f"{name}: shape {list(shape)} has a negative dimension")
    if product(shape) > MOST_ELEMENTS:
        raise GdbextError(f"{name}: shape {list(shape)} is larger than any memory")
    if any(abs(stride) >= ADDRESSES for stride in strides):
        raise GdbextError(f"{name}: strides {list(strides)} are larger than any memory")


def select(view: View, index: str) -> View:
    """The part of a view that a numpy-like index names: `[0, :, -3:]`, `[...]`, `[::-2]`, `[3][0]`; "" is all of it.

    Raises `UsageError` for what is no index, and for one that is out of bounds.
    """
    for group in _GROUP.findall(index) if _GROUPS.match(index) else [index]:
        view = _select(view, group)
    return view


def _select(view: View, index: str) -> View:
    items = _items(index)
    given = [item for item in items if item is not ...]
    if len(given) > len(view.shape):
        raise UsageError(f"too many indices: the tensor has {len(view.shape)} dimensions, {index} has {len(given)}")
    if ... in items:
        at = items.index(...)
        items[at : at + 1] = [slice(None)] * (len(view.shape) - len(given))
    items += [slice(None)] * (len(view.shape) - len(items))
    origin, shape, strides = view.origin, [], []
    for dimension, (item, length, stride) in enumerate(zip(items, view.shape, view.strides)):
        if isinstance(item, int):
            if not -length <= item < length:
                raise UsageError(f"index {item} is out of bounds for dimension {dimension} with size {length}")
            origin += (item % length) * stride
            continue
        assert isinstance(item, slice)
        chosen = range(length)[item]
        origin += chosen.start * stride if len(chosen) else 0
        shape.append(len(chosen))
        strides.append(stride * chosen.step)
    return replace(view, shape=tuple(shape), strides=tuple(strides), origin=origin)


def _items(index: str) -> List[Item]:
    text = index.strip()
    if not text:
        return []
    if not (text.startswith("[") and text.endswith("]")) or len(text) > 4096:
        raise UsageError(f"{_short(index)} is not an index", "write one like [0, :, -3:]")
    words = [word.strip() for word in text[1:-1].split(",")]
    if words[-1] == "":  # [1,] as in Python; [] selects all
        words.pop()
    items = [_item(word, index) for word in words]
    if items.count(...) > 1:
        raise UsageError("an index can have one '...' only")
    return items


def _item(word: str, index: str) -> Item:
    if word == "...":
        return ...
    if _NUMBER.match(word):
        return int(word)
    parts = [part.strip() for part in word.split(":")]
    if 2 <= len(parts) <= 3 and all(not part or _NUMBER.match(part) for part in parts):
        numbers: List[Optional[int]] = [int(part) if part else None for part in parts]
        if len(numbers) == 3 and numbers[2] == 0:
            raise UsageError("the step of a slice cannot be 0")
        return slice(*numbers)
    raise UsageError(f"{_short(word) or 'nothing'} in {_short(index)} is not an index", "write one like [0, :, -3:]")


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."


def position_of(flat: int, shape: Sequence[int]) -> Tuple[int, ...]:
    """The index tuple of the flat-th element in row-major order."""
    index: List[int] = []
    for length in reversed(shape):
        flat, here = divmod(flat, length)
        index.append(here)
    return tuple(reversed(index))
