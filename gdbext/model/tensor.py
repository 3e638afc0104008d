"""Tensors of a stopped process: what they are, what they hold, and how they compare over ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional, Tuple, Union

from gdbext.model.missing import Maybe, Missing

Index = Tuple[int, ...]
"""The position of one element: one number per dimension; () in a scalar."""

Element = Union[bool, int, float, complex, str, Missing]
"""One decoded value; `Missing` where the page could not be read. `str` for bytes that have no number in them."""

_NOT_READ = Missing("not read")


@dataclass(frozen=True)
class TensorInfo:
    """What an expression says it is, before a value is read. A field that could not be had is `Missing`.

    `shape` and `strides` have one entry per dimension, outermost first, strides in elements (packed and block types:
    in values, not in storage units); `strides` None means contiguous in row-major order. `address` is that of element
    [0, ..., 0]: offsets of views are in it already.
    """

    name: str  # the expression, or the key in a map
    kind: str = ""  # which layout it was read by: "fastertransformer::Tensor", "at::Tensor of torch 2.13 by offsets"
    type_name: str = ""  # as the debugger says it, when it is not what `kind` says
    dtype: Maybe[str] = _NOT_READ  # name of a row of knowledge/dtypes.py; the engine's word when there is no row
    shape: Maybe[Tuple[int, ...]] = _NOT_READ
    strides: Optional[Tuple[int, ...]] = None
    where: Maybe[str] = _NOT_READ  # "cpu", "pinned", "gpu 0", "managed", "meta"
    address: Maybe[int] = _NOT_READ
    offset: int = 0  # elements from the start of the storage, for people: `address` has it already
    owner: Optional[str] = None  # "cpu storage 0x.., 3 references", "view of 0x..", ...
    nbytes: Maybe[int] = _NOT_READ  # bytes of its elements, without gaps of strides
    unreadable: Optional[str] = None  # why its values cannot be read from here (device memory in plain gdb, meta)
    problems: Tuple[str, ...] = ()  # what is wrong with it: "shape has 1,152 dimensions: not a tensor", ...
    notes: Tuple[str, ...] = ()  # what is worth knowing: "rank 0 means no elements here", "requires grad", ...
    parts: Tuple[TensorInfo, ...] = ()  # tensors it is made of: scales, zeros, the parent of a view


@dataclass(frozen=True)
class NumberFormat:
    """How elements of a dtype are written: floats with as many digits as tell two neighbours apart."""

    kind: str  # "bool", "int", "float", "complex" or "bytes"
    mantissa: int = 52  # stored bits of the mantissa (of each part of a complex number)
    least_exponent: int = -1022  # power of two of the smallest normal number


@dataclass(frozen=True)
class TensorValues:
    """Elements that were read, in row-major order of what `index` selects.

    With `edge_items` N above 0 every dimension longer than 2 N has only its first and last N entries in `elements`.
    """

    info: TensorInfo
    shape: Tuple[int, ...]  # of the selection
    elements: Tuple[Element, ...]
    number: NumberFormat
    index: str = ""  # as typed: "[0, :, -3:]"; "" for all of it
    edge_items: int = 0
    read: int = 0  # how many of `elements` are not Missing
    problem: Optional[str] = None

    @property
    def grid(self) -> Tuple[int, ...]:
        """How many entries of each dimension stand in `elements`."""
        most = 2 * self.edge_items
        return tuple(min(length, most) if most else length for length in self.shape)


@dataclass(frozen=True)
class TensorMapInfo:
    """A map (or list) of tensors: one row per entry, the key as its name."""

    name: str
    kind: str
    entries: Tuple[TensorInfo, ...]
    total: Maybe[int] = _NOT_READ  # how many the container says it has; more than `entries` when capped
    problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class TensorList:
    """Every tensor that was found from one frame."""

    place: str  # "frame 3 of thread 1, ft::GptDecoder::forward"
    tensors: Tuple[TensorInfo, ...]
    problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Histogram:
    """Finite values from `low` to `high` counted in bins of equal width; the last one includes `high`."""

    low: float
    high: float
    counts: Tuple[int, ...]


@dataclass(frozen=True)
class TensorStats:
    """Numbers about the values. NaN and infinities are counted, and left out of everything else.

    Of complex numbers `minimum`, `maximum` and the histogram are those of the magnitudes. None: no finite value (of
    `mean` and `std` also: their sums left the range of double precision).
    """

    info: TensorInfo
    count: int  # elements read
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    zeros: int = 0
    subnormals: int = 0
    minimum: Optional[float] = None
    maximum: Optional[float] = None
    mean: Optional[complex] = None
    std: Optional[float] = None  # of the population (numpy's ddof=0)
    absolute_maximum: Optional[float] = None
    absolute_maximum_at: Optional[Index] = None  # the first one in row-major order of the selection
    histogram: Optional[Histogram] = None
    index: str = ""
    total: int = 0  # elements that were asked for
    first_nan: Optional[Index] = None
    seconds: Optional[float] = None
    computed_by: str = ""  # "numpy 2.1 in this process", "numpy 2.1 of /opt/venv/bin/python", "pure Python"
    problem: Optional[str] = None


@dataclass(frozen=True)
class TensorHash:
    """A digest of dtype, shape and values in row-major order, whatever the strides; None when not all was read."""

    info: TensorInfo
    digest: Optional[str]
    index: str = ""
    count: int = 0  # elements that went into it
    problem: Optional[str] = None


@dataclass(frozen=True)
class TensorDiff:
    """Two tensors of one shape, element by element. `differing` counts those that are not close:
    |left - right| > atol + rtol * |right|, or only one of them is NaN (both, when NaN is not equal to itself)."""

    left: TensorInfo
    right: TensorInfo
    compared: int
    differing: int = 0
    first: Optional[Index] = None
    first_values: Optional[Tuple[Element, Element]] = None
    max_absolute: Optional[float] = None  # over pairs of finite values; None when there is none
    max_absolute_at: Optional[Index] = None
    max_relative: Optional[float] = None  # |left - right| / |right| where right is not 0
    max_relative_at: Optional[Index] = None
    nan_mismatches: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    index: str = ""
    total: int = 0
    problem: Optional[str] = None  # why nothing, or not all, was compared: shapes differ, unreadable pages

    @property
    def same(self) -> bool:
        """Everything was compared and nothing differs."""
        return self.problem is None and self.differing == 0 and self.compared == self.total


@dataclass(frozen=True)
class HashGroup:
    """Ranks that hold the same values. `differs` is how they differ from the first group's (None in that one)."""

    ranks: Tuple[int, ...]
    digest: str
    info: TensorInfo
    differs: Optional[TensorDiff] = None


@dataclass(frozen=True)
class RankProblem:
    """A rank that could not take part, and why."""

    rank: int
    reason: str


@dataclass(frozen=True)
class TensorAgreement:
    """One expression over ranks: who agrees with whom, largest group first."""

    name: str
    groups: Tuple[HashGroup, ...]
    index: str = ""
    unread: Tuple[RankProblem, ...] = ()


@dataclass(frozen=True)
class RankTensor:
    """The answer of one rank when a command asked several: any object of this module, or why there is none."""

    rank: int
    answer: Union[
        TensorInfo, TensorValues, TensorMapInfo, TensorList, TensorStats, TensorHash, TensorDiff, TensorSaved, Missing
    ]


@dataclass(frozen=True)
class RankTensors:
    """The answers of several ranks to one command, in rank order."""

    name: str
    answers: Tuple[RankTensor, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class TensorSaved:
    """A file that was written."""

    info: TensorInfo
    path: str
    nbytes: int
    format: str  # "npy" or "safetensors"
    index: str = ""
    notes: Tuple[str, ...] = ()
