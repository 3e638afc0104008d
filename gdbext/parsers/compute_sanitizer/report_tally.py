"""Errors of one writer, equal ones counted: they differ in thread, block, address and launch alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Optional, Tuple

from gdbext.model.gpu_errors import GpuError
from gdbext.model.stack import Frame
from gdbext.model.text.ranges import counted

MOST_KINDS = 2000
_MOST_TOOL_PROBLEMS = 20


def error_key(error: GpuError) -> Tuple[object, ...]:
    """What two errors must share to be one."""
    places = tuple((one.function, one.file, one.line, one.access) for one in error.places)
    frames = (*map(_call, error.device_frames), *map(_call, error.host_frames))
    what = (error.kind, error.space, error.access, error.size, error.problem, error.kernel, error.call, error.error)
    return (*what, places, frames, error.text if error.kind == "other" else "")


def _call(frame: Frame) -> Tuple[object, ...]:
    return frame.function, frame.library, frame.file, frame.line


class ReportTally:
    """What the reports of one writer come to."""

    def __init__(self) -> None:
        self._errors: Dict[Tuple[object, ...], GpuError] = {}
        self.printed = 0  # reports that were read
        self.summed = 0  # errors by the tool's own summaries
        self.hidden = 0  # by its words
        self.ended = False  # a summary was read
        self.broken = 0  # lines that belong to no report
        self._beyond = 0
        self._troubles: Dict[str, None] = {}

    @property
    def errors(self) -> Tuple[GpuError, ...]:
        return tuple(self._errors.values())

    def add(self, error: GpuError) -> None:
        self.printed += error.count
        key = error_key(error)
        known = self._errors.get(key)
        if known is not None:
            self._errors[key] = merge_errors(known, error)
        elif len(self._errors) < MOST_KINDS:
            self._errors[key] = error
        else:
            self._beyond += error.count

    @property
    def total(self) -> int:
        """How many errors there were, printed or not."""
        return max(self.summed, self.printed + self.hidden)

    def trouble(self, text: str) -> None:
        """A line of the tool about itself."""
        if len(self._troubles) < _MOST_TOOL_PROBLEMS:
            self._troubles[text[:200]] = None

    def said(self) -> str:
        """How many errors there are, as a line of a log."""
        if not (self.printed or self.summed or self.ended):
            return "the sanitizer's report has no error and no summary"
        if not self.printed:
            return f"the sanitizer's summary says {counted(self.summed, 'error')}"
        return f"the sanitizer reports {counted(self.total, 'error')} of {self._of_kinds()}"

    def _of_kinds(self) -> str:
        return counted(len(self._errors), "kind")

    def problems(self) -> List[str]:
        """What is not there, a line each."""
        found = [f"the sanitizer says: {text}" for text in self._troubles]
        cut = self.summed - self.hidden - self.printed
        if self.hidden:
            text = f"{counted(self.hidden, 'error')} of {self.total:,} were not printed by the sanitizer"
            found.append(f"{text}: its limit hid them, --print-limit 0 prints all")
        if cut > 0:
            text = f"{counted(cut, 'error')} of {self.total:,} {'is' if cut == 1 else 'are'} not in this text"
            found.append(f"{text}: it is cut, or its limit hid them (--print-limit 0 prints all)")
        if not self.ended and (self.printed or not self.summed):
            found.append(
                "the sanitizer's report ends without its summary: it is cut, or the program was killed before its end"
            )
        if self.broken:
            found.append(
                f"{counted(self.broken, 'line')} of the sanitizer belong to no report: several ranks wrote into one "
                "log, or it is cut; give each rank its own by --log-file"
            )
        if self._beyond:
            found.append(f"{counted(self._beyond, 'error')} of more than {MOST_KINDS:,} kinds were counted only")
        return found


def merge_errors(known: GpuError, more: GpuError) -> GpuError:
    """One error for both: the first one's thread, block and address, the counts of both."""
    hazards: Optional[int] = known.hazards
    if more.hazards is not None:
        hazards = (hazards or 0) + more.hazards
    return replace(known, count=known.count + more.count, hazards=hazards)


def merge_equal_errors(errors: Iterable[GpuError]) -> Tuple[GpuError, ...]:
    """Equal ones as one, in their order."""
    tally = ReportTally()
    for one in errors:
        tally.add(one)
    return tally.errors
