"""Python's side of a process's stacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple

from gdbext.model.stack import Frame, Loop
from gdbext.model.tasks import PythonTask


@dataclass(frozen=True)
class PythonThread:
    """The Python frames of one thread, innermost first, in the groups that one native eval frame each executes.

    A group is empty while an eval frame has no Python frame yet, or none any more.
    """

    groups: Tuple[Tuple[Frame, ...], ...]
    gil: Optional[bool] = None  # holds the global interpreter lock; None when unknown
    truncated: Optional[str] = None  # why frames are missing at the outer end
    marks: Tuple[int, ...] = ()  # as in `ThreadStack`, and so are the next two
    lengths: Mapping[str, int] = field(default_factory=dict)
    loops: Tuple[Loop, ...] = ()

    @property
    def frames(self) -> Tuple[Frame, ...]:
        return tuple(frame for group in self.groups for frame in group)


@dataclass(frozen=True)
class PythonStacks:
    """What the interpreter of one process was doing. `threads` is keyed by the kernel's thread id."""

    version: str  # "3.11"
    threads: Mapping[int, PythonThread]
    problems: Tuple[str, ...] = ()
    tasks: Tuple[PythonTask, ...] = ()
