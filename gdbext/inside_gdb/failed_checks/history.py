"""What was seen before in a thread or a process, and what a failure of now has to do with it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Dict, Optional, Tuple

import gdb

from gdbext.model.check_report import CheckReport, Failure
from gdbext.model.error_code import ErrorCode

_FOLLOWS_SECONDS = 60.0  # loggers sleep, handlers write stacks
_NOTED_SECONDS = 1.0  # how long after a text was asked for its number belongs to what this thread raises
_Thread = Tuple[int, int, int]  # ptid


class History:
    """Of all watched processes."""

    def __init__(self) -> None:
        self._noted: Dict[_Thread, Tuple[float, ErrorCode]] = {}
        self._failed: Dict[_Thread, Tuple[float, Failure]] = {}
        self._sticky: Dict[int, Tuple[float, str]] = {}  # by pid: when and where a sticky error was noticed first

    def clear(self) -> None:
        self._noted.clear()
        self._failed.clear()
        self._sticky.clear()

    def note(self, error: Optional[ErrorCode]) -> None:
        """The selected thread asked for the text of an error."""
        if error is not None and error.number:
            self._noted[gdb.selected_thread().ptid] = (time.monotonic(), error)

    def noted(self) -> Optional[ErrorCode]:
        """The last error whose text the selected thread asked for, right before. It is told once."""
        at, error = self._noted.pop(gdb.selected_thread().ptid, (0.0, None))
        return error if error is not None and time.monotonic() - at < _NOTED_SECONDS else None

    def reported(self, report: CheckReport) -> CheckReport:
        """Remember the report of a failed check in the selected thread.

        After a sticky error every check of the process fails: the report says which noticed it first.
        """
        failure = report.failure
        self._failed[gdb.selected_thread().ptid] = (time.monotonic(), failure)
        if failure.error is None or not failure.error.sticky:
            return report
        first = self._sticky.get(report.pid)
        if first is None:
            place = f"{failure.file}:{failure.line}" if failure.file else failure.what
            self._sticky[report.pid] = (report.taken_at, f"{place} by thread {report.thread}")
            return report
        seconds = report.taken_at - first[0]
        note = f"A sticky error was first reported at {first[1]}, {seconds:.1f} s earlier: this one follows from it."
        return replace(report, notes=(*report.notes, note))

    def following(self, signal: Failure) -> Failure:
        """The end of a process after a failed check of the same thread has that check's place and error."""
        at, before = self._failed.get(gdb.selected_thread().ptid, (0.0, signal))
        if signal.what != "SIGABRT" or before is signal or time.monotonic() - at > _FOLLOWS_SECONDS:
            return signal
        return replace(
            signal,
            raised=signal.raised if signal.message else f"the failed check {before.what} that was reported before",
            error=before.error,
            file=before.file,
            line=before.line,
            text=before.text,
            engine=before.engine,
        )
