"""Ranks that wait for another process at the other end of a pipe or socket, and what that one is up to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Collection, FrozenSet, List, Optional, Sequence, Tuple

from gdbext.analysis.candidate import Candidate, shows
from gdbext.analysis.locks import graph_of
from gdbext.analysis.view import COMMUNICATION, JobView, Party
from gdbext.analysis.wording import start, verb, where, who
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing
from gdbext.model.verdict import Evidence

_MOST = 4
_STOPPED = "T"  # "t" is a stop by a debugger, which may be ours


def other_end(peer: Peer) -> str:
    """`pid 4711 (tokenizer, stopped)`, `nobody`, `unknown: ...`."""
    if isinstance(peer.processes, Missing):
        return f"unknown: {peer.processes.reason}"
    if not peer.processes:
        return "nobody has it open"
    told = [
        f"pid {pid} ({name}{', stopped' if state == _STOPPED else ''})"
        for pid, name, state in list(zip(peer.processes, peer.names, peer.states))[:_MOST]
    ]
    left = len(peer.processes) - len(told)
    return ", ".join(told) + (f" and {left} more" if left else "")


def silent_peer(view: JobView) -> Optional[Candidate]:
    """The thread that does the work of a rank waits for a process that is stopped, or for nobody at all."""
    stopped = _stopped_pids(view)
    for party in view.of("elsewhere"):
        peer = _peer_of(view, party)
        if peer is None or isinstance(peer.processes, Missing):
            continue
        peer = replace(peer, states=tuple(map(partial(_state, stopped), peer.processes, peer.states)))
        assert not isinstance(peer.processes, Missing)
        if peer.processes and all(state == _STOPPED for state in peer.states):
            return _stopped(view, party, peer, peer.processes)
        if set(peer.processes) <= {party.process.pid} and len(party.process.threads) == 1:
            return _alone(view, party, peer)
    return None


def _state(stopped: Collection[Optional[int]], pid: int, now: str) -> str:
    """The state of a process before anybody held it, where it is one of the job."""
    return _STOPPED if pid in stopped else now


def _stopped_pids(view: JobView) -> FrozenSet[Optional[int]]:
    """Of processes of the job all of whose threads were stopped by a signal."""
    return frozenset(
        one.pid for one in view.snapshot.processes if {thread.state for thread in one.threads} == {_STOPPED}
    )


def _peer_of(view: JobView, party: Party) -> Optional[Peer]:
    """The wait of the thread at the end of what the party's thread waits for."""
    chain = graph_of(view).chain(party)
    last = chain[-1].party.thread if chain else party.thread
    return next((peer for peer in party.process.peers if last is not None and peer.thread == last.lwp), None)


def _stopped(view: JobView, party: Party, peer: Peer, pids: Sequence[int]) -> Candidate:
    members = tuple(one for one in view.parties if one.process.pid in pids)
    victims = _victims(view, party, members)
    ends = f"{other_end(peer)} {'is' if len(pids) == 1 else 'are'} at its other end and stopped by a signal"
    summary = (
        f"{start(who([party]))} waits in {where(party)} for {peer.file}: {ends}. "
        f"kill -CONT lets {'it' if len(pids) == 1 else 'them'} go on. {_others(view, party, members)}"
    ).rstrip()
    cause = "missing-rank" if members else "other"
    return Candidate(cause, "high", 88, summary, members, victims, (), _evidence(party, peer))


def _alone(view: JobView, party: Party, peer: Peer) -> Candidate:
    held = "nobody but itself has the other end open" if peer.processes else "nobody has the other end open"
    summary = (
        f"{start(who([party]))} waits in {where(party)} for {peer.file}, and {held}: whoever should answer is gone. "
        f"A process that closes its own copy of the other end is told so. {_others(view, party, ())}"
    ).rstrip()
    return Candidate(
        "other", "medium", 80, summary, (party,), _victims(view, party, ())[1:], (), _evidence(party, peer)
    )


def _victims(view: JobView, party: Party, members: Sequence[Party]) -> Tuple[Party, ...]:
    blamed = {one.index for one in members}
    others = [one for one in view.of(*COMMUNICATION, "init", "teardown") if one.index not in blamed]
    return (party, *(one for one in others if one.index != party.index))


def _others(view: JobView, party: Party, members: Sequence[Party]) -> str:
    waiting = _victims(view, party, members)[1:]
    if not waiting:
        return ""
    return f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {where(waiting[0])} for {who([party])}."


def _evidence(party: Party, peer: Peer) -> Tuple[Evidence, ...]:
    lines: List[Evidence] = [shows(party)]
    lines.append(Evidence(f"at the other end of {peer.file}: {other_end(peer)}", party.index, party.judged.id or None))
    return tuple(lines)


PATTERNS = (silent_peer,)
