"""Processes known by log lines alone: those that write them, those they accuse, and a rank that is silent."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.knowledge.logs import LOG_RULES, RANK, TIMED_OUT
from gdbext.model.patterns import regex
from gdbext.parsers.building import Process
from gdbext.parsers.events import ProcessHead

_ACCUSING = tuple(regex(rule.pattern) for rule in LOG_RULES if "?P<rank" in rule.pattern)
_TIMED_OUT, _RANK = regex(TIMED_OUT), regex(RANK)
_NUMBER = regex(r"\d{1,6}")
_MOST_ACCUSED = 64
_FEWEST_WITNESSES = 3


class Speakers:
    """Processes by rank, or by pid where no rank is told. Empty where stacks show who takes part."""

    def __init__(self) -> None:
        self._known: Dict[Tuple[Optional[int], Optional[int]], Process] = {}

    def find(self, rank: Optional[int], pid: Optional[int]) -> Process:
        """The process of that rank, else of that pid."""
        head = ProcessHead(rank=rank, pid=pid if rank is None else None)
        return self._known.setdefault((rank, head.pid), Process(head))

    def finished(self, said: Sequence[str]) -> List[Process]:
        """All of them, with the ranks that lines accuse and the one that says nothing where all others time out."""
        texts = [*said, *(text for process in self._known.values() for text in process.said)]
        for rank in [*_accused(texts), *self._silent()][:_MOST_ACCUSED]:
            self.find(rank, None)
        return list(self._known.values())

    def _silent(self) -> List[int]:
        """Ranks between others that timed out, of whose log there is no line; none where most of a job is not here."""
        waiting = {rank for (rank, _), process in self._known.items() if rank is not None and _timed_out(process)}
        if len(waiting) < _FEWEST_WITNESSES:
            return []
        speaking = {rank for rank, _ in self._known if rank is not None}
        gaps = [rank for rank in range(min(waiting), max(waiting)) if rank not in speaking]
        return gaps if 2 * len(gaps) < len(waiting) else []


def _timed_out(process: Process) -> bool:
    return any(_TIMED_OUT.search(text) for text in process.said)


def _accused(texts: Sequence[str]) -> List[int]:
    found: Dict[int, None] = {}
    for text in texts:
        for pattern in _ACCUSING:
            match = pattern.search(text)
            groups = match.groupdict() if match else {}
            numbers = [value for name, value in groups.items() if name.startswith("rank") and value]
            found.update(dict.fromkeys(int(number) for value in numbers for number in _NUMBER.findall(value)))
    return list(found)
