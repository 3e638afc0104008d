"""Who has not come to a collective, and how sure that is."""

from __future__ import annotations

from typing import Sequence

from gdbext.analysis.progress.waits_for_ranks import may_progress
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.waits.edges.members import Meeting
from gdbext.analysis.waits.edges.other_frames import blocked_inside, is_exiting
from gdbext.knowledge.causes.wait_kinds import LEFT_EARLY
from gdbext.knowledge.runtimes.untimed_calls import FROM_SEVERAL, LOADER_WAITS
from gdbext.model.codes import Given

OUTSIDE = ("elsewhere", "lock", "idle", "gone", "stopped", "fatal")
"""Groups of ranks that are in no communication."""
_FED_KINDS = ("ipc-queue", "condvar-idle")
_PLAINLY_AWAY = ("io", "ipc-queue", "python-code", "mutex", "exited-or-crashed")


def is_late(party: Party) -> bool:
    return party.group in OUTSIDE or party.judged.rule in LEFT_EARLY


def is_ending(party: Party) -> bool:
    """Tears a communicator down, or frees what belongs to a device while the process exits."""
    return party.group == "teardown" or (party.group in ("implicit", "device") and is_exiting(party))


def _nobody_looked(party: Party) -> bool:
    """Whether it is not known what the processes below it do."""
    return party.process.activity is None or party.process.activity.napping is None


class Sure:
    """How sure it is that a party belongs to a meeting and has not come."""

    def __init__(self, view: JobView, members: Sequence[Party]) -> None:
        self._few = 2 * sum(1 for one in members if is_late(one) or one.group == "implicit") <= len(members)
        self._numbered = all(one.process.rank is not None for one in members)
        self._complete = view.complete and not view.threads_as_ranks and not view.of("unknown")
        self._live = view.given == Given.LIVE
        self._others = len(members) - 1

    def asks(self, meeting: Meeting, party: Party) -> bool:
        """Whether it waits for messages of nobody knows whom, and the others for what it will tell them: an idle job
        looks like this, and so does one whose requests get lost."""
        alone = self._live and party.judged.rule in FROM_SEVERAL and meeting.from_one
        return alone and len(meeting.parties) == self._others

    def of(self, meeting: Meeting, party: Party) -> str:
        """A strength of model/waits.py."""
        if is_ending(party) and blocked_inside(party):
            return "named"
        if party.group in ("gone", "stopped", "fatal"):
            return "named" if meeting.named else "inferred"
        if party.judged.rule in LEFT_EARLY and not meeting.of_all:
            return "assumed"  # its part of it may be done
        if meeting.from_one and party.kind in _FED_KINDS:
            return "assumed"  # it may well wait for what to tell them
        away = party.group in ("elsewhere", "lock")
        plain = not away or (party.kind in _PLAINLY_AWAY and self._numbered)
        unread = party.judged.rule in LOADER_WAITS and _nobody_looked(party)
        if meeting.named and self._few and plain and not unread and self._complete and not may_progress(party):
            return "named"
        if away:
            return "inferred" if self._few and (meeting.named or self._numbered) else "assumed"
        return "inferred"
