"""The wait-for graph: which thread waits for which, where that ends, and whether it comes back to where it began.

A thread waits for one thread at most, so that chains are walked and circles found in one pass over all waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.view import JobView, Party
from gdbext.analysis.wording import place, start, where
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.model.locks import KINDS, LockWait
from gdbext.model.verdict import Evidence

Node = Tuple[int, int]
"""Index of the process, LWP."""

LONGEST = 8
"""Threads of a chain that are told; longer ones are cut, and say so."""


@dataclass(frozen=True)
class Step:
    """A thread and what it waits for; the last of a chain may wait for nothing that is known."""

    party: Party
    wait: Optional[LockWait]

    @property
    def name(self) -> str:
        """`thread 12 (updater)`."""
        thread = self.party.thread
        assert thread is not None
        return f"thread {thread.id} ({thread.name})" if thread.name else f"thread {thread.id}"


class LockGraph:
    """All waits of a job. `cycles`: threads that wait for one another in a circle, each circle once."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self._index = {one.pid: one.index for one in view.snapshot.processes if one.pid is not None}
        self._waits: Dict[Node, LockWait] = {}
        self._threads: Dict[Node, int] = {}
        for process in view.snapshot.processes:
            self._waits.update(((process.index, wait.thread), wait) for wait in process.locks)
            for position, thread in enumerate(process.threads):
                if thread.lwp is not None:
                    self._threads[process.index, thread.lwp] = position
        self.cycles = self._find_cycles()
        self._in_cycle = {self.node(step) for cycle in self.cycles for step in cycle}

    @property
    def waits(self) -> Sequence[Tuple[Step, Optional[Step]]]:
        """Every wait, and the thread that it is for where that is known."""
        pairs: List[Tuple[Step, Optional[Step]]] = []
        for node in self._waits:
            if node in self._threads:
                after = self._next(node)
                pairs.append((self._step(node), None if after is None else self._step(after)))
        return pairs

    @staticmethod
    def node(step: Step) -> Node:
        """The step's thread."""
        assert step.party.thread is not None
        return step.party.index, step.party.thread.lwp or 0

    def in_cycle(self, step: Step) -> bool:
        return self.node(step) in self._in_cycle

    def chain(self, party: Party) -> Tuple[Step, ...]:
        """The thread, the one it waits for, and so on to one that waits for no other, or once around a circle."""
        if party.thread is None or party.thread.lwp is None:
            return ()
        node: Optional[Node] = (party.index, party.thread.lwp)
        seen: Dict[Node, None] = {}
        while node is not None and node in self._threads and node not in seen:
            seen[node] = None
            node = self._next(node)
        return tuple(map(self._step, seen))

    def held_up_by(self, party: Party) -> Tuple[Step, ...]:
        """A thread that waits for the one of a party, and that one; empty when none does."""
        if party.thread is None:
            return ()
        target = (party.index, party.thread.lwp or 0)
        for node, wait in self._waits.items():
            if wait.owner == target[1] and self._next(node) == target:
                return self._step(node), self._step(target)
        return ()

    def _next(self, node: Node) -> Optional[Node]:
        wait = self._waits.get(node)
        if wait is None or wait.gone or not isinstance(wait.owner, int):
            return None
        index = node[0] if wait.owner_process is None else self._index.get(wait.owner_process)
        after = (index, wait.owner) if index is not None else None
        return after if after in self._threads else None

    def _step(self, node: Node) -> Step:
        process, position = self._view.snapshot.processes[node[0]], self._threads[node]
        judged = self._view.processes[node[0]].threads[position]
        group = WAIT_GROUPS[judged.kind]
        return Step(Party(process, process.threads[position], judged, group, is_thread=True), self._waits.get(node))

    def _find_cycles(self) -> Tuple[Tuple[Step, ...], ...]:
        cycles: List[Tuple[Step, ...]] = []
        done: Dict[Node, int] = {}  # by the walk that came here
        for number, first in enumerate(self._waits):
            path: List[Node] = []
            node: Optional[Node] = first
            while node is not None and node in self._threads and node not in done:
                done[node] = number
                path.append(node)
                node = self._next(node)
            if node is not None and done.get(node) == number and path:
                cycle = path[path.index(node) :]
                if all(self._waits[one].still is not False for one in cycle):
                    cycles.append(tuple(map(self._step, cycle)))
        return tuple(cycles)


_last: List[Tuple[JobView, LockGraph]] = []


def graph_of(view: JobView) -> LockGraph:
    """The graph of a view; several patterns ask for the same one."""
    if not _last or _last[0][0] is not view:
        _last[:] = [(view, LockGraph(view))]
    return _last[0][1]


# --- in words ---


def taken_in(party: Party) -> str:
    """The engine's call that takes the lock; what kind of lock it is needs no second name."""
    engine = party.frame(party.judged.engine_frame)
    return place(engine) if engine is not None else where(party)


def says(step: Step, after: Optional[Step]) -> str:
    """`thread 12 waits for a mutex that thread 31 holds`."""
    wait = step.wait
    if wait is None:
        return f"{step.name} is in {where(step.party)}"
    what = KINDS[wait.kind]
    if after is None:
        return f"{step.name} waits for {what}" + (
            f" that thread {wait.owner} holds" if wait.gone and wait.owner else ""
        )
    if after == step:
        return f"{step.name} waits for {what} that it holds itself"
    elsewhere = f" of {after.party.process.label}" if after.party.index != step.party.index else ""
    owner = f"{after.name}{elsewhere}"
    return f"{step.name} waits for " + (f"the end of {owner}" if wait.kind == "join" else f"{what} that {owner} holds")


def story(chain: Sequence[Step], after: Optional[Step] = None) -> str:
    """A chain in one sentence without its full stop; `after` is whom the last one waits for: in a circle the first."""
    told = list(chain[:LONGEST])
    following: List[Optional[Step]] = [*chain[1 : len(told)], chain[len(told)] if len(told) < len(chain) else after]
    pieces = [says(step, owner) for step, owner in zip(told, following)]
    if len(told) < len(chain):
        pieces.append(f"and so on over {len(chain) - len(told)} more threads")
    return start("; ".join(pieces))


def lowered(text: str) -> str:
    """The text as it stands within a sentence."""
    return text[:1].lower() + text[1:]


def shown(chain: Sequence[Step], after: Optional[Step] = None) -> Tuple[Evidence, ...]:
    """One line of evidence for each thread of a chain: what it waits for, and the call that does so."""
    following: List[Optional[Step]] = [*chain[1:], after]
    return tuple(
        Evidence(_with_place(step, owner), step.party.index, step.party.id or None, step.party.judged.frame)
        for step, owner in list(zip(chain, following))[:LONGEST]
    )


def _with_place(step: Step, after: Optional[Step]) -> str:
    if step.wait is None:
        return says(step, after)
    at = f"; the lock is at {step.wait.address:#x}" if step.wait.address and step.wait.kind != "join" else ""
    return f"{says(step, after)}, in {taken_in(step.party)}{at}"
