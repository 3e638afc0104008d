"""The stacks of all ranks as one tree: callers first, equal calls joined, with the set of ranks at every call."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Set, Tuple

from gdbext.analysis.judge import judge_process
from gdbext.model.job import JobSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.tree import StackTree, TreeNode
from gdbext.model.verdict import ProcessJudgement, ThreadJudgement

_Key = Tuple[Optional[str], Optional[str], Optional[str], Optional[int], str]
IDLE = "waiting to be woken"
"""How threads are counted that sit in a condition variable and are not the one that decides."""

_C_LIBRARY = re.compile(r"(libc|libpthread)[.-]")
"""The line at which a thread spins in it is chance, and tells no rank from another."""

LONGEST_STACK = 512
"""Frames of one stack that go into the tree; recursion beyond that is cut at the inner end."""


class _Node:
    """A call while the tree grows."""

    __slots__ = ("children", "frame", "ranks", "threads")

    def __init__(self, frame: Optional[Frame]) -> None:
        self.frame = frame
        self.ranks: Set[int] = set()
        self.threads = 0
        self.children: Dict[_Key, _Node] = {}


def merge(snapshot: JobSnapshot, judgements: Optional[Sequence[ProcessJudgement]] = None) -> StackTree:
    """Merge the threads that do work; helpers and idle pools are only counted, by kind. Linear in the number of frames.

    Nodes carry rank numbers; process indexes where some process has no rank of its own.
    """
    judged = judgements if judgements is not None else [judge_process(one) for one in snapshot.processes]
    numbers = [process.rank for process in snapshot.processes]
    by_rank = None not in numbers and len(set(numbers)) == len(numbers)
    top = _Node(None)
    folded: Dict[str, int] = {}
    for process, judgement in zip(snapshot.processes, judged):
        number = process.rank if by_rank and process.rank is not None else process.index
        for thread, one in zip(process.threads, judgement.threads):
            set_aside = None if one.id == judgement.wait.thread else _set_aside(one)
            if set_aside is not None:
                folded[set_aside] = folded.get(set_aside, 0) + 1
            elif thread.frames:
                _add(top, thread, number)
    return StackTree(_finished(top), folded, "rank" if by_rank else "process")


def _set_aside(one: ThreadJudgement) -> Optional[str]:
    """What kind of thread it is if it tells nothing: a helper, or one of a pool that waits to be woken."""
    if one.helper is not None:
        return one.helper
    return IDLE if one.kind == "condvar-idle" else None


def _add(top: _Node, thread: ThreadStack, number: int) -> None:
    node = top
    for frame in reversed(thread.frames[-LONGEST_STACK:]):
        key = (
            frame.function,
            frame.module if frame.function is None else frame.library,
            frame.file,
            None if _C_LIBRARY.match(frame.library or "") else frame.line,
            frame.language,
        )
        child = node.children.get(key)
        if child is None:
            child = node.children[key] = _Node(frame)
        child.ranks.add(number)
        child.threads += 1
        node = child


def _finished(top: _Node) -> Tuple[TreeNode, ...]:
    """Frozen nodes, largest sets of ranks first. Children are finished before their parents, without recursion."""
    order: List[_Node] = []
    todo = [top]
    while todo:
        node = todo.pop()
        order.append(node)
        todo.extend(node.children.values())
    done: Dict[int, TreeNode] = {}
    for node in reversed(order):
        children = sorted((done.pop(id(child)) for child in node.children.values()), key=_size)
        frame = node.frame
        if frame is None:
            return tuple(children)
        done[id(node)] = TreeNode(
            frame.function,
            tuple(sorted(node.ranks)),
            node.threads,
            frame.module,
            frame.file,
            frame.line,
            frame.language,
            tuple(children),
        )
    return ()


def _size(node: TreeNode) -> Tuple[int, int]:
    return (-len(node.ranks), -node.threads)
