"""One rank on the way from a running process to a snapshot."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.locks_in_memory import futexes
from gdbext.capture.nccl.pointer_search import Search
from gdbext.capture.python.python_frames import Frozen, FrozenThread
from gdbext.capture.python.runtime import Interpreter
from gdbext.capture.stop.still_asleep import Asleep
from gdbext.capture.without_stop import kernel_threads
from gdbext.model.activity import Activity
from gdbext.model.job import RankProcess, Refusal
from gdbext.model.missing import Maybe, Missing
from gdbext.model.python import PythonStacks
from gdbext.model.stack import ThreadStack
from gdbext.witnesses.question import Asked


@dataclass(frozen=True)
class Held:
    """What the memory of a rank said while it stood still, or while some of its threads slept."""

    python: Optional[Frozen]
    waits: futexes.Wanted
    pages: Sequence[Optional[bytes]]  # what `waits` asked for
    tids: Optional[FrozenSet[int]] = None  # the threads that it is true of; None: all of them stood still

    def plain(self) -> Tuple[object, ...]:
        """What was read, as plain values (capture/stop/several_processes.py)."""
        found = self.python
        return found and (tuple(map(tuple, found.threads)), found.problems), tuple(self.pages)

    @staticmethod
    def of(plain: Tuple[Any, ...], interpreter: Optional[Interpreter], waits: futexes.Wanted) -> Held:
        """The same again, by what was asked for."""
        found, pages = plain
        python = None
        if found and interpreter:
            python = Frozen(interpreter, tuple(FrozenThread(*thread) for thread in found[0]), found[1])
        return Held(python, waits, pages)


@dataclass
class LiveRank:
    """What is known so far; filled step by step by the look."""

    process: RankProcess
    problems: List[str] = field(default_factory=list)
    refusal: Optional[Refusal] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""  # its folder for caches, where torch leaves dumps
    interpreter: Maybe[Interpreter] = Missing("not looked for")  # noqa: RUF009 - frozen
    before: Mapping[int, kernel_threads.ThreadTimes] = field(default_factory=dict)  # as it was when we came
    times: Mapping[int, kernel_threads.ThreadTimes] = field(default_factory=dict)
    copied_at: float = 0.0
    pause_ms: Optional[float] = None  # what one thread felt, the longest
    copy: Optional[ProcessCopy] = None
    asleep: Optional[Asleep] = None  # who of the first copy slept on after it
    second: Optional[ProcessCopy] = None
    python: Optional[PythonStacks] = None
    stacks: Tuple[ThreadStack, ...] = ()
    communicators: Optional[Search] = None
    activity: Optional[Activity] = None
    blocked: bool = False  # must not or cannot be stopped
    traced: bool = False  # by somebody, when we came
    barred: bool = False  # for want of the right to
    cut: bool = False  # something that was there could not be read

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def label(self) -> str:
        return self.process.label

    def asked(self, index: int) -> Asked:
        """What the witnesses are asked about it."""
        process = self.process
        return Asked(
            index=index,
            pid=self.pid,
            rank=process.rank,
            device=process.device,
            environment=self.environment,
            cache=self.cache,
            start_time=process.start_time,
        )

    def note(self, text: str, cut: bool = False) -> None:
        """A problem, told once. `cut`: it left something unread."""
        if text not in self.problems:
            self.problems.append(text)
        self.cut = self.cut or cut


def reasons(ranks: Sequence[LiveRank]) -> str:
    """Why nothing could be read, each reason once: one line for eight ranks too."""
    ranks_of: Dict[str, List[str]] = {}
    for rank in ranks:
        for problem in rank.problems:
            ranks_of.setdefault(re.sub(rf"\b{rank.pid}\b", "it", problem), []).append(rank.label)
    return "; ".join(
        f"{', '.join(labels[:4])}{f' and {len(labels) - 4} more' if len(labels) > 4 else ''}: {text}"
        for text, labels in ranks_of.items()
    )
