"""Two tensors compared in flat memory: two in one process, the same in two ranks, or one against a saved file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Tuple

from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.arithmetic.elements import Comparison, Tolerance
from gdbext.analysis.tensors.arithmetic.jobs import comparison_job
from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.index import View, position_of, select, view_of
from gdbext.analysis.tensors.read_blocks import Chunk, Limits, Memory, Read, Stream, elements_at
from gdbext.analysis.tensors.whole_tensor import Progress, no_progress
from gdbext.model.tensor import Element, TensorDiff, TensorInfo

_NONE = Tolerance()


@dataclass(frozen=True)
class Source:
    """A tensor and the memory it lies in (that of its own process). `part`: an index, when not all of it is meant."""

    info: TensorInfo
    read: Read
    part: str = ""

    def view(self, index: str) -> View:
        """What `index` selects of it. Raises `GdbextError`."""
        return select(select(view_of(self.info), self.part), index)


def difference(
    left: Source,
    right: Source,
    index: str = "",
    tolerance: Tolerance = _NONE,
    calculator: Optional[Calculator] = None,
    progress: Progress = no_progress,
    limits: Optional[Limits] = None,
) -> TensorDiff:
    """Compare what `index` selects of both, value by value; the dtypes may differ. Raises `GdbextError` when one has
    nothing to read; tensors of different shapes are not compared, which `problem` says."""
    views = left.view(index), right.view(index)
    total = views[0].count
    if views[0].shape != views[1].shape:
        apart = f"shapes differ: {list(views[0].shape)} and {list(views[1].shape)}"
        return TensorDiff(left=left.info, right=right.info, compared=0, index=index.strip(), total=total, problem=apart)
    limits = limits or Limits()
    streams = Stream(views[0], left.read, limits), Stream(views[1], right.read, limits)
    found = _compare(streams, tolerance, calculator or Calculator(), progress)
    problem = streams[0].problem or streams[1].problem
    if not problem and found.compared < total:
        problem = f"{total - found.compared:,} of {total:,} elements are unreadable on one side"
    return _diff((left, right), views, found, tolerance, index.strip(), problem)


class _Side:
    """Chunks of one tensor, cut into pieces of any length."""

    def __init__(self, stream: Stream) -> None:
        self._chunks = iter(stream)
        self._size = decode.element_size(stream.view.dtype)
        self._chunk = Chunk(0, 0, b"", None)
        self._used = 0

    def ready(self) -> int:
        """How many elements can be taken now; 0 at the end."""
        if self._used == self._chunk.length:
            self._chunk, self._used = next(self._chunks, Chunk(0, 0, b"", None)), 0
        return self._chunk.length - self._used

    def take(self, count: int) -> Chunk:
        first, last = self._used, self._used + count
        self._used = last
        chunk = self._chunk
        if count == chunk.length:
            return chunk
        holes = chunk.holes[first:last] if chunk.holes else None
        return Chunk(chunk.start + first, count, chunk.data[first * self._size : last * self._size], holes)


def _paired(left: Stream, right: Stream) -> Iterator[Tuple[Chunk, Chunk]]:
    """The same elements of both, chunk by chunk; different strides make different chunks."""
    sides = _Side(left), _Side(right)
    while True:
        count = min(side.ready() for side in sides)
        if not count:
            return
        yield sides[0].take(count), sides[1].take(count)


def _compare(
    streams: Tuple[Stream, Stream], tolerance: Tolerance, calculator: Calculator, progress: Progress
) -> Comparison:
    left, right = (decode.element_type(stream.view.dtype) for stream in streams)
    total = streams[0].total
    nbytes = total * max(decode.element_size(left), decode.element_size(right))
    worker = calculator.start(comparison_job(left, right, tolerance), nbytes)
    try:
        for ours, theirs in _paired(*streams):
            holes = _either(ours.holes, theirs.holes)
            worker.feed(ours.start, ours.data, holes, theirs.data)
            progress(ours.start + ours.length, total)
        result: Dict[str, Any] = worker.result()
    finally:
        worker.close()
    return Comparison(**result)


def _either(first: Optional[bytes], second: Optional[bytes]) -> Optional[bytes]:
    return first or second if first is None or second is None else bytes(map(max, first, second))


def _diff(
    sources: Tuple[Source, Source],
    views: Tuple[View, View],
    found: Comparison,
    tolerance: Tolerance,
    index: str,
    problem: Optional[str],
) -> TensorDiff:
    def place(flat: Optional[int]) -> Optional[Tuple[int, ...]]:
        return None if flat is None else position_of(flat, views[0].shape)

    first = place(found.first)
    values: Optional[Tuple[Element, Element]] = None
    if first is not None:
        ours, theirs = (_value(view, source.read, first) for view, source in zip(views, sources))
        values = ours, theirs
    return TensorDiff(
        left=sources[0].info,
        right=sources[1].info,
        compared=found.compared,
        differing=found.differing,
        first=first,
        first_values=values,
        max_absolute=found.max_absolute,
        max_absolute_at=place(found.max_absolute_at),
        max_relative=found.max_relative,
        max_relative_at=place(found.max_relative_at),
        nan_mismatches=found.nan_mismatches,
        rtol=tolerance.relative,
        atol=tolerance.absolute,
        index=index,
        total=views[0].count,
        problem=problem,
    )


def _value(view: View, read: Read, index: Tuple[int, ...]) -> Element:
    position = view.origin + sum(number * stride for number, stride in zip(index, view.strides))
    return elements_at(view, [position], Memory(read))[0]
