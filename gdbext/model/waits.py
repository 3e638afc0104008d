"""The wait-for graph of a job: who waits for what, who has to act before that comes, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from gdbext.model.evidence import Evidence

NODES = {
    "rank": "a process of the job, by the thread that does its work",
    "thread": "another thread of a rank",
    "lock": "a lock that one thread at a time holds",
    "condition": "a condition, semaphore or barrier: no owner; any thread may wake the waiter",
    "device": "the GPU of a rank, its streams and its launch queue",
    "collective": "an operation that all members of a communicator must reach, or the other side of a message",
    "rendezvous": "the set-up of a communicator: all members must join",
    "communicator": "a communicator that is torn down",
    "object": "an object, a pool or a process that is being ended",
    "queue": "a queue of messages between processes or threads",
    "peer": "a pipe, socket or file descriptor and who has its other end",
    "process": "a process that is not a rank of the job",
    "file": "a file or file system",
    "driver": "the kernel's GPU driver",
    "unknown": "an object that no frame or memory names",
}
"""Kinds of nodes."""

STRENGTHS = {
    "assumed": "usual in most jobs; nothing observed here confirms it",
    "inferred": "the observed pattern is typical of it",
    "named": "a public call or an argument on the stack says it",
    "proven": "memory or a counter of the kernel shows it",
}
"""How sure an edge is, the weakest first."""

STATES = {
    "dead": "gone, dying, or never started",
    "stopped": "stopped by a signal",
    "idle": "waits for work to arrive",
    "progressing": "works, or moved between two samples",
    "spinning": "runs at one place for a long time while others wait for it",
    "faulted": "the hardware, the driver or a check reported an error for this rank",
    "external": "depends on something outside the inspected processes: a file, a timer, another program",
    "unread": "gdbext could not read it, or recognises no frame of it",
}
"""What a node is in at which the waiting ends."""

_SHOWN_AS = {"condvar-idle": "wait-or-poll"}
"""Kinds of waits in words for people, where the label of `--json` says more than such a wait shows."""

JOINS = "condvar-idle"
"""The kind of an edge to a thread whose end another one waits for: the call sleeps as a wait for a condition does."""

ALL, ANY = "all", "any"
"""A wait needs all that it points to (a lock's holder, every member), or any one of them (a queue, a condition)."""


def shown_kind(kind: str) -> str:
    """`wait-or-poll` for `condvar-idle`: a kind of wait, as people read it."""
    return _SHOWN_AS.get(kind, kind)


@dataclass(frozen=True)
class Node:
    """`id` is unique in one graph, `label` is for people."""

    id: str
    kind: str  # a key of `NODES`
    label: str
    process: Optional[int] = None
    thread: Optional[str] = None
    pid: Optional[int] = None
    state: Optional[str] = None  # a key of `STATES`, where it is an end
    owner: str = ""  # the process of a thread in words
    sentence: bool = False  # the label says all: what the edge that leads here means, or who is behind it

    @property
    def is_remark(self) -> bool:
        """Whether it stands for a process that is not there: `no other process has it open`."""
        return self.kind == "process" and self.pid is None


@dataclass(frozen=True)
class Edge:
    """`source` goes on when `target` has acted."""

    source: Node
    target: Node
    kind: str  # a wait of knowledge/labels.py, or a link of knowledge/causes/wait_kinds.py
    strength: str  # a key of `STRENGTHS`
    facts: Tuple[Evidence, ...] = ()
    needs: str = ALL


@dataclass(frozen=True)
class WaitGraph:
    """All nodes by id, and the edges that leave each of them."""

    nodes: Mapping[str, Node]
    edges: Mapping[str, Tuple[Edge, ...]]

    def after(self, node: str) -> Tuple[Edge, ...]:
        """What a node waits for."""
        return self.edges.get(node, ())

    def by(self, edge: Edge) -> WaitGraph:
        """The same where whoever has this edge has no other one."""
        return WaitGraph(self.nodes, {**self.edges, edge.source.id: (edge,)})


@dataclass(frozen=True)
class Hypothesis:
    """One way to explain why the ranks wait."""

    row: str  # id of a row of knowledge/causes/wait_causes.py, or what said it
    cause: str  # label of knowledge/labels.py
    confidence: str
    roots: Tuple[Node, ...]  # where the waiting ends: equal ends, or the nodes of a circle
    chain: Tuple[Edge, ...]  # from a rank that waits to a root
    blamed: Tuple[Node, ...]
    explained: Tuple[int, ...]  # process indexes
    unexplained: Tuple[int, ...]
    weakest: str  # the weakest edge of the chain
    circle: bool = False
    absent: Tuple[int, ...] = ()  # rank numbers without a process that are to blame
    contradictions: Tuple[str, ...] = ()
    share: float = 1.0  # of the stuck ranks that it explains
    weakest_edge: Optional[Edge] = None
    limits: Tuple[str, ...] = ()  # keys of `LIMITS` in model/considered_hypotheses.py: what keeps its confidence down
    source: str = "graph"  # a key of `SOURCES` in model/considered_hypotheses.py

    @property
    def culprits(self) -> Tuple[int, ...]:
        """Process indexes of those to blame."""
        return tuple(sorted({one.process for one in self.blamed if one.process is not None}))
