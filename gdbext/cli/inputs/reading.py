"""Reads what a user gives: a file, a pipe, standard input. Within bounds, and never for long without a word."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import select
import stat
import sys
import time
from dataclasses import dataclass
from typing import BinaryIO, Deque, Iterator, Optional, Tuple, Union

from gdbext.cli.terminal import Progress
from gdbext.model.errors import GdbextError, refused_as
from gdbext.parsers import text_lines
from gdbext.parsers.compute_sanitizer.report_stream import ReportStream, has_reports

STDIN = "standard input"
HEAD, TAIL = text_lines.HEAD, text_lines.LIMIT - text_lines.HEAD - (2 << 20)
"""Bytes kept of the beginning and the end of one text: together what the parsers take."""
SNAPSHOT_MOST = 256 << 20
"""Bytes of a snapshot: 1,024 ranks of 200 threads make 104 MiB (docs/scale.md)."""
PIPE_MOST = 4 << 30
"""Bytes taken from a pipe, of which the ends are kept; one that goes on is not read further."""
LONGEST = 600.0
"""Seconds from its first byte on, after which a pipe is not read further."""

_SILENT_SECONDS = 1.0  # seconds without a byte, after which it is said what is waited for
_PIECE = 1 << 20
_SPOOLED = (os.makedev(1, 3),)  # /dev/null, which is empty


@dataclass(frozen=True)
class Given:
    """One input. `problems`: what of it was not read."""

    name: str
    data: bytes
    problems: Tuple[str, ...] = ()
    reports: Optional[ReportStream] = None  # of a sanitizer, from all of an input of which only the ends were kept

    @property
    def is_snapshot(self) -> bool:
        return is_snapshot(self.data)


def is_snapshot(head: Union[bytes, bytearray]) -> bool:
    return head.lstrip()[:1] == b"{" and b'"snapshot"' in head[:400]


def refuse_device(name: str) -> None:
    """Before anything opens it: that alone may start a watchdog or rewind a tape. Raises GdbextError."""
    with contextlib.suppress(OSError):
        mode = os.stat(name).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise _device(name)


def _device(name: str) -> GdbextError:
    return GdbextError(f"{name} is a device, not a file", "give a file, or a pipe: COMMAND | gdbext diagnose -")


def read(name: str, progress: Progress) -> Given:
    """All of a file or pipe, `-` being standard input; of one beyond the bounds its ends. Raises GdbextError."""
    with refused_as(f"cannot read {name}"):
        if name == "-":
            return _Input(STDIN, _standard_input(), progress).read()
        refuse_device(name)
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb", buffering=0) as file:
            return _Input(name, file, progress).read()


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # closed before we were started
        raise GdbextError("standard input is closed")
    stream: BinaryIO = sys.stdin.buffer
    with contextlib.suppress(io.UnsupportedOperation, AttributeError):
        status = os.fstat(stream.fileno())
        odd = stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode)
        if odd and not os.isatty(stream.fileno()) and status.st_rdev not in _SPOOLED:
            raise _device(f"standard input ({os.readlink(f'/proc/self/fd/{stream.fileno()}')})")
    return stream


class _Input:
    """One stream on its way to `Given`."""

    def __init__(self, name: str, stream: BinaryIO, progress: Progress) -> None:
        self._name, self._stream, self._progress = name, stream, progress
        self._taken = 0
        self._began: Optional[float] = None  # when the first byte came
        self._stopped = ""  # why it was not read to its end

    def read(self) -> Given:
        pieces = self._pieces()
        head = bytearray()
        for piece in pieces:
            head += piece
            if len(head) >= HEAD:
                break
        if is_snapshot(head):
            return Given(self._name, self._whole(head, pieces))
        reports = ReportStream() if has_reports(head.decode("utf-8", "replace")) else None
        tail, skipped = self._ends(head, pieces, reports)
        left = "were read for a sanitizer's reports alone" if reports is not None else "were not read"
        notes = [f"{skipped >> 20} MiB in the middle {left}"] if skipped else []
        notes += [self._stopped] if self._stopped else []
        mark = f"\n({notes[0]})\n".encode() if skipped else b""
        problems = tuple(f"{self._name}: {note}" for note in notes)
        return Given(self._name, bytes(head) + mark + tail, problems, reports if skipped else None)

    def _whole(self, head: bytearray, pieces: Iterator[bytes]) -> bytes:
        """A snapshot, which is of no use without its end."""
        for piece in pieces:
            head += piece
            if len(head) > SNAPSHOT_MOST:
                raise GdbextError(
                    f"{self._name} looks like a snapshot but has more than {SNAPSHOT_MOST >> 20} MiB: not read",
                    "give a file that --save wrote",
                )
        if self._stopped:
            raise GdbextError(f"{self._name} looks like a snapshot, but {self._stopped}")
        return bytes(head)

    def _ends(self, head: bytearray, pieces: Iterator[bytes], reports: Optional[ReportStream]) -> Tuple[bytes, int]:
        """The end, and how many bytes in front of it were left out. A sanitizer's reports are read as they pass by."""
        skipped = self._skip(len(head)) if reports is None else 0
        tail: Deque[bytes] = collections.deque()
        kept = 0
        for piece in pieces:
            tail.append(piece)
            kept += len(piece)
            while kept > TAIL:
                gone = tail.popleft()
                if reports is not None:
                    reports.feed_bytes(b"" if skipped else bytes(head))
                    reports.feed_bytes(gone)
                kept -= len(gone)
                skipped += len(gone)
        if reports is not None and skipped:
            for piece in tail:
                reports.feed_bytes(piece)
        return b"".join(tail), skipped

    def _skip(self, before: int) -> int:
        """Go to the end of a long file; of a pipe, and of the kernel's files without a size, all must be taken."""
        try:
            status = os.fstat(self._stream.fileno())
        except (io.UnsupportedOperation, AttributeError):
            return 0
        rest = status.st_size - before - TAIL
        if not stat.S_ISREG(status.st_mode) or rest <= 0:
            return 0
        os.lseek(self._stream.fileno(), rest, os.SEEK_CUR)
        return rest

    def _pieces(self) -> Iterator[bytes]:
        """What comes, until its end or a bound."""
        try:
            descriptor = self._stream.fileno()
        except (io.UnsupportedOperation, AttributeError):
            yield from iter(lambda: self._stream.read(_PIECE), b"")
            return
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if os.isatty(descriptor):
            self._progress.note(f"reading {self._name}: paste the text, then press Ctrl-D")
        said, patience = time.monotonic(), _SILENT_SECONDS
        while not self._is_over():
            ready = poll.poll(_SILENT_SECONDS * 1000)
            now = time.monotonic()
            if now - said >= patience and not os.isatty(descriptor):
                self._tell()
                said, patience = now, min(2 * patience, 60.0)
            if not ready:
                continue
            with contextlib.suppress(BlockingIOError):
                piece = os.read(descriptor, _PIECE)
                if not piece:
                    return
                self._taken += len(piece)
                self._began = self._began or now
                yield piece

    def _is_over(self) -> bool:
        if self._taken > PIPE_MOST:
            self._stopped = f"reading was stopped after {PIPE_MOST >> 20} MiB, and there is more"
        elif self._began is not None and time.monotonic() - self._began > LONGEST:
            self._stopped = f"reading was stopped after {LONGEST:.0f} s, and there is more"
        return bool(self._stopped)

    def _tell(self) -> None:
        if self._taken:
            text = f"{self._taken >> 20} MiB read from {self._name} so far (Ctrl-C stops reading)"
        else:
            text = f"waiting for data from {self._name} (Ctrl-C stops waiting)"
        self._progress.say(text)
