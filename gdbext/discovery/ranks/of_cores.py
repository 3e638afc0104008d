"""Processes that were dumped, as the tree of /proc would show them: titles and variables then mean the same ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.discovery.proc.procfs import GONE, ProcFS, Stat
from gdbext.model.missing import Maybe, Missing

_NOT_SAID = Missing("a core file does not say")
_FIRST = 2  # a number below would be init


@dataclass(frozen=True)
class Dumped:
    """What a core says of its process. `pid` may be another one's too: containers number their own."""

    pid: int
    arguments: Tuple[str, ...]
    command: str = ""
    parent: int = 0
    group: int = 0
    threads: int = 1
    environ: Maybe[Dict[str, str]] = _NOT_SAID
    files: Tuple[str, ...] = ()
    program: str = ""


class DumpedProcesses(ProcFS):
    """A /proc with nothing in it but these processes, numbered anew: `key_of` says how."""

    def __init__(self, processes: Sequence[Dumped]) -> None:
        super().__init__("/nonexistent")
        distinct = len({one.pid for one in processes}) == len(processes)
        usable = distinct and all(one.pid >= _FIRST for one in processes)
        self.keys = [one.pid if usable else _FIRST + number for number, one in enumerate(processes)]
        self._processes = dict(zip(self.keys, processes))

    def pids(self) -> List[int]:
        return sorted(self._processes)

    def self_pid(self) -> Optional[int]:
        return None

    def exists(self, pid: int) -> bool:
        return pid in self._processes

    def cmdline(self, pid: int) -> Maybe[Tuple[str, ...]]:
        one = self._processes.get(pid)
        return GONE if one is None else one.arguments or (one.command,)

    def environ(self, pid: int) -> Maybe[Dict[str, str]]:
        one = self._processes.get(pid)
        return GONE if one is None else one.environ

    def status(self, pid: int) -> Maybe[Dict[str, str]]:
        return _NOT_SAID

    def stat(self, pid: int) -> Maybe[Stat]:
        one = self._processes.get(pid)
        if one is None:
            return GONE
        return Stat(
            pid=pid,
            comm=one.command,
            state="?",
            parent=one.parent,
            group=one.group,
            session=0,
            flags=0,
            threads=one.threads,
            start_time=0,
        )

    def mapped_files(self, pid: int) -> Maybe[Tuple[str, ...]]:
        one = self._processes.get(pid)
        return GONE if one is None else one.files

    def exe(self, pid: int) -> Maybe[str]:
        one = self._processes.get(pid)
        return one.program if one is not None and one.program else _NOT_SAID

    def text(self, path: str) -> Maybe[str]:
        return ""  # neither the name of the host nor anything else
