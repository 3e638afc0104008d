"""Processes known by log lines alone: those that write them, those they accuse, and a rank that is silent."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Set, Tuple

from gdbext.knowledge.frames import MESSAGES
from gdbext.knowledge.log_lines import LOG_RULES, READY, TIMED_OUT, communicator_setup
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import numbers_in
from gdbext.parsers.assemble.building import Process
from gdbext.parsers.cleaning import Stream
from gdbext.parsers.line_events import LogMessage, ProcessHead

_ACCUSING = tuple(regex(rule.pattern) for rule in LOG_RULES if "?P<rank" in rule.pattern)
_OF_A_PROCESS = tuple(
    map(regex, (*(rule.pattern for rule in LOG_RULES if rule.wait), *(rule.pattern for rule in MESSAGES)))
)
_OF_A_SPEAKER = (*_OF_A_PROCESS, *(regex(rule.pattern) for rule in communicator_setup.RULES))
"""What no kernel, launcher or coordinator prints: of transports that fail, their process tells."""
_TIMED_OUT, _READY = regex(TIMED_OUT), regex(READY)
_NUMBER = regex(r"\d{1,6}")
_MOST_ACCUSED, _MOST_READY = 64, 1 << 12  # a longer list is longer than a line that is read
_FEWEST_WITNESSES = 3


class LogWriters:
    """Processes by rank, by pid where no rank is told, by the writer's name where neither is. Empty where stacks show
    who takes part."""

    def __init__(self) -> None:
        self._all: List[Process] = []
        self._by_rank: Dict[int, Process] = {}
        self._by_pid: Dict[int, Process] = {}
        self._by_name: Dict[str, Process] = {}

    def find(self, rank: Optional[int], pid: Optional[int], name: str = "") -> Process:
        """The process of that rank, else of that pid, else of that name; a rank and a pid in one line are of one."""
        known = self._by_rank.get(rank) if rank is not None else self._by_pid.get(pid) if pid is not None else None
        if known is None and rank is not None and pid is not None:
            known = self._by_pid.get(pid)
            if known is not None and known.head.rank is not None:
                known = None  # a pid of another host
        if known is not None and rank is not None and pid is not None:
            self._join(known, pid)
        if known is None and rank is None and pid is None:
            known = self._by_name.get(name)
        if known is None:
            known = Process(head=ProcessHead(title=name))
            self._all.append(known)
        self._learn(known, rank, pid, name)
        return known

    def _join(self, process: Process, pid: int) -> None:
        """A process that was known by its pid alone turns out to be the one of a rank that was known without a pid."""
        other = self._by_pid.get(pid)
        if other is None or other is process or other.head.rank is not None or process.head.pid is not None:
            return
        for text in other.said:
            process.tell(text)
        self._all = [one for one in self._all if one is not other]
        self._by_pid[pid] = process

    def _learn(self, process: Process, rank: Optional[int], pid: Optional[int], name: str) -> None:
        head = process.head
        rank = head.rank if rank is None else rank
        pid = pid if head.pid is None else head.pid
        process.head = ProcessHead(title=head.title or name, pid=pid, rank=rank)
        if rank is not None:
            self._by_rank.setdefault(rank, process)
        if pid is not None:
            self._by_pid.setdefault(pid, process)
        if rank is None and pid is None:
            self._by_name[name] = process

    def by_name(self, lines: Sequence[Tuple[Stream, LogMessage]], stacks: bool) -> List[Tuple[Stream, LogMessage]]:
        """Lines that name neither rank nor pid are of the writer that their prefix names, where nothing else tells who
        takes part. What is left."""
        if stacks or self._all:
            return list(lines)
        rest: List[Tuple[Stream, LogMessage]] = []
        for stream, message in lines:
            if stream.source and any(pattern.search(message.text) for pattern in _OF_A_PROCESS):
                self.find(None, None, stream.source).tell(message.text)
            else:
                rest.append((stream, message))
        return rest

    def assign_lines(self, said: List[str]) -> List[str]:
        """Where lines name nobody and no process is known, they are of the one whose log this is. What is left."""
        if self._all or not any(pattern.search(text) for text in said for pattern in _OF_A_SPEAKER):
            return said
        process = self.find(None, None)
        for text in said:
            process.tell(text)
        return []

    def finished(self, said: Sequence[str], read: Sequence[Process] = ()) -> List[Process]:
        """All of them, with the ranks that lines accuse and the one that says nothing where all others time out, unless
        their stacks were `read`."""
        texts = [*said, *(text for process in (*self._all, *read) for text in process.said)]
        known = {process.head.rank for process in read}
        ready = _ready(texts)
        named = sorted({*_accused(texts)[:_MOST_ACCUSED], *sorted(ready)[:_MOST_READY]})
        for rank in [*named, *self._silent()[:_MOST_ACCUSED], *_never_ready(ready)]:
            if rank not in known:
                self.find(rank, None)
        return self._all

    def _silent(self) -> List[int]:
        """Ranks among others that timed out, of whose log there is no line; none where most of a job is not here."""
        waiting = {rank for rank, process in self._by_rank.items() if _timed_out(process)}
        if len(waiting) < _FEWEST_WITNESSES:
            return []
        first = 0 if min(waiting) == 1 else min(waiting)  # every job has a rank 0
        gaps = [rank for rank in range(first, max(waiting)) if rank not in self._by_rank]
        return gaps if 2 * len(gaps) < len(waiting) else []


def _ready(texts: Sequence[str]) -> Set[int]:
    """The ranks that lines list as ready."""
    lists = (one.group("ranks") for text in texts for one in _READY.finditer(text))
    return {number for one in lists for number in numbers_in(one)}


def _never_ready(ready: Set[int]) -> List[int]:
    """Ranks that no list of ready ones has, although it has some with higher numbers."""
    gaps = [rank for rank in range(max(ready, default=0)) if rank not in ready][:_MOST_ACCUSED]
    return gaps if len(ready) >= _FEWEST_WITNESSES and 2 * len(gaps) < len(ready) else []


def _timed_out(process: Process) -> bool:
    return any(_TIMED_OUT.search(text) for text in process.said)


def _accused(texts: Sequence[str]) -> List[int]:
    """Ranks that lines blame."""
    found: Set[int] = set()
    for text in texts:
        for pattern in _ACCUSING:
            match = pattern.search(text)
            groups = match.groupdict() if match else {}
            numbers = [value for name, value in groups.items() if name.startswith("rank") and value]
            found.update(int(number) for value in numbers for number in _NUMBER.findall(value))
    return sorted(found)
