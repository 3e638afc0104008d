"""Who holds what a thread waits for: locks and joins as memory shows them, the GIL as frames do."""

from __future__ import annotations

from typing import List, Tuple

from gdbext.analysis.progress.running import was_woken
from gdbext.analysis.view.job_view import COMMUNICATION, WATCHDOG, JobView, Party
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges import (
    assumed_holders,
    by_frames,
    initialisers,
    one_process,
    outside_locks,
    printed_locks,
)
from gdbext.analysis.waits.edges.assumed_holders import open_lock, own_lock, process_lock_node
from gdbext.analysis.waits.edges.other_frames import (
    called_by_loader,
    in_profiler,
    owners_of_gil,
    under_driver,
    wants_loader,
)
from gdbext.analysis.waits.thread_numbers import Threads
from gdbext.knowledge.runtimes.glibc_locks import NO_OWNER
from gdbext.model.codes import Given
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import KINDS, LockWait
from gdbext.model.missing import Missing
from gdbext.model.verdict import Evidence
from gdbext.model.waits import JOINS, Node

_OF_DRIVER = ("implicit", "lock", *COMMUNICATION)


def draw(drawing: Drawing) -> None:
    """Locks, joins, conditions, queues, pipes and sockets with their edges."""
    threads = _by_memory(drawing)
    initialisers.draw(drawing, threads)
    printed_locks.draw(drawing)
    one_process.draw(drawing, threads)
    waiters = _lock_waiters(drawing.view)
    by_frames.held_locks(drawing, waiters)
    for party in waiters:
        _by_frames(drawing, party)
    assumed_holders.draw(drawing, waiters)
    for party in drawing.view.parties:
        if party in drawing.taken or drawing.waits(drawing.rank(party)):
            continue
        if party.group in ("elsewhere", "lock", "unknown"):
            outside_locks.draw(drawing, party, drawing.rank(party))
    for process in drawing.view.snapshot.processes:
        outside_locks.peers(drawing, threads, process)
    for party in list(drawing.parties.values()):
        node = drawing.of(party)
        if node.kind == "thread" and party.group == "elsewhere" and not drawing.waits(node):
            outside_locks.draw(drawing, party, node)


def locks_alone(view: JobView) -> Drawing:
    """Only what memory says of locks and joins, also of processes that are stopped or gone."""
    drawing = Drawing(view, ended=())
    _by_memory(drawing)
    return drawing


def _by_memory(drawing: Drawing) -> Threads:
    threads = Threads(drawing.view)
    for waiter, wait in threads.waits():
        if wait.kind not in NO_OWNER and wait.kind != "futex":
            _lock(drawing, threads, waiter, wait)
    return threads


def _lock(drawing: Drawing, threads: Threads, waiter: Party, wait: LockWait) -> None:
    process, source = waiter.process, drawing.of(waiter)
    facts = drawing.fact(waiter)
    strength = "inferred" if wait.timed or _at_two_moments(process, wait) else "proven"
    kind = waiter.judged.kind if waiter.judged.kind in ("gil", "mutex") else "mutex"
    moves = wait.still is False or (wait.moving and not wait.still)
    # Who was woken got what an owner left that has ended since.
    moves = moves or (wait.gone and waiter.thread is not None and was_woken(waiter.thread))
    if wait.kind == "join":
        if not moves:
            _owner(drawing, threads, source, process, wait, JOINS, strength, facts)
        return
    where = f"{process.index}:{wait.address:#x}" if wait.address else f"{process.index}:{wait.thread}"
    lock = drawing.resource("lock", where, one_process.name(wait), "progressing" if moves else None)
    drawing.join(source, lock, "gil" if wait.kind == "gil" else kind, strength, facts)
    unknown = isinstance(wait.owner, Missing) and not wait.gone
    if not (moves or unknown or drawing.waits(lock)):
        _owner(drawing, threads, lock, process, wait, "holds", strength, ())


def _at_two_moments(process: RankSnapshot, wait: LockWait) -> bool:
    """Whether the two processes of a wait were looked at one after the other, and only once."""
    other = wait.owner_process not in (None, process.pid) and not wait.gone
    return other and process.given is Given.LIVE and not wait.still


def _owner(
    drawing: Drawing,
    threads: Threads,
    source: Node,
    process: RankSnapshot,
    wait: LockWait,
    kind: str,
    strength: str,
    facts: Tuple[Evidence, ...],
) -> None:
    """The edge to the thread that must act, or to what is known in its place."""
    if isinstance(wait.owner, Missing):
        closes = threads.get(process.index, threads.waiting.get((process.index, wait.thread), 0))
        if closes is not None:  # the kernel refused the lock because that would close a circle
            drawing.join(source, drawing.of(closes), "holds", strength)
            return
        parked = f"thread:parked:{source.id}"
        node = drawing.add(Node(id=parked, kind="thread", label=wait.owner.reason, state="dead", sentence=True))
        drawing.join(source, node, "ended", strength, facts)
        return
    owner = threads.owner(process, wait)
    if owner is not None:
        drawing.join(source, drawing.of(owner), kind, strength, facts)
    elif wait.gone:
        parent = f" of its parent (pid {wait.owner_process})" if wait.owner_process is not None else ""
        if not parent and len(process.threads) < 2:
            strength = "inferred"  # or left behind by a fork
        node = drawing.resource("thread", f"gone:{process.index}:{wait.owner}", f"thread {wait.owner}{parent}", "dead")
        drawing.join(source, node, "forked" if parent else "ended", strength, facts)
    else:
        node = drawing.resource(
            "thread", f"{wait.owner_process or process.index}:{wait.owner}", f"thread {wait.owner}", "unread"
        )
        drawing.join(source, node, kind, strength, facts)


# --- what frames alone say ---


def _lock_waiters(view: JobView) -> List[Party]:
    """Threads that wait for a lock; linear in all threads."""
    found: List[Party] = []
    for process, judged in zip(view.snapshot.processes, view.processes):
        for at in judged.positions_where(lambda one: one.kind in ("gil", "mutex")):
            found.append(
                Party(
                    process=process, thread=process.threads[at], judged=judged.threads[at], group="lock", is_thread=True
                )
            )
    return found


def _by_frames(drawing: Drawing, party: Party) -> None:
    """The GIL, the loader's and the driver's lock, where memory did not tell their holders."""
    node = drawing.of(party)
    if party.kind == "gil":
        _gil(drawing, party, node)
    elif drawing.waits(node):
        return
    elif in_profiler(party):
        driver = drawing.resource("driver", "cupti", "a lock that the driver shares with the CUPTI profiler", "faulted")
        drawing.join(node, driver, "mutex", "assumed", drawing.fact(party))
    elif under_driver(party):
        lock = own_lock(drawing, party, node)
        caller = drawing.resource("unknown", lock.id, "another thread inside CUDA")
        drawing.join(lock, caller, "holds", "inferred")
        _driver_lock(drawing, caller, node, party, "inferred")
    elif wants_loader(party):
        drawing.join(
            node, process_lock_node(drawing, party, "the dynamic loader's lock"), "mutex", "named", drawing.fact(party)
        )
    elif (party.index, id(party.thread)) in drawing.deciding:
        own_lock(drawing, party, node)


def _driver_lock(drawing: Drawing, caller: Node, holder: Node, party: Party, strength: str) -> None:
    """What a thread is called by the driver with is held: whoever calls CUDA waits for it."""
    lock = process_lock_node(drawing, party, "the CUDA driver's lock")
    drawing.join(caller, lock, "mutex", strength)
    drawing.join(lock, holder, "holds", strength)


def _gil(drawing: Drawing, party: Party, node: Node) -> None:
    """A thread that wants the GIL inside of a hook holds what it was called with."""
    own = (edge.target for edge in drawing.leaving(node) if edge.kind == "gil")
    gil = next(own, None) or process_lock_node(drawing, party, KINDS["gil"])
    if not drawing.waits(node):
        drawing.join(node, gil, "gil", "named", drawing.fact(party))
    held, driver = called_by_loader(party), under_driver(party)
    for owner in owners_of_gil(drawing.view, party):
        target = drawing.of(owner)
        proven = owner.thread is not None and owner.thread.gil is True
        both = held and wants_loader(owner)
        blocked = driver and owner.group in _OF_DRIVER
        if not (both or blocked or (proven and owner.group == "lock")):
            continue
        if not drawing.waits(gil):
            drawing.join(gil, target, "holds", "proven" if proven else "named" if both else "inferred")
        elif all(edge.target.id != target.id for edge in drawing.leaving(gil)):
            continue
        strength = "named" if both or (driver and proven) else "inferred"
        lock = open_lock(drawing, owner) if owner.group == "lock" and not both else None
        if lock is None and drawing.waits(target) and not both:
            continue  # what it waits for is known, and held by another one
        if lock is None:
            driver_lock = driver or owner.group != "lock"
            name = "the dynamic loader's lock" if both else "the CUDA driver's lock" if driver_lock else "a lock"
            lock = process_lock_node(drawing, owner, name)
        if not drawing.waits(target):
            drawing.join(target, lock, owner.kind, strength, drawing.fact(owner))
        drawing.join(lock, node, "holds", strength)
        return
    _gil_alone(drawing, party, node, gil, driver)


def _gil_alone(drawing: Drawing, party: Party, node: Node, gil: Node, driver: bool) -> None:
    """A callback of the driver whose GIL's owner was not seen; a watchdog whose GIL's owner waits for the device."""
    if driver and not drawing.waits(gil):
        owner = drawing.resource("unknown", gil.id, "the GIL's owner")
        drawing.join(gil, owner, "holds", "assumed")
        _driver_lock(drawing, owner, node, party, "assumed")
        return
    for one in owners_of_gil(drawing.view, party):
        watched = party.judged.helper == WATCHDOG and one.group in ("implicit", "teardown", *COMMUNICATION)
        if watched and one.thread is not None and one.thread.gil is True and not drawing.waits(gil):
            target = drawing.of(one)
            drawing.join(gil, target, "holds", "proven")
            lock = process_lock_node(drawing, party, "work of the watchdog's thread")
            drawing.join(target, lock, one.kind, "assumed", drawing.fact(one))
            drawing.join(lock, node, "holds", "assumed")
            return
