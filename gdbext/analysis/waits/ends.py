"""What the threads are in at which the waiting ends: dead, idle, at work, outside of what was read."""

from __future__ import annotations

from typing import Dict, Optional

from gdbext.analysis.progress.running import is_alive, moves_about, seconds_in_place
from gdbext.analysis.progress.slow import is_at_work
from gdbext.analysis.progress.waits_for_ranks import may_progress
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party
from gdbext.knowledge.causes.wait_kinds import LEFT_EARLY

_GONE = {"gone": "dead", "stopped": "stopped"}
_FATAL = {"exited-or-crashed": "dead", "sigbus": "faulted", "cuda-error-throw": "faulted"}
_STUCK = (*COMMUNICATION, "implicit", "init", "teardown", "lock")


class Ends:
    """States of parties, each told once. None for one that waits: where that ends is for the graph to say."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self._known: Dict[Party, Optional[str]] = {}
        self._waiting = [party for party in view.parties if party.group in (*COMMUNICATION, "init", "teardown")]

    def state(self, party: Party) -> Optional[str]:
        """A key of model/waits.py STATES."""
        if party not in self._known:
            self._known[party] = self._state(party)
        return self._known[party]

    def _state(self, party: Party) -> Optional[str]:
        if party.group in _GONE:
            return _GONE[party.group]
        if party.group == "fatal":
            return _FATAL[party.kind]
        if party.group == "idle":
            return "idle"
        if party.judged.rule in LEFT_EARLY:
            return "external"
        if is_at_work(party):
            return "progressing"
        if party.group == "elsewhere":
            return self._elsewhere(party)
        return None if party.group in _STUCK else "unread"

    def _elsewhere(self, party: Party) -> str:
        """Outside of any communication: at work, in a loop, or waiting for something that was not read."""
        if not is_alive(party):
            return "external"
        if self._view.has_two_looks and not moves_about(self._view, party) and self._waiting:
            seconds = seconds_in_place(self._view, party, self._waiting)
            return "spinning" if seconds >= self._view.spinning_after else "progressing"
        return "progressing" if may_progress(party) else "external"
