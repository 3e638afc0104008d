"""Statistics of types of more than 16 bits, chunk by chunk; their histogram takes a second look at the data."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from itertools import compress
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.decoding.numpy_module import as_array
from gdbext.analysis.tensors.statistics.sums import BINS, Tally, bin_borders, magnitude
from gdbext.knowledge.dtypes import DType

Numbers = Sequence[Any]


class ListSummary:
    """Feed it the chunks of a stream, then ask for the result."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype
        self._tally = Tally()

    def feed(self, start: int, data: bytes, holes: Optional[bytes] = None) -> None:
        """Take in elements, the first of which is the start-th of the tensor; those with a 1 in `holes` are not."""
        numbers, places = _present(decode.values(data, self._dtype), holes)
        sizes = list(map(magnitude, numbers)) if self._dtype.kind == "complex" else numbers
        tally = Tally(count=len(numbers))
        total = sum(sizes)
        if total - total != 0:  # a NaN or an infinity among them, or sums too large for a float
            tally.nan = sum(value != value for value in sizes)
            tally.positive_infinity = sum(value == math.inf for value in sizes)
            tally.negative_infinity = sum(value == -math.inf for value in sizes)
            if tally.nan:
                tally.first_nan = start + places[next(at for at, value in enumerate(sizes) if value != value)]
            finite = [math.isfinite(value) for value in sizes]
            numbers, sizes = list(compress(numbers, finite)), list(compress(sizes, finite))
            places = list(compress(places, finite))
        if sizes:
            self._measure(tally, numbers, sizes)
            largest = tally.absolute_maximum
            tally.absolute_maximum_at = (
                start + places[next(at for at, value in enumerate(sizes) if abs(value) == largest)]
            )
        self._tally.add(tally)

    def _measure(self, tally: Tally, numbers: Numbers, sizes: Numbers) -> None:
        limit, has_subnormals = decode.subnormal_limit(self._dtype)
        tally.finite = len(sizes)
        tally.minimum, tally.maximum = min(sizes), max(sizes)
        tally.absolute_maximum = max(abs(tally.minimum), abs(tally.maximum))
        tally.zeros = sum(value == 0 for value in sizes)
        tally.subnormals = sum(0 < abs(value) < limit for value in sizes) if has_subnormals else 0
        mean = sum(numbers) / len(numbers)
        if self._dtype.kind != "complex":
            mean = _mean(numbers)
            tally.spread = sum((value - mean) * (value - mean) for value in numbers)
        else:
            tally.spread = sum(magnitude(value - mean) * magnitude(value - mean) for value in numbers)
        tally.mean = mean

    def result(self) -> Dict[str, Any]:
        """The tally as plain data."""
        return self._tally.as_json()


def _mean(numbers: Numbers) -> float:
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:
        return float(sum(value / len(numbers) for value in numbers))


def _present(numbers: Numbers, holes: Optional[bytes]) -> Tuple[Numbers, Sequence[int]]:
    """The numbers that could be read, and where they stood."""
    if not holes:
        return numbers, range(len(numbers))
    kept = [not hole for hole in holes]
    return list(compress(numbers, kept)), list(compress(range(len(numbers)), kept))


def _array(data: bytes, dtype: DType, numpy: Any) -> Any:
    """Elements as numbers; complex ones in double precision, for the sake of their magnitudes."""
    numbers = as_array(data, dtype, numpy)
    return numbers.astype(numpy.complex128) if dtype.kind == "complex" else numbers


class ArraySummary:
    """The same with numpy."""

    def __init__(self, dtype: DType, numpy: Any) -> None:
        self._dtype, self._numpy = dtype, numpy
        self._tally = Tally()

    def feed(self, start: int, data: bytes, holes: Optional[bytes] = None) -> None:
        """As `ListSummary.feed`."""
        numpy = self._numpy
        with numpy.errstate(all="ignore"):
            numbers = _array(data, self._dtype, numpy)
            present = numpy.frombuffer(holes, "u1") == 0 if holes else None
            count = len(numbers) if present is None else int(present.sum())
            sizes = numpy.hypot(numbers.real, numbers.imag) if self._dtype.kind == "complex" else numbers
            tally = Tally(count=count)
            finite = numpy.isfinite(sizes) if sizes.dtype.kind == "f" else None
            if finite is not None and not finite.all():
                self._not_finite(tally, start, sizes, present)
            else:
                finite = None
            chosen = present if finite is None else finite if present is None else finite & present
            self._measure(tally, start, numbers, sizes, chosen)
        self._tally.add(tally)

    def _not_finite(self, tally: Tally, start: int, sizes: Any, present: Any) -> None:
        numpy = self._numpy
        nan, inf = numpy.isnan(sizes), numpy.isinf(sizes)
        if present is not None:
            nan, inf = nan & present, inf & present
        tally.nan = int(nan.sum())
        tally.positive_infinity = int((inf & (sizes > 0)).sum())
        tally.negative_infinity = int(inf.sum()) - tally.positive_infinity
        if tally.nan:
            tally.first_nan = start + int(nan.argmax())

    def _measure(self, tally: Tally, start: int, numbers: Any, sizes: Any, chosen: Any) -> None:
        """Everything about the finite numbers (those in the mask `chosen`; None: all of them)."""
        numpy = self._numpy
        kept = None if chosen is None else numpy.flatnonzero(chosen)
        if kept is not None:
            numbers, sizes = numbers[kept], sizes[kept]
        if not len(sizes):
            return
        limit, has_subnormals = decode.subnormal_limit(self._dtype)
        tally.finite = len(sizes)
        low, high = int(sizes.argmin()), int(sizes.argmax())
        tally.minimum, tally.maximum = sizes[low].item(), sizes[high].item()
        tally.absolute_maximum = max(abs(tally.minimum), abs(tally.maximum))
        ends = [at for at in (low, high) if abs(sizes[at].item()) == tally.absolute_maximum]
        tally.absolute_maximum_at = start + (min(ends) if kept is None else int(kept[min(ends)]))
        tally.zeros = int(numpy.count_nonzero(sizes == 0))
        if has_subnormals:
            tally.subnormals = int(numpy.count_nonzero(numpy.abs(sizes) < limit)) - tally.zeros
        away = numbers.astype(numpy.complex128 if self._dtype.kind == "complex" else numpy.float64)
        tally.mean = away.mean().item()
        away -= tally.mean
        parts = away.view(numpy.float64)
        parts *= parts
        tally.spread = float(parts.sum())  # numpy.vdot would wait for threads of BLAS, 10 ms a chunk on a busy machine

    def result(self) -> Dict[str, Any]:
        """As `ListSummary.result`."""
        return self._tally.as_json()


class Bins:
    """How many finite elements (of complex ones: magnitudes) lie in each bin of a histogram from `low` to `high`."""

    def __init__(self, dtype: DType, low: float, high: float, numpy: Any = None) -> None:
        self._dtype, self._numpy = dtype, numpy
        self._borders = bin_borders(low, high)
        self._counts = [0] * BINS

    def feed(self, start: int, data: bytes, holes: Optional[bytes] = None) -> None:
        """Count elements; those with a 1 in `holes` are left out."""
        for number, count in enumerate(self._binned(data, holes)):
            self._counts[number] += count

    def _binned(self, data: bytes, holes: Optional[bytes]) -> Sequence[int]:
        numpy, complex_kind = self._numpy, self._dtype.kind == "complex"
        if numpy is not None:
            with numpy.errstate(all="ignore"):
                sizes = _array(data, self._dtype, numpy)
                sizes = numpy.hypot(sizes.real, sizes.imag) if complex_kind else sizes
                if holes:
                    sizes = sizes[numpy.frombuffer(holes, "u1") == 0]
                return self._counted(sizes)
        numbers, _ = _present(decode.values(data, self._dtype), holes)
        found = map(magnitude, numbers) if complex_kind else numbers
        places = (bisect_right(self._borders, value) - 1 for value in found if math.isfinite(value))
        counted = Counter(min(max(place, 0), BINS - 1) for place in places)  # a border may be rounded past the extreme
        return [counted[number] for number in range(BINS)]

    def _counted(self, sizes: Any) -> List[int]:
        """From how many numbers are not below each border; NaN and -Inf are below all of them, +Inf is above."""
        numpy = self._numpy
        infinite = int(numpy.count_nonzero(sizes == math.inf)) if sizes.dtype.kind == "f" else 0
        within = int(numpy.count_nonzero(numpy.isfinite(sizes))) if sizes.dtype.kind == "f" else len(sizes)
        above = [within, *(self._not_below(sizes, border) - infinite for border in self._borders[1:-1]), 0]
        return [first - second for first, second in zip(above, above[1:])]

    def _not_below(self, sizes: Any, border: float) -> int:
        """Compared in the type of the numbers, with the least number of that type that is not below the border."""
        numpy, kind = self._numpy, sizes.dtype.type
        if sizes.dtype.kind == "f":
            least = kind(border)
            if float(least) < border:
                least = numpy.nextafter(least, kind(math.inf))
        else:
            limits = numpy.iinfo(kind)
            if math.ceil(border) > limits.max:
                return 0
            least = kind(max(math.ceil(border), int(limits.min)))
        return int(numpy.count_nonzero(sizes >= least))

    def result(self) -> Dict[str, Any]:
        """The counts."""
        return {"bins": self._counts}
