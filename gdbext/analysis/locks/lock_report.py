"""Everything that `llm-locks` tells: each wait with its owner, circles first, and the longest chains as stories."""

from __future__ import annotations

from collections import Counter
from typing import Collection, Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.locks.lock_frames import is_text, waits_of
from gdbext.analysis.view.job_view import JobView, Party, build_view
from gdbext.analysis.view.places import taken_in, where
from gdbext.analysis.view.wording import start
from gdbext.analysis.waits.chain import walk
from gdbext.analysis.waits.cycles import find_circles
from gdbext.analysis.waits.edges.lock_and_join_holders import locks_alone
from gdbext.analysis.waits.prose import chain_text, chain_with_end
from gdbext.analysis.waits.thread_numbers import Threads
from gdbext.knowledge.runtimes.glibc_locks import NO_OWNER
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import KINDS, LockReport, LockRow, LockWait, Peer, PeerRow
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.verdict import Diagnosis
from gdbext.model.waits import Edge

_MOST_CHAINS = 8
_MOST_PEERS = 4
_STOPPED = "T"  # "t" is a stop by a debugger, which may be ours
_DEADLOCKS = ("lock-order-deadlock", "gil-deadlock")
_BY_FRAMES = "Text shows who waits; a live process or a core file is needed to see who holds a lock."


class _Locks:
    """The waits for locks of a job, and where they lead: the wait-for graph of what memory shows."""

    def __init__(self, view: JobView, only: Optional[Collection[int]]) -> None:
        self.drawing = locks_alone(view)
        self.graph = self.drawing.graph
        self.threads = Threads(view)
        found = self.threads.waits()
        self.waits = [one for one in found if only is None or one[0].index in only]
        self.of = {self.node(party): wait for party, wait in self.threads.waits()}
        order = {node: number for number, node in enumerate(self.of)}
        turns = (
            min((one for one in circle if one in order), key=order.__getitem__) for circle in find_circles(self.graph)
        )
        self.circles = [
            walk(self.graph, self.graph.nodes[one], len(order) * 2) for one in sorted(turns, key=order.__getitem__)
        ]
        self.circle = {edge.source.id: number for number, turn in enumerate(self.circles) for edge in turn}

    def node(self, party: Party) -> str:
        return self.drawing.of(party).id

    def owner(self, party: Party, wait: LockWait) -> Optional[Party]:
        return self.threads.owner(party.process, wait)


def report(diagnosis: Diagnosis, only: Optional[Collection[int]] = None) -> LockReport:
    """The report on a judged snapshot; of the processes with these indexes where `only` is given."""
    view = build_view(diagnosis.snapshot, diagnosis.processes)
    locks = _Locks(view, only)
    rows = [_row(locks, party, wait) for party, wait in locks.waits if not _ownerless(wait)]
    kinds = Counter(wait.kind for _, wait in locks.waits if _ownerless(wait))
    seen = [process for process in diagnosis.snapshot.processes if only is None or process.index in only]
    by_frames, ownerless = waits_of(view, [one.index for one in seen if is_text(one.source) and not one.locks])
    rows = sorted(rows + by_frames, key=lambda row: (row.circle is None, row.circle or 0, row.process))
    kinds.update(ownerless)
    suspicion = _suspicion(diagnosis, {row.process for row in by_frames})
    waits = any(process.locks or any(peer.lock for peer in process.peers) for process in seen)
    notes = [] if rows or kinds or waits else [_why_nothing(seen)]
    notes += [_BY_FRAMES] if by_frames else []
    peers = tuple(
        PeerRow(process.index, process.label, _thread_id(process.threads, peer.thread), peer.file, _other_end(peer))
        for process in seen
        for peer in process.peers
    )
    return LockReport(
        rows=tuple(rows),
        stories=(*suspicion, *_stories(locks)),
        peers=peers,
        ownerless=tuple(kinds.most_common()),
        notes=tuple(notes),
        suspected=bool(suspicion),
    )


def _suspicion(diagnosis: Diagnosis, waiting: Collection[int]) -> Tuple[str, ...]:
    """What the verdict says, where it takes the waits that frames alone show for a deadlock."""
    verdict = diagnosis.verdict
    suspected = verdict.cause in _DEADLOCKS and any(index in waiting for index in verdict.culprits)
    return (verdict.summary,) if suspected else ()


def _why_nothing(seen: Sequence[RankSnapshot]) -> str:
    if not seen:
        return "No process was read."
    by_frames = ", as far as frames tell" if any(is_text(one.source) for one in seen) else ""
    return f"No thread was seen in a wait for a lock{by_frames}."


def _thread_id(threads: Sequence[ThreadStack], lwp: int) -> str:
    return next((one.id for one in threads if one.lwp == lwp), str(lwp))


def _ownerless(wait: LockWait) -> bool:
    return wait.kind in NO_OWNER or wait.kind == "futex"


def _row(locks: _Locks, party: Party, wait: LockWait) -> LockRow:
    assert party.thread is not None
    owner = locks.owner(party, wait)
    return LockRow(
        process=party.index,
        label=party.process.label,
        thread=party.thread.id,
        name=party.thread.name or "",
        wait=wait,
        where=taken_in(party),
        owner=_name(party, owner, wait),
        owner_does=_does(owner, locks) if owner is not None else _why_unknown(wait),
        circle=locks.circle.get(locks.node(party)),
    )


def _name(party: Party, owner: Optional[Party], wait: LockWait) -> str:
    """`thread 12 (updater) of rank 2`."""
    if owner is None or owner.thread is None:
        return f"thread {wait.owner}" if isinstance(wait.owner, int) else ""
    name = f" ({owner.thread.name})" if owner.thread.name else ""
    return f"thread {owner.thread.id}{name}" + (f" of {owner.process.label}" if owner.index != party.index else "")


def _does(owner: Party, locks: _Locks) -> str:
    node = locks.node(owner)
    if node not in locks.of:
        return f"is in {where(owner)}"
    return "waits too" if node in locks.circle else f"waits for {KINDS[locks.of[node].kind]}"


def _why_unknown(wait: LockWait) -> str:
    if not isinstance(wait.owner, int):
        return wait.owner.reason if wait.gone else f"unknown: {wait.owner.reason}"
    if wait.gone and wait.owner_process is not None:
        return f"is a thread of the parent, pid {wait.owner_process}: fork did not copy it"
    return "has ended, or was left in the parent by a fork" if wait.gone else "was not seen"


def _stories(locks: _Locks) -> Tuple[str, ...]:
    """Circles, then the longest chains that no longer chain contains."""
    wanted = {locks.node(party) for party, _ in locks.waits}
    lines = [
        f"Deadlock in {turn[0].source.owner}: {chain_text(turn)}. {_stuck(turn)}."
        for turn in locks.circles
        if any(edge.source.id in wanted for edge in turn)
    ]
    waited_for = {edge.target.id for edges in locks.graph.edges.values() for edge in edges}
    heads: Dict[str, List[Party]] = {}  # by the thread they wait for
    owned = [(party, wait) for party, wait in locks.waits if not _ownerless(wait)]
    for party, wait in owned:
        owner = locks.owner(party, wait)
        if owner is not None and locks.node(party) not in waited_for:
            heads.setdefault(locks.node(owner), []).append(party)
    chains = [(way, some) for way, some in ((_way(locks, some[0]), some) for some in heads.values()) if way]
    chains.sort(key=lambda one: (len(one[0]), len(one[1])), reverse=True)
    gone = [party for party, wait in owned if wait.gone and locks.node(party) not in locks.circle]
    lines += [f"{_label(party)}: {_chain_sentence(locks, _way(locks, party)[:2])}." for party in gone]
    lines += [
        f"{_label(some[0])}: {_chain_sentence(locks, way)}{_also(len(some) - 1)}."
        for way, some in chains[:_MOST_CHAINS]
    ]
    return tuple(lines[: 2 * _MOST_CHAINS])


def _stuck(turn: Sequence[Edge]) -> str:
    threads = {edge.source.id for edge in turn if edge.source.kind in ("rank", "thread")}
    return {1: "It never proceeds", 2: "Neither can proceed"}.get(len(threads), "None of them can proceed")


def _way(locks: _Locks, party: Party) -> Tuple[Edge, ...]:
    return walk(locks.graph, locks.drawing.of(party), 2 * len(locks.of))


def _also(others: int) -> str:
    """How many more threads the first of a chain stands for."""
    return f". {others} more {'threads wait' if others > 1 else 'thread waits'} like the first" if others else ""


def _label(party: Party) -> str:
    return start(party.process.label)


def _chain_sentence(locks: _Locks, way: Sequence[Edge]) -> str:
    """A chain up to where it enters a circle, or to a thread that waits for no other."""
    entry = next((number for number, edge in enumerate(way) if edge.source.id in locks.circle), None)
    if entry is not None:
        return f"{chain_text(way[:entry])}, which is part of the deadlock"
    return chain_with_end(way, locks.drawing.parties)


def _other_end(peer: Peer) -> str:
    """`pid 4711 (tokenizer, stopped)`, `held by pid 4711 (tokenizer)`, `no process has it open`, `unknown: ...`."""
    if isinstance(peer.processes, Missing):
        return f"unknown: {peer.processes.reason}"
    if not peer.processes and peer.lock:
        return "no process holds it"
    if not peer.processes:
        return "no process has it open"
    names = [
        f"pid {pid} ({name}{', stopped' if state == _STOPPED else ''})"
        for pid, name, state in list(zip(peer.processes, peer.names, peer.states))[:_MOST_PEERS]
    ]
    left = len(peer.processes) - len(names)
    return "held by " * peer.lock + ", ".join(names) + (f" and {left} more" if left else "")
