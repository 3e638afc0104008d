"""Servers of engines that do not come up: all wait for one of them, which stands in code of its own."""

from __future__ import annotations

from typing import Optional

from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import looked_long, may_be_fed, waits_for_own_process, works_within
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_without
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.engines.waits_between_parts import STARTUPS
from gdbext.model.codes import Given
from gdbext.model.missing import Missing


def does_not_start(view: JobView) -> Optional[Candidate]:
    """Front end, engine cores and ranks wait until others have started; those that do not wait so hold them up."""
    if view.given is not Given.LIVE or not view.has_two_looks or view.gone or view.unseen:
        return None
    waiting = [party for party in view.parties if party.judged.rule in STARTUPS]
    others = [party for party in parties_without(view.parties, waiting) if not party.judged.idle]
    if not waiting or not others or view.of(*COMMUNICATION, "implicit", "init", "teardown", "fatal"):
        return None
    if not all(map(_sleeps_on, others)) or any(party.index in view.moved for party in others):
        return None  # who computes or reads may just be slow
    if any(works_within(view, party) for party in others):
        return None
    lead = f"{who(waiting)} {verb(waiting, 'waits', 'wait')} in {where(waiting[0])} for the start of the server"
    fed = [party for party in others if may_be_fed(view, party)]
    if fed or not looked_long(view):
        still = f"{who(others)} did not move while gdbext watched"
        if fed:
            still = f"{who(fed)} {verb(fed, 'waits', 'wait')} in {where(fed[0])} for a child or thread that may work"
        text = f"It is not clear yet whether anything hangs: {lead}, and {still}."
        return not_clear(view, text, evidence_of(others, waiting), waiting)
    return Candidate(
        cause="other",
        confidence="low" if any(_may_be_slow(view, party) for party in others) else "medium",
        summary=f"{start(lead)}, and {who(others)} {verb(others, 'holds', 'hold')} it up: "
        f"{verb(others, 'it waits', 'they wait')} in {where(others[0])}.",
        culprits=tuple(others),
        victims=tuple(waiting),
        evidence=evidence_of(others, waiting),
    )


def greeting_lost(view: JobView) -> Optional[Candidate]:
    """All parts that do not rest wait until others have started, and none of these is at work: a message that one part
    has sent to another one was lost, or a part on another host has not come."""
    if view.given is not Given.LIVE or not view.has_two_looks or view.gone or view.unseen:
        return None
    waiting = [party for party in view.parties if party.judged.rule in STARTUPS]
    others = parties_without(view.parties, waiting)
    if len(waiting) < 2 or not all(one.judged.idle for one in others) or not all(map(_sleeps_on, waiting)):
        return None
    if any(works_within(view, party) for party in view.parties):
        return None
    first = min((party.judged.rule or "" for party in waiting), key=STARTUPS.index)  # the others wait for such parts
    blamed = [party for party in waiting if party.judged.rule == first]
    lead = f"{who(blamed)} {verb(blamed, 'waits', 'wait')} in {closed(where(blamed[0]))} for a message of another part"
    if not looked_long(view):
        text = f"It is not clear yet whether anything hangs: {lead}."
        return not_clear(view, text, evidence_of((), waiting), waiting)
    summary = (
        f"The server does not start: {lead}, and no part is still at work. That message was lost, or a part that was "
        "not read (another host) has not started."
    )
    return blame("init-rendezvous", "low", summary, blamed, parties_without(view.parties, blamed))


def _sleeps_on(party: Party) -> bool:
    """Whether it sleeps in the call of the first copy, and not for a time that it has chosen."""
    thread = party.thread
    return thread is not None and thread.state == "S" and thread.switches == 0 and thread.sleeps is None


def _may_be_slow(view: JobView, party: Party) -> bool:
    """Whether what it waits for comes from a child, another host or a process outside of the job: a download, too."""
    pids = {process.pid for process in view.snapshot.processes}
    peers = (peer.processes for peer in party.process.peers if peer.thread == party.lwp)
    away = any(isinstance(one, Missing) or not pids.issuperset(one) for one in peers)
    return away or waits_for_own_process(party)


LOST = (does_not_start, greeting_lost)
