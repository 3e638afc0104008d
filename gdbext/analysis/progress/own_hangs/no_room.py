"""Who has something to give, and finds no room: threads that look for it again and again, while nobody takes anything,
and a write to a full pipe, which the only other process that has it open does not read."""

from __future__ import annotations

from typing import List, Optional, Tuple

from gdbext.analysis.progress.named_waits import naps_for_message, naps_for_room
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_hangs.polls_alone import acts, is_busy
from gdbext.analysis.progress.own_work import is_independent_job, is_working, looked_long, only_naps
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import has_acted, seconds_in_place, stays_in_place
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, other_ends, parties_without, threads, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.runtimes.system_calls import WRITE, WRITEV
from gdbext.knowledge.spinning import SHORT_SLEEP


def room_not_made(view: JobView) -> Optional[Candidate]:
    """One looks for room to give something to others, who look for something to take: for as long as an endless loop
    takes to be called one, nobody found it, and nobody did anything else."""
    if not is_independent_job(view) or not looked_long(view):
        return None
    giving = [party for party in view.parties if naps_for_room(party)]
    others = parties_without(view.parties, giving)
    taking = [party for party in others if naps_for_message(party)]
    if not giving or not taking or any(_does_more(view, party) for party in view.parties):
        return None
    if any(is_working(view, party) for party in parties_without(others, taking)):
        return None
    if any(seconds_in_place(view, one, ()) < view.spinning_after for one in (*giving, *taking)):
        return None
    summary = (
        f"{start(who(giving))} {verb(giving, 'looks', 'look')} again and again for room in {where(giving[0])} and "
        f"{who(taking)} for a message in {where(taking[0])}. Nobody makes room: a reader has ended, was "
        "not read by gdbext, or has another idea of what it has taken."
    )
    return blame("other", "low", summary, giving, others)


def nobody_takes(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, all threads that did anything looked for room to give
    something to others."""
    giving = _all_giving(view) if looked_long(view) else []
    if not giving:
        return None
    culprits = [party for party in view.parties if party.index in {one.index for one in giving}]
    summary = (
        f"{start(who(giving))} {verb(giving, 'looks', 'look')} again and again for room in {closed(where(giving[0]))}, "
        "and no other thread does anything: nobody takes what was given, so there is never room."
    )
    return blame("other", "low", summary, culprits, parties_without(view.parties, culprits), giving)


def somebody_may_take(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    giving = [] if looked_long(view) else _all_giving(view)
    if not giving:
        return None
    text = (
        f"It is not clear yet whether anything hangs: {who(giving)} {verb(giving, 'looks', 'look')} again and again "
        f"for room in {closed(where(giving[0]))}, and no other thread does anything."
    )
    return not_clear(view, text, evidence_of((), giving))


def _all_giving(view: JobView) -> List[Party]:
    """The threads that look for room, if there are several, they stay where they are, and no other one did anything."""
    if not is_independent_job(view) or any(is_busy(process.activity) for process in view.snapshot.processes):
        return []
    acting = [one for one in threads(view) if has_acted(one)]
    naps = (one.thread.sleeps for one in acting if one.thread is not None)
    brief = all(nap is not None and nap <= SHORT_SLEEP for nap in naps)
    giving = brief and all(naps_for_room(one) and stays_in_place(view, one) for one in acting)
    return acting if giving and len(acting) > 1 else []


def full_pipe_not_read(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, a process has stood in a write to a pipe, and the only
    other one that has it open did nothing but sleep, or wait for something else."""
    writers, reader = _full_pipe(view) if looked_long(view) else ([], None)
    if reader is None:
        return None
    naps = only_naps(reader)
    does = "has done nothing but sleep again and again" if naps else "has been waiting for something else"
    summary = (
        f"{start(who(writers))} {verb(writers, 'is', 'are')} blocked in {closed(where(writers[0]))}, because the pipe "
        f"is full. Only {who([reader])} can read it, and {does} in {where(reader)}. Most likely it waits there for "
        f"{who(writers)}{' to end' if naps else ''}."
    )
    return blame("other", "low", summary, [reader], parties_without(view.parties, [reader]))


def full_pipe_may_be_read(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    writers, reader = ([], None) if looked_long(view) else _full_pipe(view)
    if reader is None:
        return None
    text = (
        f"It is not clear yet whether anything hangs: {who(writers)} {verb(writers, 'is', 'are')} blocked in "
        f"{closed(where(writers[0]))}, because the pipe is full, and {who([reader])}, which can read it, is in "
        f"{where(reader)}."
    )
    return not_clear(view, text, evidence_of((), [*writers, reader]))


def _full_pipe(view: JobView) -> Tuple[List[Party], Optional[Party]]:
    """Who stands in a write to a pipe that only one other process can read, which does not; and that one."""
    if not is_independent_job(view):
        return [], None
    found = [(party, _absent_reader(view, party)) for party in view.parties if _stands_in_write(view, party)]
    pairs = [(writer, reader) for writer, reader in found if reader is not None]
    return [writer for writer, _ in pairs], pairs[0][1] if pairs else None


def _stands_in_write(view: JobView, party: Party) -> bool:
    """Whether each look found its thread in the same write, and nothing had woken it in between."""
    looks = [look.same_party(party) for look in (*view.before, view)]
    calls = [one.thread.syscall for one in looks if one is not None and one.thread and not one.thread.switches]
    first = calls[0] if len(calls) == len(looks) else None
    return isinstance(first, tuple) and first[0] in (WRITE, WRITEV) and all(call == first for call in calls)


def _absent_reader(view: JobView, writer: Party) -> Optional[Party]:
    """The one that has the other end of what it writes to, if that only naps, or all its own threads wait without a
    limit for something else."""
    ends = {pid for pids in other_ends(writer) for pid in pids}
    readers = [party for party in view.parties if party.process.pid in ends]
    if len(ends) != 1 or len(readers) != 1:
        return None
    own = threads_of(view, readers[0].index, lambda one: one.helper is None)
    files = {peer.file for peer in writer.process.peers if peer.thread == writer.lwp}
    reads = any(peer.file in files for peer in readers[0].process.peers)
    return readers[0] if only_naps(readers[0]) or (own and all(map(stands, own)) and not reads) else None


def _does_more(view: JobView, party: Party) -> bool:
    """Whether a thread or child of it does something else than to look for room or for a message, or to rest."""
    every, activity = threads_of(view, party.index), party.process.activity
    if activity is not None and (activity.children or activity.read_bytes or activity.written_bytes):
        return True
    return any(acts(one) and not (naps_for_message(one) or naps_for_room(one)) for one in every)


LOST = (room_not_made, nobody_takes, full_pipe_not_read)
PATTERNS = (full_pipe_may_be_read, somebody_may_take)
