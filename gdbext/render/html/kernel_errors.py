"""What a sanitizer reports of kernels, as rows of the page: both sides of a race, and whose code launched it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.gpu_errors import DevicePlace, GpuFinding
from gdbext.model.stack import Frame
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Diagnosis
from gdbext.render.html.page_words import PLAIN, function, one_line
from gdbext.render.text.verdict.process_names import names_of_processes

MOST_ROWS = 200
_LONGEST = 600


@dataclass(frozen=True)
class KernelError:
    """One row. `where`: a line for each side of a race."""

    what: str
    where: Tuple[str, ...]
    near: str
    launched: Tuple[str, ...]
    count: str
    whom: str


def kernel_errors(diagnosis: Optional[Diagnosis]) -> Tuple[KernelError, ...]:
    """In the order of the verdict: the gravest first."""
    found = diagnosis.gpu_errors[:MOST_ROWS] if diagnosis is not None else ()
    return tuple(_row(diagnosis, one) for one in found if diagnosis is not None)


def rows_left_out(diagnosis: Optional[Diagnosis]) -> int:
    return max(0, len(diagnosis.gpu_errors) - MOST_ROWS) if diagnosis is not None else 0


def _row(diagnosis: Diagnosis, one: GpuFinding) -> KernelError:
    error = one.error
    named = [frame for frame in (one.engine_frame, one.python_frame) if frame is not None]
    hazards = f", {counted(error.hazards, 'hazard')}" if error.hazards is not None else ""
    call = f", {error.call}: {error.error}" if error.call and error.kind == "api-error" else ""
    head = "race" if error.kind == "race" else error.text.rstrip(" .:")
    return KernelError(
        what=one_line(f"{head}{f', {error.problem}' if error.problem else ''}{hazards}{call}", _LONGEST),
        where=tuple(_place(place) for place in error.places),
        near=error.nearest.words if error.nearest else "",
        launched=tuple(_call(frame) for frame in named),
        count=counted(one.count, "time"),
        whom=names_of_processes(diagnosis.snapshot.processes, [seen.process for seen in one.seen], PLAIN),
    )


def _place(place: DevicePlace) -> str:
    at = f" at {place.file}:{place.line}" if place.file and place.line else ""
    thread = f", thread {place.thread}" if place.thread else ""
    block = f" of block {place.block}" if place.block else ""
    access = f"{place.access} in " if place.access else ""
    return one_line(f"{access}{place.function or 'a function without a name'}{at}{thread}{block}", _LONGEST)


def _call(frame: Frame) -> str:
    at = f" at {frame.file}:{frame.line}" if frame.file and frame.line else ""
    return one_line(f"{function(frame.function)}{at}", _LONGEST)
