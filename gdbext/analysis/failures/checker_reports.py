"""What the report of a sanitizer or of Valgrind shows: where something was, not where a thread stands or died."""

from __future__ import annotations

from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.view.places import reported_place, where
from gdbext.knowledge.frames.system.checkers import CHECKERS, FREED, OTHER_ACCESS, TAKES_LOCK
from gdbext.model.text.patterns import regex

_TAKES_LOCK = regex(TAKES_LOCK.format(r"(?P<wanted>\S{1,40})", r"(?P<held>\S{1,40})"))

_HEAD = regex(r"Sanitizer: [a-z]{2,}-[a-z-]+")
"""The head of a sanitizer's report, with its name of the fault: `AddressSanitizer: heap-use-after-free`."""


def is_report(view: JobView) -> bool:
    """Whether the only stack that was read is of such a report, and no look at a process."""
    return len(view.parties) == 1 and view.parties[0].process.source in CHECKERS


def says_itself(quoted: str, view: JobView) -> bool:
    """Whether the quoted head of a report says what it is about; of a pair of locks it does not."""
    thread = view.parties[0].thread
    locks = thread is not None and any(map(_TAKES_LOCK.search, thread.problems))
    return not locks and _HEAD.search(quoted) is not None


def in_report(one: Party) -> str:
    """Where the checker saw it, and what its second stack adds."""
    problems = one.thread.problems if one.thread is not None else ()
    locks = next(filter(None, map(_TAKES_LOCK.search, problems)), None)
    if locks is not None:
        thread = "The main thread" if one.id == "main" else f"Thread {one.id}"
        place = (
            f", in {where(one)}" if reported_place(one) is not None else "; the text does not show the calling function"
        )
        text = f"{thread} took lock {locks['wanted']} while it held {locks['held']}{place}."
        orders = sum(any(map(_TAKES_LOCK.search, thread.problems)) for thread in one.process.threads)
        return (
            text
            if orders > 1
            else f"{text} The text does not show where other threads take these locks in another order."
        )
    other = next((text for text in problems if text.startswith((FREED, OTHER_ACCESS))), "")
    return f"The error was found in {where(one)}{f'; {other}' if other else ''}."
