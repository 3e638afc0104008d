"""Processes that wait for a signal, which has come already and which they block."""

from __future__ import annotations

from typing import Optional

from gdbext.analysis.view.candidate import Candidate, evidence_of, shows
from gdbext.analysis.view.job_view import JobView, Party, parties_without
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import label_list, signal_name, start, who
from gdbext.knowledge.runtimes.system_calls import PAUSE, SIGSUSPEND
from gdbext.model.codes import Given

_WAITS = (PAUSE, SIGSUSPEND)
"""They end when a handler has run, which it does not for a signal that is blocked. sigwait() takes blocked ones."""


def signal_held_back(view: JobView) -> Optional[Candidate]:
    """One may wait for another signal, and block this one on purpose: so this is never sure."""
    for party in view.parties if view.given is Given.LIVE else ():
        if not party.process.held_back or not _waits_for_signal(party):
            continue
        names = label_list(list(map(signal_name, party.process.held_back)))
        summary = (
            f"{start(who([party]))} waits for a signal in {where(party)}. {names} has come for it, but all its "
            "threads block that signal, so no handler runs."
        )
        others = parties_without(view.parties, [party])
        fact = shows(party, f"pending and blocked: {names} (/proc/PID/status, ShdPnd and SigBlk)")
        return Candidate(
            cause="other",
            confidence="low",
            summary=summary,
            culprits=(party,),
            victims=tuple(others),
            evidence=(*evidence_of([party], others), fact),
        )
    return None


def _waits_for_signal(party: Party) -> bool:
    thread = party.thread
    call = thread.syscall if thread is not None else None
    return thread is not None and bool(call) and call is not None and call[0] in _WAITS and not thread.switches


LOST = (signal_held_back,)
