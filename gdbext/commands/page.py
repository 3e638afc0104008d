"""The page of a look: everything that was read and judged of it, without secrets, for one HTML file."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.communicators.joined_communicators import communicator_table
from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.stacks.process_kind import judge_process
from gdbext.analysis.stacks.thread_kind import Judged
from gdbext.commands.releases import releases
from gdbext.commands.session_port import Session
from gdbext.model.codes import Given
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.look_origin import FromFile, Origin
from gdbext.model.page import AskedBefore, Page, Sample, WithPage
from gdbext.model.stack import Frame
from gdbext.model.verdict import Diagnosis, Wait
from gdbext.scrubbing.shareable_snapshot import shareable


def with_page(session: Session, args: Namespace, answer: object, diagnosis: Diagnosis, subject: str) -> object:
    """The answer of a command of gdb, and its page where one is asked for."""
    if args.html is None:
        return answer
    origin = answer.origin if isinstance(answer, FromFile) else None
    return WithPage(answer, page_of(diagnosis, subject, origin, session.asked_before()))


def page_of(
    diagnosis: Diagnosis, subject: str = "diagnose", origin: Optional[Origin] = None, asked: Sequence[AskedBefore] = ()
) -> Page:
    """The page of a diagnosis; its tree is made anew, of names without secrets. `origin`: the file of the look."""
    shared = shareable(replace(diagnosis, tree=None))
    return replace(
        _page(shared.snapshot, subject, shareable(origin)),
        diagnosis=replace(shared, tree=merge(shared.snapshot, shared.processes)),
        locks=report(shared),
        samples=_samples(shared.snapshot),
        asked=shareable(tuple(asked)),
    )


def page_of_communicators(snapshot: JobSnapshot, origin: Optional[Origin] = None) -> Page:
    """The page of a look at communicators alone, of which no stack was read."""
    return _page(shareable(snapshot), "comms", shareable(origin))


def _page(snapshot: JobSnapshot, subject: str, origin: Optional[Origin]) -> Page:
    table = communicator_table(snapshot.processes)
    live = origin is None and any(one.given is Given.LIVE for one in snapshot.processes)
    running = [one for one in snapshot.processes if live and one.given is Given.LIVE and one.alive]
    here: Dict[int, List[str]] = {one.index: [] for one in running}
    return Page(
        subject=subject,
        snapshot=snapshot,
        communicators=replace(table, processes=()) if table.groups or table.unreadable else None,
        origin=origin,
        releases=tuple(releases(snapshot, here)),
    )


def _samples(snapshot: JobSnapshot) -> Tuple[Sample, ...]:
    """What each process of this look was in at the earlier ones, and at this one."""
    if not snapshot.earlier:
        return ()
    found = []
    for look in (*snapshot.earlier, snapshot):
        known = Judged()
        by_name = {one.identity: one for one in look.processes}
        seen = [_seen(by_name.get(one.identity), look.engine, known) for one in snapshot.processes]
        found.append(Sample(look.taken_at, tuple(wait for wait, _ in seen), tuple(call for _, call in seen)))
    return tuple(found)


def _seen(
    process: Optional[RankSnapshot], engine: Optional[str], known: Judged
) -> Tuple[Optional[Wait], Optional[Frame]]:
    """What a process is in, and the frame that decided so."""
    if process is None:
        return None, None
    wait = judge_process(process, engine, known).wait
    thread = next((one for one in process.threads if one.id == wait.thread), None)
    if thread is None or wait.frame is None or not 0 <= wait.frame < len(thread.calls):
        return wait, None
    return wait, thread.calls[wait.frame]
