"""Loops over a number of items: one that counted down between two looks goes on, and will end."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence

from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.view.places import what, where
from gdbext.analysis.view.wording import start, verb, who
from gdbext.model.stack import Loop

_LONG = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


class Pace(NamedTuple):
    """How many items of a loop were done in so many seconds."""

    loop: Loop
    done: int
    seconds: float

    @property
    def ends_in(self) -> str:
        """In how long the loop ends at this pace, such as `3.2 hours`."""
        seconds = self.loop.left * self.seconds / self.done
        unit = next(((size, name) for size, name in _LONG if seconds >= 2 * size), (1.0, "s"))
        return f"{seconds / unit[0]:.{0 if unit[1] == 's' else 1}f} {unit[1]}"


def pace_of(view: JobView, party: Party) -> Optional[Pace]:
    """Of a thread that computes: the pace of the outermost loop that has counted down since an earlier look. Who sleeps
    in a loop may only look again and again for what others do."""
    now = party.thread
    if now is None or now.state != "R" or now.sleeps is not None or not now.loops:
        return None
    for look in view.before:
        then = look.same_party(party)
        seconds = (view.snapshot.taken_at or 0.0) - (look.snapshot.taken_at or 0.0)
        if then is None or then.thread is None or seconds <= 0:
            continue
        left = {(one.function, one.iterator): one.left for one in then.thread.loops}
        for loop in reversed(now.loops):
            done = left.get((loop.function, loop.iterator), 0) - loop.left
            if done > 0:
                return Pace(loop, done, seconds)
    return None


def counts_down(view: JobView, waiting: Sequence[Party], busy: Sequence[Party]) -> Optional[Candidate]:
    """All that are busy go through loops of so many items each; the others wait for them."""
    paces = [pace_of(view, one) for one in busy]
    first = paces[0] if paces else None
    if first is None or None in paces:
        return None
    summary = (
        f"{start(who(busy[:1]))} computes in {where(busy[0])}, and goes through a loop in {first.loop.function}(): "
        f"{first.done:,} items in {first.seconds:.1f} s, {first.loop.left:,} are left. At this pace the loop ends in "
        f"{first.ends_in}."
    )
    if waiting:
        summary += f" {start(who(waiting))} {verb(waiting, 'waits', 'wait')} for it in {what(waiting)}."
    return Candidate(
        cause="not-a-hang",
        confidence="low",
        summary=summary,
        victims=tuple(waiting),
        evidence=evidence_of(busy, waiting),
    )
