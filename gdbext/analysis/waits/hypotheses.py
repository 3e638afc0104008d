"""What could explain that the ranks wait: each circle and kind of end of the graph, by what it explains."""

from __future__ import annotations

from itertools import islice
from typing import Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party
from gdbext.analysis.waits.cycles import (
    Circle,
    find_circles,
    paths_to_roots,
    reversed_edges,
    upstream_kinds,
    way_around,
)
from gdbext.analysis.waits.drawing import rank_id
from gdbext.analysis.waits.facts_beside_stacks import Fact
from gdbext.knowledge.causes.wait_causes import CAUSES, CauseRow
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.knowledge.runtimes.untimed_calls import TO_ONE
from gdbext.model.waits import STRENGTHS, Edge, Hypothesis, Node, WaitGraph

_ORDER = tuple(STRENGTHS)
_OF_STRENGTH = {"assumed": "low", "inferred": "medium", "named": "high", "proven": "high"}
_STUCK = (*COMMUNICATION, "implicit", "init", "teardown", "lock")
_MAY_GO_ON = ("progressing", "external", "unread")
_SUBJECTS = ("rank", "thread")
_ROWS = {row.id: row for row in CAUSES}
_MOST_TURNS = 16  # ways around one circle that are compared

_Ways = Dict[str, Edge]


class _End(NamedTuple):
    """Ends that mean the same, and how ranks get there."""

    nodes: List[Node]
    ways: _Ways


def stuck_ranks(view: JobView) -> Tuple[int, ...]:
    """Process indexes of the ranks that wait for others."""
    return tuple(sorted({party.index for party in view.parties if party.group in _STUCK}))


class Finder:
    """Reads hypotheses off a graph."""

    def __init__(self, view: JobView, graph: WaitGraph) -> None:
        self._graph = graph
        self._before = reversed_edges(graph)
        self._everybody = {party.index for party in view.parties}
        self._stuck = set(stuck_ranks(view))
        self._moved = frozenset(view.moved)
        self._operations = {party.index: party.judged.collective for party in view.parties}
        self._kinds = {party.index: party.kind for party in view.parties}
        self._threads = view.threads_as_ranks

    # --- circles ---

    def of_circles(self) -> Iterator[Hypothesis]:
        groups: Dict[Tuple[str, int], List[Circle]] = {}
        for circle in find_circles(self._graph):
            row = self._row_of_circle(circle)
            if row is not None:  # one that is sure makes no other one surer
                groups.setdefault((row.id, self._sure(circle)[0]), []).append(circle)
        for (name, _), some in groups.items():
            yield self._circle(_ROWS[name], max(some, key=self._sure), [node for one in some for node in one])

    def _sure(self, circle: Circle) -> Tuple[int, int]:
        """The weakest edge inside of it, and how long it is."""
        inside = set(circle)
        edges = (edge for one in circle for edge in self._graph.after(one) if edge.target.id in inside)
        return min(_ORDER.index(edge.strength) for edge in edges), len(circle)

    def _row_of_circle(self, circle: Circle) -> Optional[CauseRow]:
        inside = set(circle)
        kinds = {self._graph.nodes[one].kind for one in circle}
        via = {edge.kind for one in circle for edge in self._graph.after(one) if edge.target.id in inside}
        fitting = (row for row in CAUSES if row.circle and kinds.issuperset(row.resources))
        return next((row for row in fitting if not row.via or not via.isdisjoint(row.via)), None)

    def _circle(self, row: CauseRow, circle: Circle, nodes: Sequence[str]) -> Hypothesis:
        ways = paths_to_roots(self._before, nodes)
        inside = [self._graph.nodes[one] for one in nodes]
        blamed = self._fewer(inside) if row.few else [one for one in inside if one.kind in _SUBJECTS]
        if row.sought:
            found = {edge.target.id for one in nodes for edge in self._graph.after(one) if edge.kind in row.via}
            blamed = [one for one in blamed if one.id in found]
        named = {one.id for one in blamed}
        turn = self._turn(row, circle, next((one for one in circle if one in named), circle[0]))
        begin = next((number for number, edge in enumerate(turn) if edge.source.id in named), 0)
        turn = (*turn[begin:], *turn[:begin])
        first = turn[0].source.id
        walked = _way(ways, self._victim(ways, blamed), set(circle))
        entry = walked[-1].target.id if walked else first
        chain = _once((*walked, *self._until(circle, entry, first), *turn))
        # What holds up the others is the circle, however sure it is how they come to wait for it.
        return self._made(row, inside, chain, blamed, {*self._reached(ways), *_processes(inside)}, turn)

    def _turn(self, row: CauseRow, circle: Circle, first: str) -> Tuple[Edge, ...]:
        """A way around, as sure as what the row says: where several meet, one by what the row is about."""
        turn = way_around(self._graph, circle, first)
        if any(_is_about(row, edge) for edge in turn):
            return turn
        inside = set(circle)
        own = (edge for one in circle for edge in self._graph.after(one) if edge.target.id in inside)
        some = islice((edge for edge in own if _is_about(row, edge)), _MOST_TURNS)
        turns = [way_around(self._graph.by(edge), circle, edge.source.id) for edge in some]
        return max(turns, key=lambda one: (min(_ORDER.index(edge.strength) for edge in one), -len(one)))

    def _until(self, circle: Circle, entry: str, first: str) -> Tuple[Edge, ...]:
        """From where a chain enters a circle to the node that is told first."""
        if entry == first:
            return ()
        ways = paths_to_roots(self._before, [first])
        return _way({one: ways[one] for one in circle if one in ways}, entry, {first})

    def _fewer(self, nodes: Sequence[Node]) -> List[Node]:
        """All but the largest collective's ranks, unless these are half of them: then everybody. In an operation that
        one rank collects, only that one has to wait: who is past it may have done its part."""
        sides: Dict[str, List[Node]] = {}
        for one in nodes:
            if one.kind in _SUBJECTS:
                target = next((edge.target.id for edge in self._graph.after(one.id)), "")
                sides.setdefault(target, []).append(one)
        *smaller, largest = sorted(sides.values(), key=len)
        if not smaller or (
            all(map(self._collects, largest)) and not any(self._collects(one) for side in smaller for one in side)
        ):
            return largest
        odd = [one for side in smaller for one in side]
        return odd if len(odd) < len(largest) else [*odd, *largest]

    def _collects(self, node: Node) -> bool:
        return node.process is not None and (self._operations.get(node.process) or "") in TO_ONE

    # --- ends ---

    def of_ends(self) -> Iterator[Hypothesis]:
        above = upstream_kinds(self._graph)
        alike: Dict[Tuple[object, ...], List[Node]] = {}
        for node in self._graph.nodes.values():
            if node.state is not None and not self._graph.after(node.id):
                key = (node.kind, node.state, self._via(node), above.get(node.id, frozenset()))
                alike.setdefault(key, []).append(node)
        groups: Dict[str, _End] = {}
        for (_, _, via, kinds), nodes in alike.items():
            assert isinstance(via, frozenset) and isinstance(kinds, frozenset)
            ways = paths_to_roots(self._before, (one.id for one in nodes))
            row = self._row_of_end(nodes, via, kinds, ways)
            if row is not None:
                group = groups.setdefault(row.id, _End([], {}))
                group.nodes.extend(nodes)
                group.ways.update({key: way for key, way in ways.items() if key not in group.ways})
        for name, end in groups.items():
            yield self._end(_ROWS[name], end)

    def _via(self, node: Node) -> FrozenSet[str]:
        """How one waits there: kinds of the last edges, and a rank's own wait."""
        own = [self._kinds.get(node.process, "")] if node.kind == "rank" and node.process is not None else []
        return frozenset((*own, *(edge.kind for edge in self._before.get(node.id, ()))))

    def _row_of_end(
        self, nodes: Sequence[Node], via: FrozenSet[str], kinds: FrozenSet[str], ways: _Ways
    ) -> Optional[CauseRow]:
        blamed = {one.process for one in self._nearest(nodes)}
        reached = self._reached(ways)
        everybody = self._everybody <= {*reached, *blamed}
        others = self._threads or bool(self._stuck.intersection(reached) - blamed)
        for row in CAUSES:
            if row.circle or not kinds.issuperset(row.resources) or (row.via and via.isdisjoint(row.via)):
                continue
            if (row.ends and nodes[0].kind not in row.ends) or (row.states and nodes[0].state not in row.states):
                continue
            if row.through and not any(edge.kind in row.through for edge in ways.values()):
                continue
            if (row.everybody and not everybody) or (row.peers and not others):
                continue
            return row
        return None

    def _end(self, row: CauseRow, end: _End) -> Hypothesis:
        nearest = self._nearest(end.nodes)
        if row.through:
            nearest = [edge.source for edge in end.ways.values() if edge.kind in row.through]
        blamed = nearest if row.blames else [one for one in end.nodes if one.kind == "rank"]
        victim = blamed[0].id if row.through else self._victim(end.ways, blamed)
        chain = _way(end.ways, victim, {one.id for one in end.nodes})
        weighed = _up_to(chain, {one.process for one in blamed}) if row.resources else chain
        weighed = (*weighed, *self._own(row, end, blamed))
        return self._made(row, end.nodes, chain, blamed, {*self._reached(end.ways), *_processes(nearest)}, weighed)

    def _own(self, row: CauseRow, end: _End, blamed: Sequence[Node]) -> Iterator[Edge]:
        """For each culprit the surest edge that leads to it: an answer is as sure as its least sure culprit."""
        for one in blamed:
            own = self._before.get(one.id, ()) if row.resources else [end.ways[one.id]] if one.id in end.ways else ()
            if own:
                yield max(own, key=lambda edge: _ORDER.index(edge.strength))

    def _nearest(self, nodes: Iterable[Node]) -> List[Node]:
        """The ranks and threads nearest to the ends: themselves, or those that wait there."""
        found: List[Node] = []
        layer = list(nodes)
        seen = {one.id for one in layer}
        while layer:
            following: List[Node] = []
            for one in layer:
                if one.kind == "rank" or (one.kind == "thread" and one.process is not None):
                    found.append(one)
                    continue
                for edge in self._before.get(one.id, ()):
                    if edge.source.id not in seen:
                        seen.add(edge.source.id)
                        following.append(edge.source)
            layer = following
        return found

    # --- facts ---

    def of_facts(self, facts: Sequence[Fact]) -> Iterator[Hypothesis]:
        """What logs, witnesses and counters say. One that names nobody speaks of all that wait."""
        for fact in facts:
            said = fact.said
            blamed = [*self._nodes_of(said.culprits), *(self._graph.nodes[f"absent:{one}"] for one in said.absent)]
            ways = paths_to_roots(self._before, (one.id for one in fact.roots))
            named = {party.index for party in (*said.culprits, *said.victims)}
            explained = {*self._reached(ways), *named} if said.culprits or said.absent else self._stuck | named
            chain = _way(ways, self._victim(ways, blamed), {one.id for one in fact.roots})
            edge = next((one for one in chain if one.kind == "said"), None)
            yield Hypothesis(
                row=fact.row,
                cause=said.cause,
                confidence=said.confidence,
                roots=fact.roots,
                chain=chain,
                blamed=tuple(blamed),
                explained=tuple(sorted(explained)),
                unexplained=tuple(sorted(self._stuck - explained)),
                weakest=fact.strength,
                absent=said.absent,
                contradictions=self._of_log(blamed, said.victims) if fact.source == "logs" else (),
                share=self._share(explained) if self._stuck else 1.0,
                weakest_edge=edge,
                source=fact.source,
            )

    def _nodes_of(self, parties: Iterable[Party]) -> List[Node]:
        return [self._graph.nodes[key] for key in map(rank_id, parties) if key in self._graph.nodes]

    def _of_log(self, blamed: Sequence[Node], victims: Iterable[Party]) -> Tuple[str, ...]:
        """Ranks that a line names as missing, and that stand where the others wait for them: the line is older."""
        joined = {edge.target.id for one in self._nodes_of(victims) for edge in self._graph.after(one.id)}
        labels = {one.label for one in blamed for edge in self._graph.after(one.id) if edge.target.id in joined}
        return tuple(f"{label} has reached what the others wait for" for label in sorted(labels))

    # --- all ---

    def _share(self, explained: Set[int]) -> float:
        """Of the stuck ranks; where none is stuck, whether anything is explained."""
        return len(self._stuck & explained) / len(self._stuck) if self._stuck else float(bool(explained))

    def _reached(self, ways: _Ways) -> Set[int]:
        return set(_processes(self._graph.nodes[one] for one in ways))

    def _victim(self, ways: _Ways, blamed: Sequence[Node]) -> Optional[str]:
        """A rank that waits, and is not to blame: where the chain begins; else one that is."""
        ranks = [self._graph.nodes[one] for one in ways if self._graph.nodes[one].kind == "rank"]
        named = {one.id for one in blamed}
        others = [one for one in ranks if one.id not in named] or ranks
        first = min(others, key=lambda one: (one.process is None, one.process or 0), default=None)
        return first.id if first is not None else None

    def _made(
        self,
        row: CauseRow,
        roots: Sequence[Node],
        chain: Tuple[Edge, ...],
        blamed: Sequence[Node],
        explained: Set[int],
        weighed: Sequence[Edge],
    ) -> Hypothesis:
        edge = min(weighed, key=lambda one: _ORDER.index(one.strength), default=None)
        weakest = edge.strength if edge is not None else "named"
        against = self._against(blamed)
        at_most = {weakest: _OF_STRENGTH[weakest], "row": row.most}
        if against:
            at_most["contradicted"] = "medium"
        left = self._stuck - explained
        if left and weakest != "proven":
            at_most["unexplained"] = "medium" if len(left) < len(explained) else "low"
        confidence = min(at_most.values(), key=CONFIDENCE.index)
        return Hypothesis(
            row=row.id,
            cause=row.cause,
            confidence=confidence,
            roots=tuple(roots),
            chain=chain,
            blamed=tuple(blamed),
            explained=tuple(sorted(explained)),
            unexplained=tuple(sorted(left)),
            weakest=weakest,
            circle=row.circle,
            absent=tuple(int(one.id.partition(":")[2]) for one in roots if one.id.startswith("absent:")),
            contradictions=against,
            share=self._share(explained),
            weakest_edge=edge,
            limits=tuple(name for name, most in at_most.items() if most == confidence != CONFIDENCE[-1]),
        )

    def _against(self, blamed: Sequence[Node]) -> Tuple[str, ...]:
        """The culprits by standstill that were seen to move. One that is elsewhere may well be at work."""
        standing = (one for one in blamed if one.kind == "rank" and one.state not in _MAY_GO_ON)
        went = {one.label for one in standing if one.process in self._moved}
        return tuple(f"{label} moved between two samples" for label in sorted(went))


def _is_about(row: CauseRow, edge: Edge) -> bool:
    """Whether an edge is one that makes a circle what the row says it is."""
    return edge.kind in row.via if row.via else edge.source.kind == row.resources[0]


def _processes(nodes: Iterable[Node]) -> Tuple[int, ...]:
    return tuple(sorted({one.process for one in nodes if one.kind in _SUBJECTS and one.process is not None}))


def _once(chain: Sequence[Edge]) -> Tuple[Edge, ...]:
    """The chain up to where it first comes back to a node."""
    seen: Set[str] = set()
    for number, edge in enumerate(chain):
        seen.add(edge.source.id)
        if edge.target.id in seen:
            return tuple(chain[: number + 1])
    return tuple(chain)


def _up_to(chain: Tuple[Edge, ...], processes: Set[Optional[int]]) -> Tuple[Edge, ...]:
    """The chain up to the rank that others wait for: why it does not come is another question."""
    for number, edge in enumerate(chain):
        if edge.target.kind == "rank" and edge.target.process in processes:
            return chain[: number + 1]
    return chain


def _way(ways: _Ways, first: Optional[str], ends: Set[str]) -> Tuple[Edge, ...]:
    """The edges from a node to one of the ends."""
    edges: List[Edge] = []
    node = first
    while node is not None and node not in ends and node in ways:
        edges.append(ways[node])
        node = ways[node].target.id
    return tuple(edges)
