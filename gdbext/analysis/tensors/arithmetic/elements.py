"""Two streams of one shape, element by element: how many differ, where first, by how much at most."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import compress
from operator import ne
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.decoding.numpy_module import as_array
from gdbext.analysis.tensors.statistics.sums import magnitude
from gdbext.knowledge.dtypes import DType


@dataclass(frozen=True)
class Tolerance:
    """When two values count as the same: |left - right| <= absolute + relative * |right|, or both are NaN."""

    relative: float = 0.0
    absolute: float = 0.0
    nan_equal: bool = True


@dataclass
class Comparison:
    """What was found. Positions are those of the streams (row-major)."""

    compared: int = 0
    differing: int = 0
    first: Optional[int] = None
    max_absolute: Optional[float] = None
    max_absolute_at: Optional[int] = None
    max_relative: Optional[float] = None
    max_relative_at: Optional[int] = None
    nan_mismatches: int = 0


class Comparer:
    """Feed it pairs of chunks, then ask for the result. Only values that are not equal cost more than a look."""

    def __init__(self, left: DType, right: DType, tolerance: Tolerance, numpy: Any = None) -> None:
        self._dtypes = left, right
        self._tolerance, self._numpy = tolerance, numpy
        # Equal bytes of these can only be equal values; NaN is the exception where it is not equal to itself.
        self._bytes_decide = left == right and (tolerance.nan_equal or left.kind in ("int", "uint"))
        self._found = Comparison()

    def feed(self, start: int, left: bytes, right: bytes, holes: Optional[bytes] = None) -> None:
        """Compare elements, the first of which is the start-th of both; those with a 1 in `holes` are left out."""
        count = len(left) // decode.element_size(self._dtypes[0])
        self._found.compared += count - (sum(holes) if holes else 0)
        if self._bytes_decide and left == right:
            return
        if self._numpy is None:
            self._judge(*self._unequal(start, left, right, holes))
        else:
            with self._numpy.errstate(all="ignore"):
                self._judge_arrays(start, left, right, holes)

    def _unequal(self, start: int, left: bytes, right: bytes, holes: Optional[bytes]) -> Tuple[List[int], List[Any]]:
        """Positions and pairs of values that are not equal; NaN is not."""
        ours, theirs = decode.values(left, self._dtypes[0]), decode.values(right, self._dtypes[1])
        differ: Sequence[bool] = list(map(ne, ours, theirs))
        if holes:
            differ = [one and not hole for one, hole in zip(differ, holes)]
        at = list(compress(range(start, start + len(ours)), differ))
        return at, list(zip(compress(ours, differ), compress(theirs, differ)))

    def _judge(self, places: Sequence[int], pairs: Sequence[Tuple[Any, Any]]) -> None:
        found, tolerance = self._found, self._tolerance
        for at, (left, right) in zip(places, pairs):
            if left != left or right != right:
                if left != left and right != right and tolerance.nan_equal:
                    continue
                found.nan_mismatches += 1
                self._note(1, at)
                continue
            away, scale = _distance(left, right), magnitude(right)
            if not away <= tolerance.absolute + tolerance.relative * scale or away == math.inf:
                self._note(1, at)
            if math.isfinite(magnitude(left)) and math.isfinite(scale):
                self._largest(away, at, away / scale if scale else None, at)

    def _judge_arrays(self, start: int, left: bytes, right: bytes, holes: Optional[bytes]) -> None:
        numpy, tolerance = self._numpy, self._tolerance
        ours, theirs = as_array(left, self._dtypes[0], numpy), as_array(right, self._dtypes[1], numpy)
        differ = ours != theirs
        if holes:
            differ &= numpy.frombuffer(holes, "u1") == 0
        at = numpy.flatnonzero(differ)
        if not len(at):
            return
        wide = numpy.complex128 if "c" in (ours.dtype.kind, theirs.dtype.kind) else numpy.float64
        whole = ours.dtype.kind in "iu" and theirs.dtype.kind in "iu"
        away = _integer_distance(ours[at], theirs[at], numpy) if whole else None
        ours, theirs = ours[at].astype(wide), theirs[at].astype(wide)
        nan_left, nan_right = numpy.isnan(ours), numpy.isnan(theirs)
        away = numpy.abs(ours - theirs) if away is None else away
        scale = numpy.abs(theirs)
        outside_tolerance = ~(away <= tolerance.absolute + tolerance.relative * scale) | (away == numpy.inf)
        nan = nan_left | nan_right
        wrong_nan = (nan_left != nan_right) if tolerance.nan_equal else nan
        bad = (outside_tolerance & ~nan) | wrong_nan
        self._found.nan_mismatches += int(wrong_nan.sum())
        if bad.any():
            self._note(int(bad.sum()), start + int(at[bad.argmax()]))
        finite = numpy.flatnonzero(numpy.isfinite(ours) & numpy.isfinite(theirs))
        if len(finite):
            away, scale, at = away[finite], scale[finite], at[finite]
            ratio = numpy.where(scale > 0, away / scale, -1.0)
            far, off = int(away.argmax()), int(ratio.argmax())
            relative = float(ratio[off]) if ratio[off] >= 0 else None
            self._largest(float(away[far]), start + int(at[far]), relative, start + int(at[off]))

    def _note(self, count: int, at: int) -> None:
        self._found.differing += count
        if self._found.first is None:
            self._found.first = at

    def _largest(self, absolute: float, absolute_at: int, relative: Optional[float], relative_at: int) -> None:
        found = self._found
        if found.max_absolute is None or absolute > found.max_absolute:
            found.max_absolute, found.max_absolute_at = absolute, absolute_at
        if relative is not None and (found.max_relative is None or relative > found.max_relative):
            found.max_relative, found.max_relative_at = relative, relative_at

    def result(self) -> Dict[str, Any]:
        """The fields of `Comparison`."""
        return asdict(self._found)


def _distance(left: Any, right: Any) -> float:
    """|left - right|; of integers without the rounding of floats, so that neighbours above 2**53 are not equal."""
    return magnitude(left - right)


def _integer_distance(left: Any, right: Any, numpy: Any) -> Any:
    larger = left > right
    high, low = numpy.where(larger, left, right), numpy.where(larger, right, left)
    return (high.astype(numpy.uint64) - low.astype(numpy.uint64)).astype(numpy.float64)
