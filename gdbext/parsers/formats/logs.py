"""Log lines beside stacks: who wrote them, and which of them are evidence."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Dict, List, Match, NamedTuple, Optional, Pattern, Sequence, Tuple

from gdbext.knowledge.frames import MESSAGES
from gdbext.knowledge.log_lines import LOG_RULES, NAMED, PASSED, READY, WHAT, WRITERS
from gdbext.knowledge.log_lines.last_words import FATAL_ERROR
from gdbext.knowledge.log_lines.writers import FATAL_OF_UCX
from gdbext.model.text.literals import any_of, required_literals
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import numbers_in, pieces
from gdbext.parsers.formats.format_row import Row, process_head, row
from gdbext.parsers.line_events import LONGEST_PROBLEM, Event, LogMessage, Passed, ProcessHead, Several

_LONGEST = 2000
_MOST_LISTED = 12
_READY, _FATAL_OF_UCX = regex(READY), regex(FATAL_OF_UCX)
_LONGEST_HEAD = 120
_WIDE = regex(r"[ \u2580-\u259f]{12,}")
"""A bar of progress, which would push what follows it out of what is kept of a line."""
_NO_LINE_OF_A_LOG = regex(r"\|[^|].*\|$|[a-z-]{4,40} \((?:low|medium|high) confidence\): ")
"""A row of a table in a page that tells of messages, and what gdbext answered itself."""
_PARALLEL = regex(r"(?:TP|EP)(?P<rank>\d{1,5})\Z")


class _Evidence:
    """All expressions of evidence, by what a line must hold to match one of them."""

    def __init__(self, patterns: Sequence[str]) -> None:
        found: Dict[str, List[Pattern[str]]] = {}
        for text in patterns:
            for literal in required_literals(text) or ("",):
                found.setdefault(literal, []).append(regex(text))
        self._by_literal = tuple((literal, tuple(several)) for literal, several in found.items())
        self._quick = any_of(found)

    def finds(self, text: str) -> bool:
        """Whether one of the expressions matches somewhere in the text."""
        if not self._quick.search(text):
            return False
        for literal, patterns in self._by_literal:
            if literal in text:
                for pattern in patterns:
                    if pattern.search(text):
                        return True
        return False


@functools.lru_cache(maxsize=None)
def _evidence() -> _Evidence:
    patterns = (*(rule.pattern for rule in MESSAGES), *(rule.pattern for rule in LOG_RULES))
    return _Evidence([*patterns, WHAT])


_WRITERS = tuple(regex(rule.pattern) for rule in WRITERS)
_NAMED = tuple(regex(rule.pattern) for rule in NAMED)


class Writer(NamedTuple):
    """Whose line it is, as far as the line tells."""

    pid: Optional[int] = None
    rank: Optional[int] = None


def log_evidence(text: str) -> Optional[LogMessage]:
    """The line as evidence, if it is."""
    short = _WIDE.sub(" ", text[:_LONGEST]).strip()
    if not _evidence().finds(short) or _NO_LINE_OF_A_LOG.match(short):
        return None
    pid, rank = writer_of(short)
    short = _shortened(short)
    return LogMessage(short, pid, rank, "next" if _is_head(short) else "", short.startswith(FATAL_ERROR))


def _shortened(text: str) -> str:
    """A line that is longer than what is kept of one, without the middle before the words of a row that names a cause
    and stands behind it."""
    if len(text) <= LONGEST_PROBLEM:
        return text
    for pattern in _causes():
        found = pattern.search(text)
        if found and pattern.search(text[:LONGEST_PROBLEM]):
            return text  # the first row that matches is the one that counts
        if found:
            start = max(found.start(), _LONGEST_HEAD)
            return text if start == _LONGEST_HEAD else f"{text[:_LONGEST_HEAD]} … {text[start:]}"
    return text


@functools.lru_cache(maxsize=None)
def _causes() -> Tuple[Pattern[str], ...]:
    return tuple(regex(rule.pattern) for rule in LOG_RULES if rule.cause)


def writer_of(text: str) -> Writer:
    """Pid and rank of the writer: what one line says of both is of one process."""
    found = [_first((row,), text) for row in _WRITERS[:-1]]
    pid = next((one.pid for one in found if one.pid is not None), None)
    rank = next((one.rank for one in found if one.rank is not None), None)
    return Writer(pid, rank) if (pid, rank) != (None, None) else _first(_WRITERS[-1:], text)


def rank_in(text: str) -> Optional[int]:
    """The rank that torch's messages name as their own."""
    return writer_of(text[:_LONGEST]).rank


def _first(patterns: Sequence[Pattern[str]], text: str) -> Writer:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            numbers = {
                name[:-1] if name[-1].isdigit() else name: value for name, value in match.groupdict().items() if value
            }
            pid, rank = numbers.get("pid"), numbers.get("rank")
            return Writer(int(pid) if pid else None, int(rank) if rank else None)
    return Writer()


def _is_head(text: str) -> bool:
    """Whether a stack of the thread that is spoken of follows."""
    marks = ("Caught signal", "Exception Code: 0x", "*** SIG")
    ucx = " Fatal: " in text and _FATAL_OF_UCX.search(text) is not None
    return text.startswith(FATAL_ERROR) or ucx or any(mark in text for mark in marks)


def _failed_rank(match: Match[str]) -> Event:
    """A line of the elastic agent's table of failures: what follows is of that rank."""
    return ProcessHead(rank=int(match.group("rank")))


def _writer(match: Match[str]) -> Event:
    """SGLang's prefix: the groups of the process; where it is of one group only, that number is its rank."""
    evidence = log_evidence(match.string[match.end() :].strip())
    tag = match.group("tag").strip()
    own = _PARALLEL.match(tag)
    if evidence is not None:
        rank = int(own.group("rank")) if own and evidence.rank is None else evidence.rank
        return LogMessage(evidence.text, evidence.pid, rank, evidence.about, evidence.fatal)
    return ProcessHead(writer=tag, firm=False)


def _takes_part(match: Match[str]) -> Optional[Event]:
    """A line that is no evidence, of a process that has no other line perhaps."""
    evidence = log_evidence(match.string)
    if evidence is not None:
        return evidence
    pid, rank = _first(_NAMED, match.string)
    return LogMessage("", pid, rank) if pid is not None else None


def _announced(match: Match[str]) -> Optional[Event]:
    evidence = log_evidence(match.string)
    return None if evidence is None else replace(evidence, about="again")


def _passed(match: Match[str]) -> Event:
    return Passed(match["key"], int(match["rank"]))


def _ready(match: Match[str]) -> Optional[Event]:
    """Horovod lists all operations that wait on one line, longer than what is kept of one: each becomes its own."""
    found = list(_READY.finditer(match.string))[:_MOST_LISTED]
    return Several(tuple(LogMessage(_with_ranges(one)) for one in found)) if found else None


def _with_ranges(ready: Match[str]) -> str:
    """`grad_1 [ready ranks: 0-6, 8-99]`: a list of many ranks is longer than what is kept of a line."""
    return f"{ready['tensor'][:_LONGEST_HEAD]} [ready ranks: {', '.join(pieces(numbers_in(ready['ranks'])))}]"


_STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
ROWS: Tuple[Row, ...] = (
    row("", "dump for PID ", r".{0,120}(?:Pyspy|py-spy) dump for PID (?P<pid>\d{1,9})", process_head),
    row("", "(local_rank: ", r"\s{0,8}rank {1,10}: (?P<rank>\d{1,6}) \(local_rank: \d{1,6}\)$", _failed_rank),
    row("", "[ready ranks:", r".", _ready),
    row("", "Completed store-based barrier", rf".{{0,200}}?{PASSED}", _passed),
    row("", "Running collective: CollectiveFingerPrint(", r".", _announced),
    row("", "[20", _STAMP + r" (?P<tag>(?:(?:DP|PP|TP|EP|CP|ATTN_CP|MOE_DP)\d+ ?)+)\]", _writer),
    row("", " NCCL ", r"(?:\[[\d :.,-]{8,40}\] )?[\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d{1,4}\] NCCL ", _takes_part),
    row("", "", r".", lambda match: log_evidence(match.string)),
)
