"""One HTML file of a look: it loads nothing, and reads without its script as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Optional

from markupsafe import Markup

from gdbext.model.page import Page
from gdbext.model.stack_tree import StackTree
from gdbext.render.html import sections
from gdbext.render.html.chain_picture import picture
from gdbext.render.html.cited_threads import Cited
from gdbext.render.html.kernel_errors import kernel_errors, rows_left_out
from gdbext.render.html.page_data import PageData
from gdbext.render.html.page_file import page_file
from gdbext.render.html.page_words import PLAIN, SENTENCE, one_line
from gdbext.render.html.rank_matrix import matrix
from gdbext.render.html.tree_rows import TreeRows
from gdbext.render.safe_text import clean_line, shorten
from gdbext.render.text.verdict.chain import chain_text
from gdbext.render.text.verdict.considered_hypotheses import considered_lines
from gdbext.render.text.verdict.details import culprit_numbers

_SCRIPTS = ("theme.js", "start.js", "threads.js", "tree.js", "icicle.js")
_FIRST = {"stacks": "stacks", "locks": "locks", "comms": "communicators"}
"""The part that comes first, by the command that was asked."""
_PARTS = {
    "ranks": "Ranks",
    "kernels": "Kernel errors",
    "evidence": "Evidence",
    "stacks": "Stacks",
    "threads": "Threads",
    "samples": "Samples",
    "locks": "Locks",
    "communicators": "Communicators",
    "asked": "Tensors and streams",
    "witnesses": "Other sources",
    "limits": "Limits",
}
"""Parts of the page in their order, and their titles."""


def page_text(page: Page) -> str:
    """The whole file."""
    return page_file("page.html", _SCRIPTS, _context(page))


def _context(page: Page) -> Dict[str, Any]:
    diagnosis, snapshot = page.diagnosis, page.snapshot
    verdict = diagnosis.verdict if diagnosis else None
    data, cited, ranks = PageData(), Cited(page), matrix(page)
    culprits = culprit_numbers(diagnosis) if diagnosis else frozenset()
    tree = TreeRows(diagnosis.tree, culprits, data) if diagnosis and diagnosis.tree else None
    # The page's script knows of the first tree alone: what tasks are counted in is none of its data.
    tasks = _of_tasks(diagnosis.tree) if diagnosis and diagnosis.tree else None
    judged = {one.index: one for one in diagnosis.processes} if diagnosis else {}
    positions = {cell.index: cell.position for node in ranks.nodes for cell in node.cells}
    data.first = verdict.decisive_process if verdict else None
    for process in snapshot.processes if diagnosis else ():
        data.process(process, judged.get(process.index), positions.get(process.index, ""))
    context = {
        "titles": _PARTS,
        "status": sections.status(diagnosis),
        "verdict": verdict,
        "cause": one_line(verdict.cause, 60) if verdict else "",
        "confidence": one_line(verdict.confidence, 20) if verdict else "",
        **_summary(one_line(verdict.summary, SENTENCE) if verdict else ""),
        "decided_by": one_line(verdict.decided_by, 300) if verdict else "",
        "facts": sections.answer_facts(diagnosis) if diagnosis else (),
        "look": sections.look_facts(page),
        "releases": [one_line(text, 300) for text in page.releases[:60]],
        "remedies": [(one_line(one.action, SENTENCE), one_line(one.reason, SENTENCE)) for one in _remedies(page)],
        "others": sections.other_explanations(verdict, snapshot) if verdict else (),
        "chain": picture(verdict, cited.places) if verdict else None,
        "chain_text": chain_text(verdict.chain, PLAIN) if verdict else "",
        "matrix": ranks,
        "places": cited.places,
        "cited": cited,
        "tree": tree,
        "tasks": tasks,
        "folded": _lone_threads(page),
        "lock_rows": sections.lock_rows(page),
        "ownerless": [(one_line(kind), count) for kind, count in (page.locks.ownerless if page.locks else ())],
        "stories": [one_line(text, SENTENCE) for text in (page.locks.stories if page.locks else ())[:24]],
        "lock_notes": [one_line(text, SENTENCE) for text in (page.locks.notes if page.locks else ())[:24]],
        "peers": [
            [one_line(text, 300) for text in (one.label, one.thread, one.file, one.other_end)]
            for one in (page.locks.peers if page.locks else ())[: sections.MOST_ROWS]
        ],
        "groups": sections.group_rows(page),
        "group_notes": sections.group_notes(page),
        "witnesses": sections.witness_rows(snapshot),
        "kernels": kernel_errors(diagnosis),
        "kernels_left_out": rows_left_out(diagnosis),
        "times": sections.sample_times(page),
        "histories": sections.histories(page),
        "asked": [(one_line(one.command), list(map(_line, one.lines[:200]))) for one in page.asked],
        "considered": _considered(page),
        "limits": sections.limits(page),
    }
    return {
        **context,
        "data": Markup(data.text()),  # noqa: S704 - letters that mean something in HTML are escaped there
        "left_out": _left_out(data, tree, tasks),
        "parts": _parts(page, context),
    }


def _summary(text: str) -> Dict[str, str]:
    """The first sentence, and the others."""
    lead, point, rest = text.partition(". ")
    return {"lead": lead + point.strip(), "rest": rest}


def _remedies(page: Page) -> Any:
    return page.diagnosis.verdict.remedies[:12] if page.diagnosis else ()


def _line(text: str) -> str:
    """Of a text that somebody laid out."""
    return shorten(clean_line(text, PLAIN), 400, PLAIN)


def _considered(page: Page) -> List[str]:
    """How the answer came about, where that was asked for."""
    if page.diagnosis is None or not page.diagnosis.explains:
        return []
    return [_line(line) for line in considered_lines(page.diagnosis, PLAIN)]


def _lone_threads(page: Page) -> List[str]:
    """Threads that stand in no tree, the most frequent kind first."""
    tree = page.diagnosis.tree if page.diagnosis else None
    kinds = sorted(tree.folded.items(), key=lambda item: (-item[1], item[0]))[:24] if tree else []
    return [f"{number:,} {one_line(kind, 60)}" for kind, number in kinds]


def _of_tasks(tree: StackTree) -> Optional[TreeRows]:
    """Tasks of event loops as a tree of their own."""
    return TreeRows(replace(tree, roots=tree.tasks), frozenset(), PageData(), "task") if tree.tasks else None


def _left_out(data: PageData, *trees: Optional[TreeRows]) -> List[str]:
    """What found no room."""
    found = []
    branches = sum(tree.left_out for tree in trees if tree is not None)
    if branches:
        found.append(f"{branches:,} branches of merged stacks have no room on this page")
    if data.left_out:
        found.append(f"{data.left_out:,} stacks have no room on this page; --save keeps all of them")
    if data.threads_left_out:
        found.append(f"{data.threads_left_out:,} threads have no room on this page; --save keeps all of them")
    return found


def _parts(page: Page, context: Dict[str, Any]) -> List[str]:
    """Parts that have something to show, that of the command first."""
    parts = {
        "ranks": bool(page.snapshot.processes or page.snapshot.absent),
        "kernels": bool(context["kernels"]),
        "evidence": bool(context["cited"].evidence or context["others"] or context["considered"]),
        "stacks": context["tree"] is not None,
        "threads": page.diagnosis is not None and bool(page.snapshot.processes),
        "samples": bool(context["histories"]),
        "locks": bool(context["lock_rows"] or context["peers"] or context["stories"]),
        "communicators": bool(context["groups"] or context["group_notes"]),
        "asked": bool(context["asked"]),
        "witnesses": bool(context["witnesses"]),
        "limits": True,
    }
    first = _FIRST.get(page.subject)
    return sorted((one for one in _PARTS if parts[one]), key=lambda one: one != first)
