"""All processes of this host at one moment, and who started whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing
from gdbext.scrubbing.secrets_in_text import title_of

_TITLE_BYTES = 4096
"""Titles are matched by regular expressions: no longer than this."""

_COMM_BYTES = 15
"""The kernel cuts the name of a process here."""

INIT = 1


@dataclass(frozen=True)
class Entry:
    """One process. Its arguments may hold secrets: what is shown or saved is `shown`."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    threads: int
    start_time: int
    arguments: Tuple[str, ...]
    comm: str = ""
    kernel: bool = False

    @cached_property
    def title(self) -> str:
        """What title rules match: the arguments joined by blanks."""
        return " ".join(self.arguments)[:_TITLE_BYTES]

    @property
    def shown(self) -> str:
        """The title without secrets, cut to a sane length."""
        return title_of(self.arguments) or f"[{self.comm}]"


class ProcessTable:
    """Processes by pid, with the tree they form."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: Dict[int, Entry] = {entry.pid: entry for entry in entries}
        self._children: Dict[int, List[int]] = {}
        for entry in self.entries.values():
            self._children.setdefault(entry.parent, []).append(entry.pid)

    def ancestors(self, pid: int) -> Iterator[Entry]:
        """Parent, its parent, ..., up to init. Ends at a process that is gone."""
        seen = {pid}
        entry = self.entries.get(pid)
        while entry is not None and entry.parent not in seen:
            seen.add(entry.parent)
            entry = self.entries.get(entry.parent)
            if entry is not None:
                yield entry

    def descendants(self, pid: int) -> List[Entry]:
        """Everything below the process, nearest first, without itself."""
        found: List[Entry] = []
        seen = {pid}
        waiting = list(self._children.get(pid, ()))
        while waiting:
            child = waiting.pop(0)
            if child not in seen:
                seen.add(child)
                found.append(self.entries[child])
                waiting += self._children.get(child, ())
        return found

    def depth(self, pid: int) -> int:
        return sum(1 for _ in self.ancestors(pid))


def read_table(proc: ProcFS) -> ProcessTable:
    """Two small files per process. Processes that end meanwhile are left out."""
    return ProcessTable(entry for entry in (_read_entry(proc, pid) for pid in proc.pids()) if entry is not None)


def _read_entry(proc: ProcFS, pid: int) -> Optional[Entry]:
    stat = proc.stat(pid)
    if isinstance(stat, Missing):
        return None
    arguments = () if stat.kernel_thread else proc.cmdline(pid)
    if isinstance(arguments, Missing):
        return None
    if not arguments and not stat.kernel_thread and len(stat.comm.encode()) < _COMM_BYTES:
        arguments = (stat.comm,)  # a zombie has only its name left, and that only when it was not cut
    return Entry(
        pid=pid,
        parent=stat.parent,
        group=stat.group,
        session=stat.session,
        state=stat.state,
        threads=stat.threads,
        start_time=stat.start_time,
        arguments=arguments,
        comm=stat.comm,
        kernel=stat.kernel_thread,
    )
