"""The stacks of all ranks as one tree: callers first, equal calls joined, with the set of ranks at every call."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from gdbext.analysis.stacks.process_kind import judge_process
from gdbext.model.job import JobSnapshot
from gdbext.model.stack import Frame
from gdbext.model.stack_tree import StackTree, TreeNode
from gdbext.model.verdict import ProcessJudgement

_Key = Tuple[Optional[str], Optional[str], Optional[str], Optional[int], str]
IDLE = "waiting to be woken"
"""How threads are counted that sit in a condition variable and are not the one that decides."""

_C_LIBRARY = re.compile(r"(libc|libpthread)[.-]")
"""The line at which a thread spins in it is chance, and tells no rank from another."""

LONGEST_STACK = 512
"""Frames of one stack that go into the tree; recursion beyond that is cut at the inner end."""


class _Node:
    """A call while the tree grows."""

    __slots__ = ("children", "frame", "stacks")

    def __init__(self, frame: Optional[Frame]) -> None:
        self.frame = frame
        self.stacks: List[_Stack] = []
        self.children: Dict[_Key, _Node] = {}


class _Stack:
    """A stack, and who has it."""

    __slots__ = ("calls", "ranks", "threads")

    def __init__(self, calls: Sequence[Frame]) -> None:
        self.calls = calls
        self.ranks: Set[int] = set()
        self.threads = 0


def merge(snapshot: JobSnapshot, judgements: Optional[Sequence[ProcessJudgement]] = None) -> StackTree:
    """Merge the threads that do work; helpers and idle pools are only counted, by kind. Linear in the number of frames
    of different stacks, and in the threads.

    Nodes carry rank numbers; process indexes where some process has no rank of its own.
    """
    judged = judgements if judgements is not None else [judge_process(one) for one in snapshot.processes]
    numbers = [process.rank for process in snapshot.processes]
    by_rank = None not in numbers and len(set(numbers)) == len(numbers)
    stacks: Dict[int, _Stack] = {}
    tasks: Dict[int, _Stack] = {}
    folded: Dict[str, int] = {}
    for process, judgement in zip(snapshot.processes, judged):
        number = process.rank if by_rank and process.rank is not None else process.index
        for thread, aside in zip(process.threads, _set_aside(judgement)):
            if aside is not None and thread.id != judgement.wait.thread:
                folded[aside] = folded.get(aside, 0) + 1
            elif thread.calls:
                _count(stacks, thread.calls, number)
        for task in process.tasks:
            if task.frames:
                _count(tasks, task.frames, number)
    return StackTree(_tree(stacks), folded, "rank" if by_rank else "process", _tree(tasks))


def _count(stacks: Dict[int, _Stack], calls: Sequence[Frame], number: int) -> None:
    """One more thread or task that has these calls."""
    stack = stacks.get(id(calls))
    if stack is None:
        stack = stacks[id(calls)] = _Stack(calls)
    stack.ranks.add(number)
    stack.threads += 1


def _tree(stacks: Mapping[int, _Stack]) -> Tuple[TreeNode, ...]:
    top = _Node(None)
    for stack in stacks.values():
        _add(top, stack)
    return _finished(top)


def _set_aside(judged: ProcessJudgement) -> List[Optional[str]]:
    """Of each thread what kind it is if it tells nothing: a helper, or one of a pool that waits to be woken."""
    kinds = {id(one): one.helper or (IDLE if one.kind == "condvar-idle" else None) for one, _ in judged.groups}
    return [kinds[id(one)] for one in judged.threads]


def _add(top: _Node, stack: _Stack) -> None:
    node = top
    for frame in reversed(stack.calls[-LONGEST_STACK:]):
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
        child.stacks.append(stack)
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
    ranks: Dict[Tuple[int, ...], Tuple[int, ...]] = {}
    for node in reversed(order):
        children = sorted((done.pop(id(child)) for child in node.children.values()), key=_size)
        frame, stacks = node.frame, node.stacks
        if frame is None:
            return tuple(children)
        key = tuple(map(id, stacks))
        if key not in ranks:  # along a call of one other it is the same ranks
            ranks[key] = tuple(sorted(stacks[0].ranks.union(*(one.ranks for one in stacks[1:]))))
        done[id(node)] = TreeNode(
            function=frame.function,
            ranks=ranks[key],
            threads=sum(one.threads for one in stacks),
            module=frame.module,
            file=frame.file,
            line=frame.line,
            language=frame.language,
            children=tuple(children),
        )
    return ()


def _size(node: TreeNode) -> Tuple[int, int]:
    return (-len(node.ranks), -node.threads)
