"""The bytes behind a view: a few elements from anywhere, or all of them in blocks, through one `read` function."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.index import ADDRESSES, View, contiguous, product
from gdbext.model.missing import Missing
from gdbext.model.tensor import Element

Read = Callable[[int, int], Optional[bytes]]
"""`read(address, size)` gives exactly `size` bytes, or None when any of them cannot be read."""

PAGE = 4096
BLOCK_BYTES = 1 << 20  # of elements at a time: flat memory, and small enough that malloc does not map it anew each time
DENSE = 4  # a piece is read whole when it is at most this many times as large as what is wanted of it
SMALL = 16 << 10  # ... or when it is no larger than this
UNREADABLE = Missing("unreadable")

Dims = Sequence[Tuple[int, int]]
"""Length and stride of each dimension, outermost first."""

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass
class Limits:
    """Where reading gives up: a wild pointer and a hostile shape must come to an end too."""

    seconds: float = 600.0
    failures: int = 2000  # reads that failed
    started: float = field(default_factory=time.monotonic)

    @property
    def expired(self) -> bool:
        return time.monotonic() - self.started > self.seconds


class Chunk(NamedTuple):
    """Consecutive elements in row-major order. `holes` has a 1 for each that could not be read; None: all could."""

    start: int
    length: int
    data: bytes
    holes: Optional[bytes]


class Memory:
    """A `read` made safe, which reads around what is unreadable until its limits are reached."""

    def __init__(self, read: Read, limits: Optional[Limits] = None) -> None:
        self._read = read
        self._limits = limits or Limits()
        self._failures = 0

    @property
    def gave_up(self) -> Optional[str]:
        """Why nothing more is read; None while all is well."""
        if self._failures >= self._limits.failures:
            return f"gave up after {self._failures:,} failed reads"
        return f"stopped after {self._limits.seconds:.0f} s" if self._limits.expired else None

    def units(self, address: int, unit: int, count: int) -> Tuple[bytes, Optional[bytes]]:
        """`count` units of `unit` bytes, zeros where unreadable; then a mask with a 1 for each unit that is not whole
        (None when all are). Unreadable places are found by halving, down to a page."""
        data = self._bytes(address, unit * count)
        if data is not None:
            return data, None
        found = bytearray(unit * count)
        holes = bytearray(b"\1") * count
        todo = [_halves(address, unit, 0, count)]
        while todo:
            for first, last in todo.pop():
                data = self._bytes(address + first * unit, (last - first) * unit)
                if data is not None:
                    found[first * unit : last * unit] = data
                    holes[first:last] = bytes(last - first)
                else:
                    todo.append(_halves(address, unit, first, last))
        return bytes(found), bytes(holes)

    def _bytes(self, address: int, size: int) -> Optional[bytes]:
        if self.gave_up:
            return None
        data = self._read(address, size) if 0 <= address <= ADDRESSES - size else None
        if data is None or len(data) != size:
            self._failures += 1
            return None
        return data


def _halves(address: int, unit: int, first: int, last: int) -> List[Tuple[int, int]]:
    """A range of units in two parts, divided at a page boundary if there is one; nothing if it lies in one page."""
    start, end = address + first * unit, address + last * unit
    if last - first < 2 or start // PAGE == (end - 1) // PAGE:
        return []
    middle = (start + end) // 2
    boundary = (middle - middle % PAGE - address) // unit
    middle = boundary if first < boundary < last else (first + last) // 2
    return [(first, middle), (middle, last)]


def elements_at(view: View, positions: Sequence[int], memory: Memory) -> List[Element]:
    """The values at some positions of a view, `Missing` where unreadable. Neighbours are read in one go."""
    dtype = view.dtype
    wanted = sorted({position // dtype.per_unit for position in positions})
    found: Dict[int, bytes] = {}
    for first, last in _runs(wanted, max(1, SMALL // 4 // dtype.unit), max(1, (1 << 20) // dtype.unit)):
        data, holes = memory.units(view.base + first * dtype.unit, dtype.unit, last - first + 1)
        for number in wanted[bisect_left(wanted, first) : bisect_left(wanted, last + 1)]:
            if not (holes and holes[number - first]):
                at = (number - first) * dtype.unit
                found[number] = data[at : at + dtype.unit]
    numbers = sorted(found)
    values = decode.values(decode.expand(b"".join(found[number] for number in numbers), dtype), dtype)
    place = {number: index * dtype.per_unit for index, number in enumerate(numbers)}
    result: List[Element] = []
    for position in positions:
        number, lane = divmod(position, dtype.per_unit)
        result.append(values[place[number] + lane] if number in place else UNREADABLE)
    return result


def _runs(numbers: Sequence[int], gap: int, longest: int) -> Iterator[Tuple[int, int]]:
    """First and last of groups of ascending numbers whose gaps are at most `gap`."""
    start = 0
    for index in range(1, len(numbers) + 1):
        ended = index == len(numbers) or numbers[index] - numbers[index - 1] > gap
        if ended or numbers[index] - numbers[start] >= longest:
            yield numbers[start], numbers[index - 1]
            start = index


class Stream:
    """All elements of a view in row-major order, in chunks of about `block` bytes; memory use does not depend on the
    size of the view. After the iteration `problem` says why it ended early, if it did."""

    def __init__(
        self, view: View, read: Read, limits: Optional[Limits] = None, numpy: Any = None, block: int = BLOCK_BYTES
    ) -> None:
        self.view = view
        self.total = view.count
        self.problem: Optional[str] = None
        self.unread = 0
        self._memory = Memory(read, limits)
        self._numpy = numpy
        self._size = decode.element_size(view.dtype)
        self._per_chunk = max(2, block // self._size)

    def __iter__(self) -> Iterator[Chunk]:
        if not self.total:
            return
        # complex128 has elements of 16 bytes, for which there is no array type: two of 8
        parts = 2 if self._size == 16 else 1
        dims = [(length, stride * parts) for length, stride in zip(self.view.shape, self.view.strides)]
        box = _Gather(self.view, self._memory, parts, self._numpy)
        start = 0
        for origin, inner in _boxes(self.view.origin * parts, _joined([*dims, (parts, 1)]), self._per_chunk * parts):
            self.problem = self._memory.gave_up
            if self.problem:
                return
            data, holes = box.gather(origin, inner)
            holes = holes[::parts] if holes else None
            count = len(data) // self._size
            self.unread += sum(holes) if holes else 0
            yield Chunk(start, count, data, holes)
            start += count
        self.problem = self._memory.gave_up


def _joined(dims: Dims) -> Dims:
    """The same elements in the same order with fewer dimensions: what is contiguous becomes one."""
    result: List[Tuple[int, int]] = []
    for length, stride in dims:
        if length == 1:
            continue
        if result and result[-1][1] == length * stride:
            result[-1] = (result[-1][0] * length, stride)
        else:
            result.append((length, stride))
    return result


def _boxes(origin: int, dims: Dims, most: int) -> Iterator[Tuple[int, Dims]]:
    """A view in consecutive parts of at most `most` elements, each a view itself."""
    count, cut = 1, len(dims)
    while cut and count * dims[cut - 1][0] <= most:
        cut -= 1
        count *= dims[cut][0]
    if not cut:
        yield origin, dims
        return
    length, stride = dims[cut - 1]
    group = max(1, most // count)
    for start in _origins(origin, dims[: cut - 1]):
        for first in range(0, length, group):
            here = (min(group, length - first), stride)
            yield start + first * stride, _joined([here, *dims[cut:]])


def _origins(origin: int, dims: Dims) -> Iterator[int]:
    if not dims:
        yield origin
        return
    length, stride = dims[0]
    for number in range(length):
        yield from _origins(origin + number * stride, dims[1:])


class _Gather:
    """Elements of a part of a view, contiguous and in order, from memory where they lie otherwise."""

    def __init__(self, view: View, memory: Memory, parts: int, numpy: Any) -> None:
        self._memory, self._numpy = memory, numpy
        self._dtype, self._base = view.dtype, view.base
        self._unit = view.dtype.unit // parts
        self._per_unit = view.dtype.per_unit
        self._code = _CODES[decode.element_size(view.dtype) // parts]

    def gather(self, origin: int, dims: Dims) -> Tuple[bytes, Optional[bytes]]:
        """The elements, and the mask of those that could not be read (None when all could)."""
        low = origin + sum(min(0, (length - 1) * stride) for length, stride in dims)
        high = origin + sum(max(0, (length - 1) * stride) for length, stride in dims)
        first = low // self._per_unit
        units = high // self._per_unit - first + 1
        wanted = product([length for length, _ in dims]) // self._per_unit + 1
        if units > DENSE * wanted and units * self._unit > SMALL:
            return self._apart(origin, dims)
        data, holes = self._memory.units(self._base + first * self._unit, self._unit, units)
        if holes is not None and 0 not in holes:  # nothing to decode
            count = product([length for length, _ in dims])
            return bytes(count * array(self._code).itemsize), b"\1" * count
        data = decode.expand(data, self._dtype, self._numpy)
        start = origin - first * self._per_unit
        whole = self._copied(data, self._code, start, dims)
        if holes is None:
            return whole, None
        mask = bytearray(len(holes) * self._per_unit)
        for lane in range(self._per_unit):
            mask[lane :: self._per_unit] = holes
        return whole, self._copied(bytes(mask), "B", start, dims)

    def _copied(self, data: bytes, code: str, start: int, dims: Dims) -> bytes:
        size = array(code).itemsize
        if not dims or (len(dims) == 1 and dims[0][1] == 1):
            count = dims[0][0] if dims else 1
            return data if count * size == len(data) else data[start * size : (start + count) * size]
        if self._numpy is not None:
            strides = [stride * size for _, stride in dims]
            shape = [length for length, _ in dims]
            line_up: bytes = self._numpy.ndarray(shape, f"u{size}", data, start * size, strides).tobytes()
            return line_up
        copied: bytes = _copy(array(code, data), start, dims).tobytes()
        return copied

    def _apart(self, origin: int, dims: Dims) -> Tuple[bytes, Optional[bytes]]:
        """As `gather`, where what is wanted lies far apart: along the longest way, piece by piece."""
        at = max(range(len(dims)), key=lambda number: abs(dims[number][1]))
        length, stride = dims[at]
        group = SMALL * self._per_unit // (self._unit * abs(stride))  # neighbours that one read brings
        if not 0 < group < length:
            group = 1
        outer, inner = product([n for n, _ in dims[:at]]), product([n for n, _ in dims[at + 1 :]])
        size = array(self._code).itemsize
        found, holes = bytearray(outer * length * inner * size), bytearray(outer * length * inner)
        for first in range(0, length, group):
            if self._memory.gave_up:  # the rest is not even tried
                rest = (length - first) * inner
                _place(holes, b"\1" * (outer * rest), outer, length * inner, first * inner, rest)
                break
            count = min(group, length - first)
            here = _joined([*dims[:at], (count, stride), *dims[at + 1 :]])
            piece, mask = self.gather(origin + first * stride, here)
            _place(found, piece, outer, length * inner * size, first * inner * size, count * inner * size)
            if mask:
                _place(holes, mask, outer, length * inner, first * inner, count * inner)
        return bytes(found), bytes(holes) if any(holes) else None


def _place(room: bytearray, piece: bytes, rows: int, row: int, at: int, width: int) -> None:
    """Write `piece` as a column `width` bytes wide into the rows of `room`."""
    if rows == 1:
        room[at : at + width] = piece
    elif width <= 16 and rows > width:
        for byte in range(width):
            room[at + byte :: row] = piece[byte::width]
    else:
        for number in range(rows):
            room[number * row + at : number * row + at + width] = piece[number * width : (number + 1) * width]


def _copy(source: Any, start: int, dims: Dims) -> Any:
    """The elements of a view into the array `source`: one slice assignment for each line along the longest way."""
    shape = [length for length, _ in dims]
    steps = contiguous(shape)
    room = array(source.typecode, bytes(product(shape) * source.itemsize))
    longest = max(range(len(dims)), key=lambda number: shape[number])
    length, stride = dims[longest]
    step = steps[longest]
    others = [(n, s, steps[number]) for number, (n, s) in enumerate(dims) if number != longest]
    for here, there in _offsets(start, 0, others):
        end: Optional[int] = here + length * stride
        end = None if end is not None and end < 0 else end
        line = source[here:end:stride] if stride else array(source.typecode, [source[here]]) * length
        room[there : there + (length - 1) * step + 1 : step] = line
    return room


def _offsets(here: int, there: int, dims: Sequence[Tuple[int, int, int]]) -> Iterator[Tuple[int, int]]:
    if not dims:
        yield here, there
        return
    length, stride, step = dims[0]
    for number in range(length):
        yield from _offsets(here + number * stride, there + number * step, dims[1:])
