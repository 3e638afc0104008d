"""The stacks of all ranks merged by common callers: where do they part, and who is where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple


@dataclass(frozen=True)
class TreeNode:
    """One call that the threads of `ranks` share, callers and all. Children are the calls it makes (inner frames).

    Trees of recursive programs are thousands of nodes deep: walk them with a stack of your own.
    """

    function: Optional[str]  # demangled, without arguments; None for code without a name
    ranks: Tuple[int, ...]  # rank numbers, or process indexes when StackTree.counts says so; ascending
    threads: int = 1  # how many threads of all these ranks go through here
    module: Optional[str] = None  # path or file name of the object file
    file: Optional[str] = None
    line: Optional[int] = None
    language: str = "native"  # "native" or "python"
    children: Tuple[TreeNode, ...] = ()


@dataclass(frozen=True)
class StackTree:
    """The outermost calls, and how many threads were set aside as helpers, by kind."""

    roots: Tuple[TreeNode, ...]
    folded: Mapping[str, int] = field(default_factory=dict)  # {"nccl-proxy": 16, "pool": 480}
    counts: str = "rank"  # what the numbers in `ranks` are: "rank" or "process"
    tasks: Tuple[TreeNode, ...] = ()  # tasks of event loops: their outermost coroutines; `threads` counts tasks
