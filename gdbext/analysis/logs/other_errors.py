"""Error lines of a text that the answer says nothing of: quoted, for a person who can tell what they mean."""

from __future__ import annotations

import re
from typing import Dict, List, Tuple

from gdbext.analysis.logs.lines_of_logs import LONGEST_PIECE, all_lines, piece_of
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView
from gdbext.knowledge.log_lines.error_words import Fault, fault_in
from gdbext.knowledge.log_lines.last_words import HANDLERS, LOGGED, RAISED
from gdbext.model.codes import Given

_MOST = 2
_BEFORE = 50  # characters that are kept of a long line before the word that tells of the fault
_QUOTED = 0.5  # of a line's words, from which on a sentence says the same
_OURS = frozenset((LOGGED, RAISED, *HANDLERS.values()))
"""Said of threads by the parsers, in no line of the text."""
_WORD = re.compile(r"[A-Za-z]{2,}")


def other_errors(view: JobView, best: Candidate) -> Tuple[str, ...]:
    """The most severe error lines that neither the answer nor each other repeats. None beside a sure answer, and none
    of a look at running processes: what it keeps of threads are our own words."""
    if view.given not in (Given.TEXT, Given.LOG):
        return ()
    if best.cause == "not-a-hang" or (best.cause != "unknown" and best.confidence != "low"):
        return ()
    found: Dict[str, Fault] = {}
    for written in (*view.snapshot.error_lines, *(text for _, text in all_lines(view))):
        text = " ".join(written.split())
        fault = fault_in(text) if text not in _OURS else None
        if fault is not None:
            found.setdefault(text, fault)
    known = set(_WORD.findall(best.summary))
    shown: List[str] = []
    for text, fault in sorted(found.items(), key=lambda one: one[1].severity):
        words = _WORD.findall(text)
        if len(shown) < _MOST and words and sum(word in known for word in words) < _QUOTED * len(words):
            shown.append(_excerpt(text, fault.start))
            known.update(words)
    return tuple(shown)


def _excerpt(text: str, fault: int) -> str:
    """A long line from shortly before the word that tells of the fault."""
    first = text.find(" ", fault - _BEFORE) + 1 if len(text) > LONGEST_PIECE and fault > _BEFORE else 0
    return piece_of(text, first, first + LONGEST_PIECE)
