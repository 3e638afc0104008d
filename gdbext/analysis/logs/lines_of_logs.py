"""The log lines of a look that a row knows, and which of them came first."""

from __future__ import annotations

import functools
import re
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.view.job_view import JobView
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.log_lines import FIRST_FAULTS, LOG_RULES
from gdbext.knowledge.row_kinds import LogRule
from gdbext.model.job import RankSnapshot
from gdbext.model.text.patterns import regex

LONGEST_PIECE = 130  # characters of a line that are quoted in a sentence
_PIECE = 20  # characters at the end of what a row knows
_PASSING = regex(r" INFO |\b(?i:retrying|will retry)\b")
"""Said of what may go well after all."""
_RULES = [(regex(rule.pattern), rule) for rule in LOG_RULES]


class Line(NamedTuple):
    """A log line, the process that printed it (None: unknown), and the row that matches it."""

    text: str
    process: Optional[RankSnapshot]
    rule: LogRule


def lines(view: JobView) -> List[Line]:
    """Every log line that a row knows, the most telling first; of one row an error before what was said in passing."""
    found = [(_known(text), text, process) for process, text in all_lines(view)]
    known = [Line(text, process, rule) for rule, text, process in found if rule is not None]
    return sorted(known, key=lambda line: (LOG_RULES.index(line.rule), " INFO " in line.text, _is_doubled(line)))


def _is_doubled(line: Line) -> bool:
    """Whether two threads printed it at once, into each other."""
    first = re.search(line.rule.pattern, line.text)
    return first is not None and line.text.count(first.group()[-_PIECE:]) > 1


def all_lines(view: JobView) -> Iterator[Tuple[Optional[RankSnapshot], str]]:
    """Each line that the look has kept, with the process that it is of, where one is known."""
    for text in view.snapshot.said:
        yield None, text
    for process in view.snapshot.processes:
        for text in process.said:
            yield process, text
        for thread in process.threads:
            for text in thread.problems:
                yield process, text


@functools.lru_cache(maxsize=4096)
def _known(text: str) -> Optional[LogRule]:
    return next((rule for pattern, rule in _RULES if pattern.search(text)), None)


def fault_before(view: JobView, line: Line) -> Optional[Line]:
    """The first fault of the network, of memory or of a driver, where it stands before that line in the one text."""
    early = view.snapshot.first_said
    at = next((number for number, text in enumerate(early) if line.text.endswith(text)), 0)
    before = early[:at]
    found = [Line(text, None, rule) for text in before for rule in [_known(text)] if rule is not None]
    faults = (one for one in found if one.rule.cause in FIRST_FAULTS or one.rule.id in FIRST_FAULTS)
    first = next((one for one in faults if not _PASSING.search(one.text)), None)
    if first is None or first.rule is line.rule or (line.rule.cause and first.rule.cause == line.rule.cause):
        return None
    return first


def meaning(line: Line) -> str:
    """What the row says that the line means, for the process that printed it."""
    title = (line.process.title if line.process is not None else None) or ""
    return next((means for name, means in line.rule.by_writer if regex(name).match(title)), line.rule.means)


def waited_in_vain(known: Sequence[Line]) -> bool:
    return any(WAIT_GROUPS[one.rule.wait] != "fatal" for one in known if one.rule.wait)


def piece_of(text: str, first: int, end: int) -> str:
    """The characters of a line from `first` to `end`, which is moved to the end of a word; `…` where something is left
    out."""
    if first == 0 and end >= len(text):
        return text
    cut = text.rfind(" ", first + LONGEST_PIECE // 2, end + 1)  # not in a number or a name
    piece = text[first : cut if cut > 0 and end < len(text) else end].rstrip(" ,")
    return f"{'…' if first else ''}{piece}{'…' if end < len(text) else ''}"
