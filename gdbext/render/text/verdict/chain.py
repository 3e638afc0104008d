"""The wait chain as one line of text."""

from __future__ import annotations

from typing import List, Optional, Sequence, Set

from gdbext.model.job import ONLY
from gdbext.model.waits import Edge, Node
from gdbext.render.safe_text import clean, shorten
from gdbext.render.style import Style

MOST = 12
"""Nodes that are printed; of a longer chain the middle is left out."""
_LONGEST_LABEL = 60
_END_KINDS = ("dead", "stopped", "idle", "spinning", "faulted")
"""States worth a word: the others are what most waits end in."""


def chain_text(chain: Sequence[Edge], style: Style) -> str:
    """`ranks 0,2-3 → all_reduce → rank 1 → mutex 0x.. → thread 7 loader (holds it) → pid 880 (tokenizer)`."""
    nodes = chain_steps(chain, style)
    if len(nodes) > MOST:
        nodes = [*nodes[: MOST // 2], style.ellipsis, *nodes[-MOST // 2 :]]
    return f" {style.arrow} ".join(nodes)


def chain_steps(chain: Sequence[Edge], style: Style) -> List[str]:
    """Each of its nodes in words."""
    if not chain:
        return []
    apart = {edge.target.process for edge in chain if edge.target.kind == "thread"}
    nodes = [_label(chain[0].source, apart, style)]
    seen = {chain[0].source.id}
    for edge in chain:
        label = _label(edge.target, apart, style)
        notes = ["holds it"] * (edge.kind == "holds") + ["cycle"] * (edge.target.id in seen)
        if notes:
            label += f" ({', '.join(notes)})"
        seen.add(edge.target.id)
        nodes.append(label)
    return nodes


def _label(node: Node, apart: Set[Optional[int]], style: Style) -> str:
    """`apart`: processes of which several threads are told."""
    label = shorten(clean(node.label, style), _LONGEST_LABEL, style)
    if node.kind == "rank" and node.process in apart and node.thread is not None:
        owner = "" if label == ONLY else f"{label} "
        label = f"{owner}thread {clean(node.thread, style)}"
    told = node.state in _END_KINDS and not node.is_remark and not node.id.startswith("absent:")
    state = node.state if told else None
    return f"{label}, {state}" if state else label
