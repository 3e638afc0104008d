"""The wait chain, and the chains of other explanations, as a graph for Graphviz: `gdbext ... --format dot | dot -Tsvg`.

Every label is a quoted string in which backslashes and quotes are escaped, so nothing in it is syntax or an escape of
labels.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from gdbext.model.look_origin import Origin
from gdbext.model.verdict import Diagnosis
from gdbext.model.waits import Edge, Node, shown_kind
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.safe_text import clean, shorten
from gdbext.render.style import Style

MOST = 500
"""Edges that are drawn."""
_STYLE = Style()
_LONGEST = 80
_SHAPES = {"rank": "box", "thread": "box", "process": "box", "lock": "octagon", "collective": "ellipse"}


def graph(diagnosis: Diagnosis, _origin: Optional[Origin]) -> List[str]:
    """Edges of the answer are whole, those of other explanations dashed; suspects are red and have two borders."""
    verdict = diagnosis.verdict
    edges: Dict[Tuple[str, str], Tuple[Edge, bool]] = {}
    chains = [(verdict.chain, True), *((one.chain, False) for one in verdict.alternatives)]
    for chain, certain in chains:
        for edge in chain[:MOST]:
            edges.setdefault((edge.source.id, edge.target.id), (edge, certain))
    nodes = {node.id: node for edge, _ in edges.values() for node in (edge.source, edge.target)}
    names = {id: f"n{number}" for number, id in enumerate(nodes)}
    title = cause_and_confidence(verdict.cause, verdict.confidence)
    lines = ["digraph waits {", f"  label={_quoted(title)};", "  rankdir=LR;", '  node [fontname="sans-serif"];']
    lines += [f"  {names[id]} [{_node(node, diagnosis)}];" for id, node in nodes.items()]
    if not nodes:
        lines.append('  none [shape=plaintext, label="no waiting rank was found"];')
    for (source, target), (edge, certain) in list(edges.items())[:MOST]:
        word = _quoted("held by" if edge.kind == "holds" else shown_kind(edge.kind))
        look = "" if certain else ", style=dashed"
        lines.append(f"  {names[source]} -> {names[target]} [label={word}{look}];")
    return [*lines, "}"]


def _node(node: Node, diagnosis: Diagnosis) -> str:
    told = "" if node.is_remark or node.state == "external" else node.state
    shape = "plaintext" if node.is_remark else _SHAPES.get(node.kind, "ellipse")
    found = f"label={_quoted(', '.join(filter(None, (node.label, told))))}, shape={shape}"
    suspected = node.process in diagnosis.verdict.culprits and node.kind in ("rank", "thread")
    return f"{found}, color=red, peripheries=2" if suspected else found


def _quoted(text: str) -> str:
    text = shorten(clean(text, _STYLE), _LONGEST, _STYLE).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
