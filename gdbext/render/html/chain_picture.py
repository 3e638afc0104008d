"""The wait chain as a picture: a box for each node from top to bottom, and on a circle the way back.

Geometry alone, in units of the picture; the template draws it. Text is cut to fit, for nothing here measures fonts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from gdbext.model.verdict import Verdict
from gdbext.model.waits import STATES, STRENGTHS, Edge, Node, shown_kind
from gdbext.render.html.page_words import one_line
from gdbext.render.text.verdict.chain import MOST

WIDTH, BOX, HEIGHT, GAP = 440, 372, 50, 44
_X, _CORNER = 8, 34
_LABEL, _DETAIL, _WORDS = 44, 52, 44  # characters that fit

_KINDS = {"rank": "", "thread": "", "peer": "pipe or socket", "process": "process outside the job"}
"""Kinds of nodes in other words than their own; "" where the label says it."""

_LINKS = {
    "holds": "held by",
    "member": "not there yet:",
    "runs": "busy with",
    "other end": "other end open in",
    "own wake-up": "woken up by nobody:",
    "ended": "held by an ended thread:",
    "forked": "held at the fork by",
    "called elsewhere": "in another operation:",
    "set up elsewhere": "in a collective instead:",
    "seeks key": "waits for a key:",
    "other communicator": "in another communicator:",
    "blocked launch": "launches block:",
    "left": "no other thread is left:",
}
"""Links in words; of a wait its kind is told."""


@dataclass(frozen=True)
class Box:
    """A node. `kind` chooses its shape, `role` its colour, `target` is where a click leads."""

    y: int
    kind: str
    label: str
    detail: str
    role: str
    words: str
    target: str = ""


@dataclass(frozen=True)
class Arrow:
    """An edge, from y to y. Strength: how the line is drawn."""

    y1: int
    y2: int
    strength: str
    label: str
    words: str
    target: str = ""


@dataclass(frozen=True)
class Picture:
    """`back`: from which box to which a circle goes."""

    height: int
    boxes: Tuple[Box, ...]
    arrows: Tuple[Arrow, ...]
    strengths: Tuple[Tuple[str, str], ...]
    back: Optional[Tuple[int, int]] = None
    hidden: int = 0
    width: int = WIDTH
    box: int = BOX
    row: int = HEIGHT
    x: int = _X
    corner: int = _CORNER


def picture(verdict: Verdict, places: Mapping[Tuple[int, Optional[str]], str]) -> Optional[Picture]:
    """None where there is no chain. `places`: of the threads that the page shows, by process and id."""
    chain = verdict.chain
    if not chain:
        return None
    nodes = [chain[0].source, *(edge.target for edge in chain)]
    seen = {node.id: number for number, node in reversed(list(enumerate(nodes)))}
    circle = seen[nodes[-1].id]
    returns = circle < len(nodes) - 1
    if returns:
        nodes.pop()
    hidden = max(len(nodes) - MOST, 0)
    shown = _without_middle(len(nodes), hidden)
    blamed = _blamed_nodes(nodes, frozenset(verdict.culprits), circle if returns else len(nodes))
    boxes: List[Box] = []
    arrows: List[Arrow] = []
    at: Dict[str, int] = {}
    for position, number in enumerate(shown):
        node, y = nodes[number], 4 + position * (HEIGHT + GAP)
        at[node.id] = y
        boxes.append(_box(node, y, number in blamed, places))
        if position:
            skipped = number - shown[position - 1] - 1
            arrows.append(_arrow(chain[number - 1], y - GAP, y, skipped, places))
    last = boxes[-1].y + HEIGHT
    back = None
    if returns:
        edge = chain[-1]
        y = at.get(edge.target.id, boxes[0].y)
        back = (last - HEIGHT // 2, y + HEIGHT // 2)
        arrows.append(_arrow(edge, last, last + 26, 0, places, "cycle: "))
        last += 22
    used = {edge.strength for edge in chain}
    return Picture(
        height=last + 8,
        boxes=tuple(boxes),
        arrows=tuple(arrows),
        strengths=tuple((name, words) for name, words in STRENGTHS.items() if name in used),
        back=back,
        hidden=hidden,
    )


def _without_middle(number: int, hidden: int) -> List[int]:
    return list(range(number)) if not hidden else [*range(MOST // 2), *range(number - MOST // 2, number)]


def _blamed_nodes(nodes: Sequence[Node], culprits: FrozenSet[int], circle: int) -> FrozenSet[int]:
    """Of a culprit the last node, and those in the circle: threads of one process may wait for each other."""
    last = {node.process: number for number, node in enumerate(nodes) if node.kind in ("rank", "thread")}
    return frozenset(
        number
        for number, node in enumerate(nodes)
        if node.kind in ("rank", "thread") and node.process in culprits
        if number >= circle or number == last[node.process]
    )


def _box(node: Node, y: int, blamed: bool, places: Mapping[Tuple[int, Optional[str]], str]) -> Box:
    label = one_line(node.label, _LABEL)
    ended = node.state in ("dead", "stopped", "faulted")
    role = "culprit" if blamed or ended else "waits" if node.kind in ("rank", "thread") else "thing"
    detail = _detail(node)
    detail = " · ".join(filter(None, (_KINDS.get(node.kind, node.kind) if not node.is_remark else "", detail)))
    return Box(
        y=y,
        kind=node.kind,
        label=label,
        detail=one_line(detail, _DETAIL),
        role=role,
        words=", ".join(filter(None, (one_line(node.label), one_line(detail)))),
        target=_place(places, node.process, node.thread),
    )


def _detail(node: Node) -> str:
    several = node.kind == "rank" and bool(node.owner) and node.owner not in node.label
    parts = [f"one of them: {node.owner}" if several else node.owner] if node.owner not in node.label else []
    if node.thread is not None and node.thread not in node.label:
        parts.append(f"thread {node.thread}")
    if node.pid is not None and str(node.pid) not in node.label:
        parts.append(f"pid {node.pid}")
    state = STATES.get(node.state or "", "")
    return " · ".join([*parts, *([f"{node.state}: {state}"] if state and node.state != "external" else [])])


def _arrow(
    edge: Edge, y1: int, y2: int, skipped: int, places: Mapping[Tuple[int, Optional[str]], str], lead: str = ""
) -> Arrow:
    word = _LINKS.get(edge.kind, f"waits in {shown_kind(edge.kind)}")
    label = f"… {skipped} more …" if skipped > 0 else f"{lead}{word}"
    fact = next(iter(edge.facts), None)
    title = f"{shown_kind(edge.kind)}, {edge.strength}: {STRENGTHS.get(edge.strength, '')}"
    return Arrow(
        y1=y1,
        y2=y2,
        strength=edge.strength if edge.strength in STRENGTHS else "assumed",
        label=one_line(label, _WORDS),
        words=one_line(f"{title}; {fact.text}" if fact else title, 400),
        target=_place(places, fact.process, fact.thread) if fact else "",
    )


def _place(places: Mapping[Tuple[int, Optional[str]], str], process: Optional[int], thread: Optional[str]) -> str:
    return "" if process is None else places.get((process, thread)) or places.get((process, None), "")


def endings(chain: Sequence[Edge]) -> List[Tuple[int, Optional[str]]]:
    """Whom the picture is about: processes and threads, in its order."""
    nodes = [chain[0].source, *(edge.target for edge in chain)] if chain else []
    return [(one.process, one.thread) for one in nodes if one.process is not None]
