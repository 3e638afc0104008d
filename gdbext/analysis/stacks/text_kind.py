"""What the text of a thread shows, where that is no look at a living process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence

from gdbext.knowledge.causes.held_by_frames import INTERRUPTED
from gdbext.knowledge.causes.task_endings import ENDINGS, HUNG, Ending
from gdbext.knowledge.causes.what_texts_show import PAST, TEXT_KINDS, TextKind
from gdbext.knowledge.frames.failures import HELD_FOR_DEBUGGERS
from gdbext.model.job import RankSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.patterns import regex

_MISSING = regex(r"not in the text: (?P<frames>frames 0-(?!1\b)\d{1,6})(?:,|$)")
_LOST = regex(r"not in the text: frames? (?P<numbers>0(?:-\d{1,6})?)(?:,|$)")
_HUNG, _HELD = regex(HUNG), regex(HELD_FOR_DEBUGGERS)
_ENDINGS = [([regex(one) for one in row.through], row) for row in ENDINGS]
_LEFT_BY_SIGNAL = regex(INTERRUPTED)
_IS_DOING = regex(r"\b(?:is|are)(?= (?:doing|making|merely|probably|stuck)\b)")
_ROWS = [(regex(row.says), regex(row.pasted_from), regex(row.under), regex(row.not_inner), row) for row in TEXT_KINDS]


def past(text: str) -> str:
    """What a stack leaves open, of a thread that has left the call since."""
    return _IS_DOING.sub(lambda found: "was" if found[0] == "is" else "were", text)


@dataclass(frozen=True)
class Shown:
    """The row that knows the text, and what stands for `{what}`."""

    row: TextKind
    what: str = ""

    @property
    def when(self) -> str:
        """` when Ctrl-C ...`, or nothing."""
        return f" {self.row.when.format(what=self.what)}" if self.row.when else ""

    @property
    def open(self) -> str:
        """What the stack leaves open; "" where it is what any stack does."""
        return self.row.open.format(what=self.what)

    def added(self, parties: int) -> str:
        """A sentence behind those about so many stacks, which only helpers have where that is 0."""
        if self.row.alone:
            return ""
        stack = "This stack was" if parties == 1 else "These stacks were"
        when = self.when.replace(" it ", " the processes " if parties > 1 else " the process ")
        return f"{stack} taken{when}." if when else "" if parties else self.open

    def past(self, does: str) -> str:
        """`waited for a lock in f when ...`, of what a thread did at that moment."""
        verb, _, rest = does.partition(" ")
        comma = "," if ", " in rest else ""
        return f"{PAST.get(verb, verb)} {rest}{comma}{self.when}" if self.row.when else does

    @property
    def at_a_stop(self) -> bool:
        """Whether a debugger stopped the process at a place that somebody named."""
        return self.row.id == "breakpoint"


def shown_by(process: RankSnapshot, thread: Optional[ThreadStack]) -> Optional[Shown]:
    """What the text is of that process, by the lines of one of its threads first."""
    own = thread.problems if thread is not None else ()
    calls = [frame.function or "" for frame in thread.calls] if thread is not None else []
    everybody = (*own, *process.said, *(text for one in process.threads for text in one.problems))
    for says, pasted, under, not_inner, row in _ROWS:
        if not pasted.match(process.source) or (calls and not_inner.match(calls[0])):
            continue
        if row.under and not any(map(under.match, calls)):
            continue
        found = next(filter(None, map(says.match, own if row.own else everybody)), None)
        if found is not None:
            return Shown(row, (found.groupdict().get("what") or "").strip().rstrip("."))
    return None


def holder_for_debuggers(thread: Optional[ThreadStack]) -> str:
    """The handler of a signal that keeps a process which failed for a debugger; "" of any other."""
    names = [frame.function or "" for frame in thread.calls] if thread is not None else []
    return next(filter(_HELD.match, names), "")


def interrupted_in(thread: Optional[ThreadStack]) -> Sequence[Frame]:
    """What the last signal on a stack has interrupted; nothing where there is none."""
    calls = thread.calls if thread is not None else ()
    left = (number for number, frame in enumerate(calls, 1) if _LEFT_BY_SIGNAL.match(frame.function or ""))
    return calls[next(left, len(calls)) :]


def missing_inside(thread: Optional[ThreadStack]) -> str:
    """`frames 0-13`, where a text has lost the innermost ones, and with them what a thread died in. The first two are
    mostly of the handler that prints them."""
    if thread is None or any(_LEFT_BY_SIGNAL.match(frame.function or "") for frame in thread.calls):
        return ""
    found = next(filter(None, map(_MISSING.match, thread.problems)), None)
    return found["frames"] if found else ""


def lost_inside(thread: Optional[ThreadStack]) -> str:
    """`frames 0-4 are`, `frame 0 is`: the same of a thread that nothing has ended, of which any frame may be lost."""
    lines = thread.problems if thread is not None else ()
    found = next(filter(None, map(_LOST.match, lines)), None)
    if found is None:
        return ""
    return f"frames {found['numbers']} are" if "-" in found["numbers"] else "frame 0 is"


def ending(thread: Optional[ThreadStack]) -> Optional[Ending]:
    """What a stack of the kernel shows of a task that ends, or closes a file; None of any other one."""
    names = [frame.function or "" for frame in thread.calls] if thread is not None else []
    return next((row for patterns, row in _ENDINGS if all(any(map(one.match, names)) for one in patterns)), None)


def blocked_for(process: RankSnapshot) -> int:
    """For how many seconds the kernel's watchdog found it blocked, by its last word; 0 where it said nothing."""
    return max((int(found["seconds"]) for found in map(_HUNG.match, process.said) if found is not None), default=0)


def shown_by_all(processes: Sequence[RankSnapshot], threads: Sequence[Optional[ThreadStack]]) -> Optional[Shown]:
    """The same of several, where all are of one kind."""
    found = [shown_by(process, thread) for process, thread in zip(processes, threads)]
    first = found[0] if found else None
    alike = first is not None and all(one is not None and one.row is first.row for one in found)
    return first if alike else None
