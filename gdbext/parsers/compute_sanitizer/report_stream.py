"""Lines of a log -> the reports in it. A line is looked at once and then let go: of equal reports one is kept, with a
count, so that a log of any length takes little memory."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.knowledge.errors.compute_sanitizer import BANNER, DETAIL, ENDS, NOT_PRINTED, SUMMARY, TOOL_PROBLEMS
from gdbext.model.gpu_errors import GpuError
from gdbext.model.text.patterns import regex
from gdbext.parsers.cleaning import UNNAMED, Stream, split_prefix
from gdbext.parsers.compute_sanitizer.report_block import error_of, is_head, number
from gdbext.parsers.compute_sanitizer.report_tally import ReportTally
from gdbext.parsers.compute_sanitizer.report_xml import ROOT, XmlReport
from gdbext.parsers.text_lines import LONGEST_LINE

MARK = "========="
"""What the tool puts before its lines; --prefix changes it."""
_MARKS = (MARK, "COMPUTE-SANITIZER", "CUDA-MEMCHECK", ROOT)
_BANNER, _ENDS, _SUMMARY, _TROUBLE, _HIDDEN = map(regex, (BANNER, ENDS, SUMMARY, TOOL_PROBLEMS, NOT_PRINTED))
_DETAIL = regex(DETAIL)
_COLOUR = re.compile("\x1b\\[[0-9;?]{0,20}[A-Za-z]")
_DIFFERS = re.compile(r"0x[0-9a-fA-F]+|\(\d+,\d+,\d+\)|\d[\d,]* bytes? (?:after|before)")
"""What differs between equal reports."""
_NUMBER_ALONE = re.compile(r"\[?(\d{1,5})[\]:]{0,2}\s{0,4}\Z")
_LONGEST_PREFIX = 200
_LONGEST_MARK = 40
_MOST_LINES = 400  # of one report
_MOST_WRITERS = 8192
_MOST_DIFFERENT = 20_000  # reports of one writer that are told apart before they are taken apart


class WriterReport(NamedTuple):
    """What one writer's reports say; `said` in a line."""

    writer: Stream
    errors: Tuple[GpuError, ...]
    said: str
    problems: Tuple[str, ...]
    ended: bool = False  # its summary was read


def has_reports(text: str) -> bool:
    """Whether it is worth to look for reports in a text."""
    return any(mark in text for mark in _MARKS)


class ReportStream:
    """Feed it lines, or bytes as they come; take what `finished` gives."""

    def __init__(self, owner: Stream = UNNAMED) -> None:
        self._whose = owner
        self._mark = MARK
        self._writers: Dict[Stream, _Writer] = {}
        self._before: Dict[Stream, int] = {}  # lines of a report whose beginning was not seen
        self._by_prefix: Dict[str, Optional[Stream]] = {}
        self._xml: Optional[XmlReport] = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed_bytes(self, piece: bytes) -> None:
        """The next bytes of a file."""
        text = self._rest + self._decoder.decode(piece)
        lines = text.split("\n")
        self._rest = lines.pop()[: 4 * LONGEST_LINE]
        for line in lines:
            self.feed(line)

    def feed(self, line: str) -> bool:
        """Whether the line is the sanitizer's."""
        if self._xml is not None or f"<{ROOT}" in line:
            return self._feed_xml(line)
        if "SANITIZER" in line or "MEMCHECK" in line:
            self._learn_mark(line)
        at = line.find(self._mark)
        if at < 0:
            return False
        line = _COLOUR.sub("", line[:LONGEST_LINE]) if "\x1b" in line else line[:LONGEST_LINE]
        at = line.find(self._mark)
        text = line[at + len(self._mark) :].rstrip()
        if text[:1] not in ("", " ", "\t"):
            return False  # a longer rule
        writer = self._writer(line, at, text)
        if writer is None:
            return False
        writer.feed(text)
        return True

    def finished(self) -> List[WriterReport]:
        """Of every writer whose reports were seen."""
        if self._rest:
            self.feed(self._rest)
            self._rest = ""
        found = [one.finished(stream) for stream, one in self._writers.items()]
        if self._xml is not None:
            tally = self._xml.finished()
            found.append(_report(self._whose, tally))
        return found

    def _feed_xml(self, line: str) -> bool:
        if self._xml is None:
            self._xml = XmlReport()
        return self._xml.feed(line + "\n")

    def _learn_mark(self, line: str) -> None:
        """The banner shows what stands before each line."""
        text = _COLOUR.sub("", line).rstrip()
        banner = next((one for one in _MARKS[1:3] if text.endswith(" " + one)), None)
        if banner is not None:
            words = split_prefix(text)[1][: -len(banner)].split()
            if words and len(words[-1]) <= _LONGEST_MARK:
                self._mark = MARK if words[-1].endswith(MARK) else words[-1]

    def _writer(self, line: str, at: int, text: str) -> Optional[_Writer]:
        prefix = line[:at]
        if prefix in self._by_prefix:
            stream = self._by_prefix[prefix]
        else:
            stream = self._stream(line, prefix)
            if len(self._by_prefix) < 2 * _MOST_WRITERS:
                self._by_prefix[prefix] = stream
        if stream is None:
            return None
        known = self._writers.get(stream)
        if known is None and len(self._writers) < _MOST_WRITERS:
            if _begins(text.strip()):
                known = self._writers[stream] = _Writer(self._before.pop(stream, 0))
            elif len(self._before) < _MOST_WRITERS and _DETAIL.match(text.strip()):
                self._before[stream] = self._before.get(stream, 0) + 1
        return known

    def _stream(self, line: str, prefix: str) -> Optional[Stream]:
        """Whose lines begin like that; None: that is no prefix."""
        if not prefix.strip():
            return self._whose
        if len(prefix) > _LONGEST_PREFIX:
            return None
        stream, rest = split_prefix(line)
        if not rest.startswith(self._mark):
            alone = _NUMBER_ALONE.match(prefix)
            stream = Stream(rank=int(alone.group(1))) if alone else Stream(prefix.strip())
        return self._whose if stream == UNNAMED else stream


def _begins(text: str) -> bool:
    return bool(_BANNER.match(text) or _ENDS.match(text) or is_head(text))


class _Writer:
    """The reports of one writer: the lines of the one at hand, and how often each was there."""

    def __init__(self, broken: int) -> None:
        self._lines: List[str] = []
        self._seen: Dict[str, Tuple[Optional[GpuError], int]] = {}
        self._counts: Dict[str, int] = {}
        self._tally = ReportTally()
        self._tally.broken = broken

    def feed(self, text: str) -> None:
        if not text.strip():
            self._end()
        elif text[:2].strip() and text[:5] != "     ":  # one blank: a first line
            self._end()
            self._lines.append(text.strip())
        elif not self._lines:
            self._tally.broken += 1
        elif len(self._lines) < _MOST_LINES:
            self._lines.append(text)

    def finished(self, stream: Stream) -> WriterReport:
        self._end()
        for key, count in self._counts.items():
            error, odd = self._seen[key]
            self._tally.broken += odd * count
            if error is not None:
                hazards = None if error.hazards is None else error.hazards * count
                self._tally.add(replace(error, count=count, hazards=hazards))
        return _report(stream, self._tally)

    def _end(self) -> None:
        """A report is over, or a line that stands alone."""
        lines, self._lines = self._lines, []
        if not lines:
            return
        if len(lines) == 1 and self._alone(lines[0]):
            return
        text = "\n".join(lines)
        key = _DIFFERS.sub("", text)
        if key in self._counts:
            self._counts[key] += 1
        elif len(self._counts) < _MOST_DIFFERENT:
            self._counts[key] = 1
            self._seen[key] = _taken_apart(lines)
        else:
            error, odd = _taken_apart(lines)
            self._tally.broken += odd
            if error is not None:
                self._tally.add(error)

    def _alone(self, line: str) -> bool:
        """A line about all reports, or about the tool itself."""
        summary, hidden = _SUMMARY.match(line), _HIDDEN.search(line)
        self._tally.summed += (number(summary.group(1)) or 0) if summary and not hidden else 0
        self._tally.hidden += (number(hidden.group(1)) or 0) if hidden else 0
        self._tally.ended = self._tally.ended or bool(_ENDS.match(line))
        if summary or hidden or _ENDS.match(line):
            return True
        if is_head(line):
            return False
        if _TROUBLE.match(line):
            self._tally.trouble(line)
        return True


def _taken_apart(lines: Sequence[str]) -> Tuple[Optional[GpuError], int]:
    """The error, and how many lines of it are of another report."""
    error = error_of(lines)
    threads = sum(line.lstrip().startswith("by thread") for line in lines)
    return error, max(0, threads - 1) if error is not None and error.kind != "race" else 0


def _report(stream: Stream, tally: ReportTally) -> WriterReport:
    return WriterReport(stream, tally.errors, tally.said(), tuple(tally.problems()), tally.ended)
