"""The work that can be done here or in a helper: a plain description goes in, chunks follow, plain data comes out."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

from gdbext.analysis.tensors.arithmetic.elements import Comparer, Tolerance
from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.statistics.bit_patterns import PatternSummary
from gdbext.analysis.tensors.statistics.by_chunks import ArraySummary, Bins, ListSummary
from gdbext.knowledge.dtypes import DTYPES, DType

Job = Mapping[str, Any]
"""{"work": "summary" | "bins" | "comparison", "dtype": .., ...}: JSON-ready."""


def summary_job(dtype: DType) -> Job:
    """Statistics of elements; the result is a `Tally` as JSON."""
    return {"work": "summary", "dtype": dtype.name}


def bins_job(dtype: DType, low: float, high: float) -> Job:
    """The histogram of elements from `low` to `high`."""
    return {"work": "bins", "dtype": dtype.name, "low": low, "high": high}


def comparison_job(left: DType, right: DType, tolerance: Tolerance) -> Job:
    """Two tensors; the result has the fields of `Comparison`."""
    return {"work": "comparison", "dtype": left.name, "other": right.name, **vars(tolerance)}


class Work:
    """One job. Chunks of block types come as they are stored and are dequantised here, where numpy may be."""

    def __init__(self, job: Job, numpy: Any = None) -> None:
        self._dtype = DTYPES[job["dtype"]]
        self._numpy = numpy
        elements = decode.element_type(self._dtype)
        if job["work"] == "comparison":
            tolerance = Tolerance(job["relative"], job["absolute"], job["nan_equal"])
            other = decode.element_type(DTYPES[job["other"]])
            self._compare: Optional[Comparer] = Comparer(elements, other, tolerance, numpy)
            self.result: Callable[[], Dict[str, Any]] = self._compare.result
            return
        self._compare = None
        if job["work"] == "bins":
            self._one: Any = Bins(elements, job["low"], job["high"], numpy)
        elif decode.element_size(elements) <= 2:
            self._one = PatternSummary(elements, numpy)
        elif numpy is None:
            self._one = ListSummary(elements)
        else:
            self._one = ArraySummary(elements, numpy)
        self.result = self._one.result

    def feed(self, start: int, data: bytes, holes: Optional[bytes] = None, other: Optional[bytes] = None) -> None:
        """A chunk: elements from the start-th on (of two tensors for a comparison), a 1 in `holes` for each unread."""
        if self._compare is not None:
            self._compare.feed(start, data, other or b"", holes)
            return
        if self._dtype.kind == "block":
            data = decode.expand(data, self._dtype, self._numpy)
        self._one.feed(start, data, holes)
