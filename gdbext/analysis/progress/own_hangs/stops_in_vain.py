"""Calls that stop something and wait for the end of a thread or process, which itself waits for its next request:
nobody has told it to end, or it cannot be told while it waits there."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Optional

from gdbext.analysis.progress.named_waits import is_stopping, stops_something
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import (
    goes_on_alone,
    is_at_rest,
    is_independent_job,
    is_serving,
    is_working,
    looked_long,
)
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import own_locks
from gdbext.analysis.stacks.decisive import exits
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, parties_without, threads, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, who
from gdbext.model.locks import Peer


class _Stop(NamedTuple):
    stopping: Party
    ended: Party  # whose end it waits for, or whose end would end that
    through: Optional[int] = None  # the process, of which no stack was read, that waits for it


def end_not_told(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, nobody worked, and the thread or process was at rest."""
    found = _found(view) if looked_long(view) else None
    if found is None:
        return None
    culprits = [party for party in view.parties if party.index == found.stopping.index]
    others = parties_without(view.parties, culprits)
    cause = "destructor-or-teardown" if _exits(found.stopping) else "other"
    summary = (
        f"{start(_said(found))}. None comes, and nothing has told it to end: close what it waits for, or wake it up, "
        "before you wait for its end."
    )
    return blame(cause, "low", summary, culprits, others, (found.stopping, found.ended))


def may_be_told_to_end(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    found = None if looked_long(view) else _found(view)
    if found is None:
        return None
    text = f"It is not clear yet whether anything hangs: {_said(found)}."
    return not_clear(view, text, evidence_of((), (found.stopping, found.ended)))


def _said(found: _Stop) -> str:
    does = "is exiting" if _exits(found.stopping) else "stops something"
    through = "" if found.through is None else f"pid {found.through}, which waits for a file that is open in "
    return (
        f"{who([found.stopping])} {does} in {closed(where(found.stopping))} and waits there for the end of {through}"
        f"{who([found.ended])}, which waits for its next request in {where(found.ended)}"
    )


def _found(view: JobView) -> Optional[_Stop]:
    if not is_independent_job(view) or any(is_working(view, party) for party in view.parties):
        return None
    return next(
        (found for one in threads(view) if is_stopping(one) and stands(one) for found in _ends(view, one)), None
    )


def _ends(view: JobView, one: Party) -> Iterator[_Stop]:
    yield from _threads(view, one)
    yield from _processes(view, one)


def _threads(view: JobView, one: Party) -> Iterator[_Stop]:
    """Those of its process that it joins, and that are at rest."""
    ends = {wait.owner for wait in own_locks(one)} if stops_something(one) else ()
    for other in threads_of(view, one.index):
        if other.lwp in ends and stands(other) and _waits_for_request(view, other):
            yield _Stop(one, other)


def _waits_for_request(view: JobView, one: Party) -> bool:
    peers = [peer for peer in one.process.peers if peer.thread == one.lwp]
    return one.judged.idle or any(is_at_rest(view, peer) for peer in peers)


def _processes(view: JobView, one: Party) -> Iterator[_Stop]:
    """Its children that are at rest, or, of a child that was not read, who keeps the file open that this one reads."""
    for peer in one.process.peers:
        for pid in peer.children if peer.thread == one.lwp and len(peer.children) == 1 else ():
            child = _serving(view, pid)
            if child is not None and not goes_on_alone(one, child):
                yield _Stop(one, child)
            if all(process.pid != pid for process in view.snapshot.processes):
                yield from (_Stop(one, keeper, pid) for keeper in _keepers(view, peer))


def _keepers(view: JobView, peer: Peer) -> Iterator[Party]:
    for then in peer.then:
        keepers = [_serving(view, pid) for pid in then.processes] if isinstance(then.processes, tuple) else []
        yield from (one for one in keepers if one is not None and None not in keepers)


def _serving(view: JobView, pid: int) -> Optional[Party]:
    found = next((party for party in view.parties if party.process.pid == pid), None)
    return found if found is not None and is_serving(view, found) else None


def _exits(one: Party) -> bool:
    return one.thread is not None and exits(one.thread)


LOST = (end_not_told,)
PATTERNS = (may_be_told_to_end,)
