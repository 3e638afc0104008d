"""Statistics of a tensor of any size, in flat memory."""

from __future__ import annotations

import cmath
import math
import time
from typing import Any, Callable, Dict, Iterator, Optional

from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.arithmetic.jobs import Job, bins_job, summary_job
from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.index import View, contiguous, position_of, select, view_of
from gdbext.analysis.tensors.read_blocks import BLOCK_BYTES, Chunk, Limits, Read, Stream
from gdbext.analysis.tensors.statistics.sums import Tally, bin_borders, tally_of
from gdbext.knowledge.dtypes import DTYPES, DType
from gdbext.model.tensor import Histogram, TensorInfo, TensorStats

Progress = Callable[[int, int], None]
"""Is told how many elements are done, and of how many; after every few megabytes."""


def no_progress(done: int, total: int) -> None:
    """The progress of those who do not want to know."""


def statistics(
    info: TensorInfo,
    read: Read,
    index: str = "",
    calculator: Optional[Calculator] = None,
    progress: Progress = no_progress,
    limits: Optional[Limits] = None,
) -> TensorStats:
    """Count, extremes, mean and histogram of what `index` selects. Reads it once; types of more than 16 bits, which
    need a second look for their histogram, twice. Raises `GdbextError` when there is nothing to read.
    """
    started = time.monotonic()
    view = select(view_of(info), index)
    run = _Run(view, read, limits or Limits(), calculator or Calculator(), progress)
    tally = tally_of(run.work(summary_job(run.dtype)))
    by, problem = run.by, run.problem
    low, high = tally.minimum, tally.maximum
    if tally.bins is None and problem is None and low is not None and high is not None and math.isfinite(high - low):
        tally.bins = tuple(run.work(bins_job(run.dtype, low, high))["bins"])
    return _stats(info, view, tally, index.strip(), time.monotonic() - started, by, problem)


def _stats(
    info: TensorInfo, view: View, tally: Tally, index: str, seconds: float, by: str, problem: Optional[str]
) -> TensorStats:
    def place(flat: Optional[int]) -> Any:
        return None if flat is None else position_of(flat, view.shape)

    unread = view.count - tally.count
    if unread and not problem:
        problem = f"{unread:,} of {view.count:,} elements are unreadable"
    histogram = None
    if tally.bins and tally.minimum is not None and tally.maximum is not None:
        sides = bin_borders(tally.minimum, tally.maximum)
        histogram = Histogram(sides[0], sides[-1], tally.bins)
    return TensorStats(
        info=info,
        count=tally.count,
        nan=tally.nan,
        positive_infinity=tally.positive_infinity,
        negative_infinity=tally.negative_infinity,
        zeros=tally.zeros,
        subnormals=tally.subnormals,
        minimum=tally.minimum,
        maximum=tally.maximum,
        mean=tally.mean if tally.finite and cmath.isfinite(tally.mean) else None,
        std=math.sqrt(tally.spread / tally.finite) if tally.finite and math.isfinite(tally.spread) else None,
        absolute_maximum=tally.absolute_maximum,
        absolute_maximum_at=place(tally.absolute_maximum_at),
        first_nan=place(tally.first_nan),
        histogram=histogram,
        index=index,
        total=view.count,
        seconds=seconds,
        computed_by=by,
        problem=problem,
    )


class _Run:
    """Lets the elements of a view pass through one job after another."""

    def __init__(self, view: View, read: Read, limits: Limits, calculator: Calculator, progress: Progress) -> None:
        self._view, self._read, self._limits = view, read, limits
        self._calculator, self._progress = calculator, progress
        self._stored = _as_stored(view)
        self.dtype: DType = view.dtype if self._stored else decode.element_type(view.dtype)
        self.by = ""
        self.problem: Optional[str] = None

    def work(self, job: Job) -> Dict[str, Any]:
        """The result of a job. `by` and `problem` say afterwards who did it and why it is not complete."""
        nbytes = self._view.count * decode.element_size(self._view.dtype)
        worker = self._calculator.start(job, nbytes)
        try:
            for chunk in self._chunks(self._calculator.numpy_for(nbytes)):
                worker.feed(chunk.start, chunk.data, chunk.holes)
                self._progress(chunk.start + chunk.length, self._view.count)
            result: Dict[str, Any] = worker.result()
        finally:
            worker.close()
        self.by = worker.by
        return result

    def _chunks(self, numpy: Any) -> Iterator[Chunk]:
        if self._stored is None:
            stream = Stream(self._view, self._read, self._limits, numpy, BLOCK_BYTES)
            yield from stream
        else:
            unit = self._view.dtype.unit
            stream = Stream(self._stored, self._read, self._limits, numpy, max(1, BLOCK_BYTES // 8 // unit) * unit)
            for chunk in stream:
                yield _in_values(chunk, self._view.dtype)
        self.problem = stream.problem


def _as_stored(view: View) -> Optional[View]:
    """The bytes of a tensor of whole blocks, one after the other: they go to the worker as they are, because a helper
    dequantises them sooner than we do. None for any other view."""
    dtype = view.dtype
    if dtype.kind != "block" or view.strides != contiguous(view.shape):
        return None
    if view.origin % dtype.per_unit or view.count % dtype.per_unit:
        return None
    start = view.base + view.origin // dtype.per_unit * dtype.unit
    return View(DTYPES["uint8"], start, (dtype.nbytes(view.count),), (1,))


def _in_values(chunk: Chunk, dtype: DType) -> Chunk:
    """A chunk of bytes of whole blocks, counted in the values they stand for."""
    holes = None
    if chunk.holes:
        blocks = bytes(map(max, *(chunk.holes[offset :: dtype.unit] for offset in range(dtype.unit))))
        spread = bytearray(len(blocks) * dtype.per_unit)
        for lane in range(dtype.per_unit):
            spread[lane :: dtype.per_unit] = blocks
        holes = bytes(spread)
    ratio = dtype.per_unit, dtype.unit
    return Chunk(chunk.start // ratio[1] * ratio[0], chunk.length // ratio[1] * ratio[0], chunk.data, holes)
