"""The merged tree for the page: runs of calls that the same ranks share, and the branches where their ways part."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import FrozenSet, List, Sequence, Tuple

from gdbext.model.stack_tree import StackTree, TreeNode
from gdbext.model.text.ranges import counted
from gdbext.render.html.page_data import PageData
from gdbext.render.html.page_words import PLAIN, function, path, place
from gdbext.render.safe_text import rank_set

MOST_CALLS = 2_500
DEEPEST_FORK = 24
LONG_RUN = 18
"""Calls of one run above which its middle is folded away."""
_ENDS = 7


@dataclass(frozen=True)
class Call:
    """One line. `number` is its place in the data's tree."""

    number: int
    name: str
    place: str
    path: str
    python: bool
    times: int


@dataclass
class Branch:
    """Calls one below the other, then branches. `ranks`: a set of the data."""

    ranks: int
    ranks_text: str
    threads: str
    culprit: bool
    calls: List[Call] = field(default_factory=list)
    children: List[Branch] = field(default_factory=list)
    hidden: str = ""

    @property
    def first(self) -> Sequence[Call]:
        return self.calls if len(self.calls) <= LONG_RUN else self.calls[:_ENDS]

    @property
    def middle(self) -> Sequence[Call]:
        return () if len(self.calls) <= LONG_RUN else self.calls[_ENDS:-_ENDS]

    @property
    def last(self) -> Sequence[Call]:
        return () if len(self.calls) <= LONG_RUN else self.calls[-_ENDS:]


class TreeRows:
    """One pass over a tree, callers first; `branches` for the template, the same as numbers into the data."""

    def __init__(self, tree: StackTree, culprits: FrozenSet[int], data: PageData, unit: str = "thread") -> None:
        """`culprits`: numbers as in the tree. `unit`: what it counts."""
        self._unit = unit
        self._culprits = culprits
        self._data = data
        self._noun = "rank" if tree.counts == "rank" else "process"
        self._calls = 0
        self.left_out = 0  # branches
        self.branches, _ = self._fork(tree.roots, -1, 0)

    def _fork(self, nodes: Sequence[TreeNode], parent: int, depth: int) -> Tuple[List[Branch], int]:
        """Those of culprits first, then those of few ranks; the number of those that found no room."""
        found: List[Branch] = []
        if depth > DEEPEST_FORK:
            self.left_out += len(nodes)
            return found, len(nodes)
        hidden = 0
        for node in sorted(nodes, key=lambda one: (not self._is_culprit(one), len(one.ranks))):
            if self._calls >= MOST_CALLS:
                hidden += 1
            else:
                found.append(self._run(node, parent, depth))
        self.left_out += hidden
        return found, hidden

    def _is_culprit(self, node: TreeNode) -> bool:
        return bool(self._culprits) and self._culprits.issuperset(node.ranks)

    def _run(self, node: TreeNode, parent: int, depth: int) -> Branch:
        """Down to where the ways part."""
        nodes = [node]
        while len(nodes[-1].children) == 1 and nodes[-1].children[0].ranks == node.ranks:
            nodes.append(nodes[-1].children[0])
        noun = {"rank": ("rank", "ranks"), "process": ("process", "processes")}[self._noun]
        first = 0 if self._noun == "rank" else 1  # processes are counted from 1, as in the sentences
        numbers = [number + first for number in node.ranks]
        branch = Branch(
            ranks=self._data.ranks(node.ranks),
            ranks_text=f"{noun[len(node.ranks) != 1]} {rank_set(numbers, PLAIN, 28)}",
            threads=counted(node.threads, self._unit),
            culprit=self._is_culprit(node),
        )
        for _, group in groupby(nodes, key=_alike):
            same = list(group)
            call, number = same[0], len(self._data.tree) // 5
            self._data.tree += [parent, self._data.frame(call), branch.ranks, call.threads, len(same)]
            branch.calls.append(
                Call(
                    number=number,
                    name=function(call.function),
                    place=place(call.file, call.line, call.module),
                    path=path(call.file, call.line, call.module),
                    python=call.language == "python",
                    times=len(same),
                )
            )
            parent = number
            self._calls += 1
        branch.children, hidden = self._fork(nodes[-1].children, parent, depth + 1)
        branch.hidden = counted(hidden, "more branch", "more branches") if hidden else ""
        return branch


def _alike(call: TreeNode) -> Tuple[object, ...]:
    return call.function, call.module, call.file, call.line, call.language
