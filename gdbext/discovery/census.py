"""One look at all processes: which of them have a place in some job."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Optional, Tuple

from gdbext.discovery.families import LAUNCHER, settle
from gdbext.discovery.procfs import OVERWRITTEN, ProcFS
from gdbext.discovery.roles import RANK, Facts, Member, below_launcher, by_device, by_title, by_variables
from gdbext.discovery.table import INIT, ProcessTable, read_table
from gdbext.model.missing import Missing

_WHO_MAY = "their user may, or root with CAP_SYS_PTRACE"


class Census:
    """The processes of a host and their roles. Environments and maps are read only where a title leaves it open."""

    def __init__(self, proc: ProcFS) -> None:
        self.proc = proc
        self.table: ProcessTable = read_table(proc)
        self.host = str(proc.text("sys/kernel/hostname") or "") or None
        self._facts: Dict[int, Facts] = {}
        self.self_pid = proc.self_pid()
        self._denied: List[Member] = []
        self._hidden = 0
        self._first = self._look()
        self.members: Dict[int, Member] = settle(self._first, self.table)

    def facts(self, pid: int) -> Facts:
        if pid not in self._facts:
            self._facts[pid] = Facts(self.proc, self.table.entries[pid])
        return self._facts[pid]

    def look_deeper(self) -> None:
        """Take processes for ranks that only hold a GPU and map a library for collectives: costs all memory maps."""
        unknown = (pid for pid in self.table.entries if pid not in self._first and self._candidate(pid))
        weak = (by_device(self.facts(pid)) for pid in unknown if not self.facts(pid).denied)
        self._first.update({member.pid: member for member in weak if member is not None})
        self.members = settle(self._first, self.table)

    def take_denied(self) -> bool:
        """Take ranks by their titles that we may not look into: they can be told of, if not be read."""
        taken, self._denied = self._denied, []
        self._first.update({member.pid: member for member in taken})
        self.members = settle(self._first, self.table)
        return bool(taken)

    @property
    def ranks(self) -> List[Member]:
        return [member for member in self.members.values() if member.role == RANK]

    @property
    def notes(self) -> Tuple[str, ...]:
        """What we were not allowed to see."""
        notes = []
        for engine, count in sorted(Counter(member.engine or "unknown engine" for member in self._denied).items()):
            notes.append(f"{count} rank processes of {engine} may not be read: {_WHO_MAY}")
        if self._hidden:
            notes.append(f"{self._hidden} processes of other users could not be looked into: {_WHO_MAY}")
        return tuple(notes)

    def _candidate(self, pid: int) -> bool:
        entry = self.table.entries[pid]
        return not entry.kernel and pid not in (self.self_pid, INIT)

    def _look(self) -> Dict[int, Member]:
        found: Dict[int, Member] = {}
        for pid in self.table.entries:
            if self._candidate(pid):
                member = self._identify(pid)
                if member is not None:
                    found[pid] = member
        overwritten = [pid for pid, facts in self._facts.items() if pid not in found and self._overwritten(facts)]
        for pid in overwritten:
            late = below_launcher(self.facts(pid)) if self._below_launcher(pid, found) else None
            if late is not None:
                found[pid] = late
        return found

    def _identify(self, pid: int) -> Optional[Member]:
        """By title, else by variables. Ranks that may not be read are counted and left out."""
        facts = self.facts(pid)
        member = by_title(facts)
        if member is not None and member.role != RANK:
            return member
        if facts.denied:
            if member is not None:
                self._denied.append(member)
            else:
                self._hidden += 1
            return None
        return member or by_variables(facts)

    def _overwritten(self, facts: Facts) -> bool:
        return isinstance(facts.environ, Missing) and facts.environ.reason == OVERWRITTEN

    def _below_launcher(self, pid: int, found: Dict[int, Member]) -> bool:
        """The first process above it that is no shell is a launcher."""
        for entry in self.table.ancestors(pid):
            member = found.get(entry.pid)
            if member is None or member.role != "shell":
                return member is not None and member.role == LAUNCHER
        return False
