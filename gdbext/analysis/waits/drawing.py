"""A graph that is being drawn: nodes of parties and of what they wait for, each once."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Set, Tuple

from gdbext.analysis.view.candidate import shows
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.view.wording import who
from gdbext.analysis.waits.ends import Ends
from gdbext.model.job import RankSnapshot
from gdbext.model.verdict import Evidence
from gdbext.model.waits import ALL, Edge, Node, WaitGraph

_ENDED = ("dead", "stopped", "faulted")


def rank_id(party: Party) -> str:
    """The id of a party's node."""
    return f"rank:{party.index}:{party.id}" if party.is_thread else f"rank:{party.index}"


class Drawing:
    """Nodes and edges so far. A process and the thread of it that decides are one node."""

    def __init__(self, view: JobView, ended: Sequence[str] = _ENDED) -> None:
        self.view = view
        self._ended = ended  # states of ranks that wait for nothing, whatever their stacks show
        self.ends = Ends(view)
        self.deciding: Dict[Tuple[int, int], Party] = {}  # by process and id of its `ThreadStack`
        self.parties: Dict[str, Party] = {}  # by the id of their node
        self.taken: Set[Party] = set()  # whose wait an idiom has told already
        self._nodes: Dict[str, Node] = {}
        self._edges: Dict[str, List[Edge]] = {}
        for party in view.parties:
            self.deciding[party.index, id(party.thread)] = party

    @property
    def graph(self) -> WaitGraph:
        return WaitGraph(dict(self._nodes), {key: tuple(edges) for key, edges in self._edges.items()})

    def waits(self, node: Node) -> bool:
        """Whether it is known what the node waits for."""
        return node.id in self._edges

    def leaving(self, node: Node) -> Sequence[Edge]:
        """What the node waits for."""
        return self._edges.get(node.id, ())

    def add(self, node: Node) -> Node:
        """The node, or the one that has its id already."""
        return self._nodes.setdefault(node.id, node)

    def resource(self, kind: str, key: object, label: str, state: Optional[str] = None, sentence: bool = False) -> Node:
        """What is neither a thread nor a process."""
        return self.add(Node(id=f"{kind}:{key}", kind=kind, label=label, state=state, sentence=sentence))

    def find(self, kind: str, key: object) -> Optional[Node]:
        """Such a thing, if it was drawn."""
        return self._nodes.get(f"{kind}:{key}")

    def join(
        self, source: Node, target: Node, kind: str, strength: str, facts: Sequence[Evidence] = (), needs: str = ALL
    ) -> None:
        """An edge. Who is dead or stopped waits for nothing."""
        if source.kind == "rank" and source.state in self._ended:
            return
        known = self._edges.setdefault(source.id, [])
        known.append(Edge(source=source, target=target, kind=kind, strength=strength, facts=tuple(facts), needs=needs))

    def of(self, party: Party) -> Node:
        """The node of a thread: of the rank, where it is the one that decides."""
        decides = self.deciding.get((party.index, id(party.thread)))
        if decides is not None:
            return self.rank(decides)
        thread = party.thread
        id_ = party.id
        name = thread.name if thread is not None else None
        label = f"thread {id_} {name}" if name and name != id_ else f"thread {id_}"
        state = "progressing" if party.kind == "native-compute" or party.judged.running else "external"
        key = f"thread:{party.index}:{id_}"
        self.parties.setdefault(key, party)
        return self._add_party(party, key, "thread", label, id_, state)

    def rank(self, party: Party) -> Node:
        """The node of a party; a thread that is a rank of its own has one as well."""
        key = rank_id(party)
        self.parties.setdefault(key, party)
        known = self._nodes.get(key)
        if known is not None:
            return known
        label = f"thread {party.id}" if party.is_thread else who([party])
        return self._add_party(party, key, "rank", label, party.id or None, self.ends.state(party))

    def _add_party(
        self, party: Party, key: str, kind: str, label: str, thread: Optional[str], state: Optional[str]
    ) -> Node:
        return self.add(
            Node(
                id=key,
                kind=kind,
                label=label,
                process=party.index,
                thread=thread,
                pid=party.process.pid,
                state=state,
                owner=party.process.label,
            )
        )

    def absent(self, rank: int) -> Node:
        """A rank that has no process."""
        return self.add(Node(id=f"absent:{rank}", kind="rank", label=f"rank {rank} (no process)", state="dead"))

    def process(self, process: RankSnapshot, state: str) -> Node:
        """A process of the job of which no thread decides."""
        node = Node(
            id=f"rank:{process.index}",
            kind="rank",
            label=process.label,
            process=process.index,
            thread=None,
            pid=process.pid,
            state=state,
        )
        return self.add(node)

    def known(self, party: Party) -> Optional[Node]:
        """The node of a thread, if the graph has one."""
        decides = self.deciding.get((party.index, id(party.thread)))
        return self.rank(decides) if decides is not None else self._nodes.get(f"thread:{party.index}:{party.id}")

    def clear(self, node: Node) -> None:
        """Forget what the node waits for: something better is known."""
        self._edges.pop(node.id, None)

    def replace(
        self, source: Node, target: Node, kind: str, strength: str, facts: Sequence[Evidence], needs: str
    ) -> None:
        """The edge in place of what was assumed of this kind of wait."""
        self._edges[source.id] = [one for one in self._edges.get(source.id, ()) if one.kind != kind]
        self.join(source, target, kind, strength, facts, needs)

    @staticmethod
    def fact(party: Party) -> Tuple[Evidence, ...]:
        """The frame that shows a party's wait."""
        return (shows(party),) if party.judged.frame is not None else ()
