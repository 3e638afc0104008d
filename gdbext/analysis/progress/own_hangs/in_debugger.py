"""Processes that somebody keeps: at the prompt of Python's debugger, stopped by a tracer or by a signal, while others
wait."""

from __future__ import annotations

from typing import Optional

from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import is_working
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_without, threads
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import start, verb, who
from gdbext.knowledge.frames.python.standard_library import DEBUGGER
from gdbext.model.codes import Given, ReadState
from gdbext.model.job import RANK, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.verdict import Evidence, ThreadJudgement

_TRACED = "t"
"""State of a thread that its tracer has stopped (proc_pid_stat(5))."""


def held_by_debugger(view: JobView) -> Optional[Candidate]:
    """The process at the prompt did not run between the two copies, and no other process works. Ranks that wait in a
    collective are judged as such."""
    if view.given is not Given.LIVE or not view.has_two_looks or view.of(*COMMUNICATION, "init", "teardown"):
        return None
    asking = [one for one in threads(view) if _at_prompt(one)]
    traced = [_party(process) for process in view.snapshot.processes if _is_traced(view, process)]
    indexes = {one.index for one in (*asking, *traced)}
    others = [party for party in view.parties if party.index not in indexes]
    if not indexes or any(is_working(view, party) for party in others):
        return None
    if asking:
        what = f"{start(who(asking))} {verb(asking, 'waits', 'wait')} for a command of a debugger in {where(asking[0])}"
    else:
        what = f"{start(who(traced))} {verb(traced, 'is', 'are')} stopped by a debugger or tracer that is attached"
    if others:
        what += f"; {who(others)} {verb(others, 'waits', 'wait')}, for example in {where(others[0])}"
    seen = tuple(Evidence(f"{one.process.label} is in state t: its tracer has stopped it", one.index) for one in traced)
    return Candidate(
        cause="other",
        confidence="medium" if asking else "low",  # whom strace follows is in that state again and again
        summary=f"{what}. End the debugger's session, and they resume.",
        culprits=(*asking, *traced),
        victims=tuple(others),
        evidence=(*seen, *evidence_of(asking, others)),
    )


def stopped_by_signal(view: JobView) -> Optional[Candidate]:
    """An engine core, a front end, ... does not run before somebody resumes it, and no rank waits for another one."""
    stopped = [party for party in view.gone if party.group == "stopped" and party.process.role != RANK]
    if view.given is not Given.LIVE or not stopped or view.of(*COMMUNICATION, "init", "teardown", "gone"):
        return None
    others = parties_without(view.parties, stopped)
    ran = [party for party in stopped if any(thread.switches for thread in party.process.threads)]
    if ran:
        text = (
            f"It is not clear yet whether anything hangs: {who(ran)} {verb(ran, 'is', 'are')} stopped by a signal, and "
            "ran while gdbext watched: somebody stops and resumes it again and again."
        )
        return not_clear(view, text, evidence_of(ran, others))
    what = f"{start(who(stopped))} {verb(stopped, 'is', 'are')} stopped by a signal, and {verb(stopped, 'does', 'do')}"
    summary = f"{what} nothing before somebody sends SIGCONT (kill -CONT PID)."
    return blame("other", "high" if view.has_two_looks else "medium", summary, stopped, others)


def _at_prompt(one: Party) -> bool:
    return one.judged.rule == DEBUGGER and stands(one)


def _is_traced(view: JobView, process: RankSnapshot) -> bool:
    """Whether it could not be read, and somebody who waits for it saw that its tracer had stopped it."""
    if process.state is not ReadState.LOST or process.threads or not process.alive:
        return False
    peers = (peer for party in view.parties for peer in party.process.peers if peer.thread == party.lwp)
    return any(
        pid == process.pid and state == _TRACED
        for peer in peers
        if not isinstance(peer.processes, Missing)
        for pid, state in zip(peer.processes, peer.states)
    )


def _party(process: RankSnapshot) -> Party:
    return Party(process=process, thread=None, judged=ThreadJudgement(kind="unknown"), group="unknown")


LOST = (held_by_debugger, stopped_by_signal)
