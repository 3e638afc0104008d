"""A failed check that ended the process, found on the stack of the thread that called abort: in core files as well.

TurboMind writes the message to a stream that is a member of a temporary object of the function that checked
(`FailRow.stream`). The object stays in that function's frame, which abort never leaves.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, NamedTuple, Optional, Set, Tuple

import gdb

from gdbext.analysis.failures import check_messages
from gdbext.capture.machine import SMALLEST_PAGE
from gdbext.inside_gdb.base.exceptions import read_ostringstream
from gdbext.inside_gdb.base.memory import NOW
from gdbext.inside_gdb.base.selected_frame import newest_frames, register
from gdbext.knowledge.engines.engine_row_kinds import FailRow
from gdbext.knowledge.errors.checks import FAIL_FUNCTIONS
from gdbext.model.check_report import Failure
from gdbext.model.error_code import ErrorCode

_MOST_FRAMES = 40
_MOST = 64 << 10  # bytes of stack
_PIECE = SMALLEST_PAGE
_LONGEST_NAME = 512
_ROWS = {row.function: row for row in FAIL_FUNCTIONS if row.aborts}


class _Found(NamedTuple):
    """A stream's text, and where the object begins that has the stream as its first member."""

    text: str
    place: int


def ended_by_check(error: Optional[ErrorCode]) -> Optional[Failure]:
    """The failed check that ended the selected thread; None where none of the rows is on its stack."""
    frames: Dict[str, gdb.Frame] = {}
    for frame in newest_frames(_MOST_FRAMES):
        frames[(frame.name() or "").partition("(")[0]] = frame
    row = next((_ROWS[name] for name in frames if name in _ROWS), None)
    if row is None:
        return None
    row = next((_ROWS[name] for name in row.within if name in frames), row)
    text, file, line = _message_and_place(row, frames[row.function]) if row.stream else ("", "", 0)
    return check_messages.make_failure(row, text, error, file, line)


def _message_and_place(row: FailRow, frame: gdb.Frame) -> Tuple[str, str, int]:
    """The text, and the file and line beside its stream; nothing where the stack does not have just one of them."""
    found = list(_streams(frame))
    texts = {one.text for one in found}
    places = {place for one in found for place in [_member(row, one.place)] if place is not None}
    if len(texts) != 1:
        return "", "", 0
    return (texts.pop(), *(places.pop() if len(places) == 1 else ("", 0)))


def _streams(frame: gdb.Frame) -> Iterator[_Found]:
    """Streams whose address stands in the frames around `frame`."""
    at = register(frame, "sp")
    if at is None:
        return
    known: Set[int] = set()
    end = at + _MOST
    while at < end:
        size = _PIECE - at % _PIECE
        data = NOW.read(at, size)
        if data is None:
            return
        for number, (word,) in enumerate(struct.iter_unpack("<Q", data[: len(data) // 8 * 8])):
            text = read_ostringstream(word) if word not in known else None
            if text is None:
                known.add(word)
            elif text:
                yield _Found(text, at + 8 * number)
        at += size


def _member(row: FailRow, place: int) -> Optional[Tuple[str, int]]:
    """File and line, which are members of the same object in some releases."""
    offsets = [int(where.partition("+")[2]) - int(row.stream.partition("+")[2]) for where in (row.file, row.line)]
    file = NOW.read_cstring(NOW.read_pointer(place + offsets[0]) or 0, _LONGEST_NAME)
    line = (NOW.read_pointer(place + offsets[1]) or 0) & 0xFFFFFFFF
    return (file, line) if file and check_messages.is_place(file, line) else None
