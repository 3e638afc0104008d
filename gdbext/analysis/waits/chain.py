"""The wait chain of an answer: from the ranks that wait to where the waiting ends, and what else would explain them."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

from gdbext.analysis.communicators.launch_counts import ahead_in
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import Party
from gdbext.analysis.view.wording import who
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges.members import ON_DEVICE, UNNAMED
from gdbext.knowledge.causes.wait_causes import MIN_SHOWN_SHARE
from gdbext.model.waits import Edge, Hypothesis, Node, WaitGraph

LONGEST = 64
"""Edges of a chain; a longer one is cut."""
_MOST_ALTERNATIVES = 3


def with_chain(drawing: Drawing, graph: WaitGraph, found: Sequence[Hypothesis], best: Candidate) -> Candidate:
    """The answer with its chain, where the graph agrees with whom it blames, and with the other hypotheses."""
    if best.cause == "not-a-hang":
        return best
    own = own_of(found, best)
    others = tuple(one for one in found if _is_another(one, own, best))[:_MOST_ALTERNATIVES]
    if own is not None:
        chain = _closed(drawing, _of_all(drawing, graph, own.chain)[:LONGEST])
        return replace(best, chain=chain, root=_root(own), alternatives=others, unexplained=own.unexplained)
    if best.cause != "unknown":
        return replace(best, alternatives=others)
    chain = _of_all(drawing, graph, _longest(drawing, graph, best))
    root = chain[-1].target if chain else None
    return replace(best, chain=chain, root=root, alternatives=others)


def own_of(found: Sequence[Hypothesis], best: Candidate) -> Optional[Hypothesis]:
    """The hypothesis that blames whom the answer blames; of several one with a chain."""
    if best.cause == "not-a-hang":
        return None
    agreeing = [one for one in found if _agrees(one, best)]
    return next((one for one in agreeing if one.chain), agreeing[0] if agreeing else None)


def _is_another(one: Hypothesis, own: Optional[Hypothesis], best: Candidate) -> bool:
    """Whether it is worth to be told beside the answer."""
    is_answer = one.cause == best.cause and (one is own or not (one.culprits or one.absent))
    if is_answer or one.share < MIN_SHOWN_SHARE or one.cause == "unknown":
        return False
    return one.source == "graph" or not (one.source in ("progress", "idle") or _agrees(one, best))


def _agrees(one: Hypothesis, best: Candidate) -> bool:
    """Whether it blames the same ranks, or nobody for the same cause."""
    culprits = tuple(sorted({party.index for party in best.culprits}))
    if one.cause == "not-a-hang" or one.culprits != culprits or set(one.absent) != set(best.absent):
        return False
    return bool(culprits or best.absent) or one.cause == best.cause


def _root(one: Hypothesis) -> Optional[Node]:
    """The end of the chain; of a cycle the culprit."""
    if one.circle and one.blamed:
        named = {node.id for node in one.blamed}
        return next((edge.target for edge in one.chain if edge.target.id in named), one.blamed[0])
    return one.chain[-1].target if one.chain else (one.roots[0] if one.roots else None)


def _of_all(drawing: Drawing, graph: WaitGraph, chain: Tuple[Edge, ...]) -> Tuple[Edge, ...]:
    """The chain with all ranks that wait for the same thing at its beginning: `ranks 0,2-3`."""
    if not chain or chain[0].source.kind != "rank" or chain[0].target.kind not in ("collective", "rendezvous"):
        return chain
    target = chain[0].target.id
    later = {edge.target.id for edge in chain}
    alike: List[Party] = []
    for key, party in drawing.parties.items():
        if key not in later and any(edge.target.id == target for edge in graph.after(key)):
            alike.append(party)
    if len(alike) < 2:
        return chain
    first = replace(chain[0].source, label=who(alike))
    return (replace(chain[0], source=first), *chain[1:])


def _closed(drawing: Drawing, chain: Tuple[Edge, ...]) -> Tuple[Edge, ...]:
    """A circle over two GPUs back to its first rank: what the second one's GPU runs, or what it tears down, is not the
    collective that this rank has not reached, but another one, which the first rank has not reached. NCCL's counters
    can name it."""
    last = chain[-1] if chain else None
    first = chain[0].source if chain else None
    if last is None or first is None or len(chain) < 5 or last.strength == "proven" or last.facts:
        return chain
    here, there = (drawing.parties.get(one.id) for one in (first, chain[-2].source))
    around = last.source.kind in ("device", "communicator") and last.target.id == f"collective:{ON_DEVICE}"
    if not around or here is None or there is None or here is there or chain[-3].source.id != last.target.id:
        return chain
    name = ahead_in(drawing.view, [there], [here])
    other = Node(id=f"collective:{there.index}:{ON_DEVICE}", kind="collective", label=name or UNNAMED)
    strength = "proven" if name else last.strength
    return (
        *chain[:-1],
        replace(last, target=other),
        Edge(source=other, target=first, kind="member", strength=strength),
    )


def _longest(drawing: Drawing, graph: WaitGraph, best: Candidate) -> Tuple[Edge, ...]:
    """Of the ranks of an answer without a cause the one whose wait is known furthest; nothing that is only assumed."""
    parties = (best.culprits or best.victims or drawing.view.parties)[:LONGEST]
    ways = [walk(graph, drawing.rank(party)) for party in parties if not party.judged.idle]
    chain = max(ways, key=len, default=())
    return chain if len(chain) > 1 else ()


def walk(graph: WaitGraph, node: Node, most: int = LONGEST) -> Tuple[Edge, ...]:
    """From a node along what it surely waits for, where that is one thing only; of a circle once around."""
    chain: List[Edge] = []
    seen = {node.id}
    while len(chain) < most:
        edges = graph.after(node.id)
        if len(edges) != 1 or edges[0].strength == "assumed" or edges[0].target.kind == "unknown":
            break
        chain.append(edges[0])
        node = edges[0].target
        if node.id in seen:
            break
        seen.add(node.id)
    return tuple(chain)
