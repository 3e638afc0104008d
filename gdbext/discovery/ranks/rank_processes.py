"""One look at all processes: which of them have a place in some job."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.discovery.locks_pipes_sockets.sockets import connected_groups
from gdbext.discovery.proc.process_table import INIT, ProcessTable, read_table
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.families import LAUNCHER, settle_roles
from gdbext.discovery.ranks.roles import (
    Facts,
    Member,
    ReadEnviron,
    below_launcher,
    by_device,
    by_title,
    by_variables,
    of_family,
)
from gdbext.discovery.ranks.workers import Family, find_families, is_forkserver, managers, takes_part, work_together
from gdbext.model.codes import Code
from gdbext.model.job import RANK
from gdbext.model.missing import Missing
from gdbext.model.text.ranges import counted

_WHO_MAY = "run as their user, or as root with CAP_SYS_PTRACE"


class Census:
    """The processes of a host and their roles. Environments and maps are read only where a title leaves it open."""

    def __init__(self, proc: ProcFS, read_environ: Optional[ReadEnviron] = None) -> None:
        self.proc = proc
        self.table: ProcessTable = read_table(proc)
        self.host = str(proc.text("sys/kernel/hostname") or "") or None
        self._facts: Dict[int, Facts] = {}
        self.self_pid = proc.self_pid()
        self._denied: List[Member] = []
        self._hidden = 0
        titled = {pid: by_title(self.facts(pid)) for pid in self.table.entries if self._candidate(pid)}
        self.families = find_families(self.table, self.facts, lambda pid: self._may_work(pid, titled))
        if read_environ is not None:
            self._take_present(read_environ)
        self._first = self._look(titled)
        self._first.update(self._workers_of_ranks())
        self.members: Dict[int, Member] = settle_roles(self._first, self.table)

    def facts(self, pid: int) -> Facts:
        if pid not in self._facts:
            self._facts[pid] = Facts(self.proc, self.table.entries[pid])
        return self._facts[pid]

    def find_gpu_ranks(self) -> None:
        """Take processes for ranks that only hold a GPU and map a library for collectives: costs all memory maps."""
        unknown = (pid for pid in self.table.entries if pid not in self._first and self._candidate(pid))
        weak = (by_device(self.facts(pid)) for pid in unknown if not self.facts(pid).denied)
        self._first.update({member.pid: member for member in weak if member is not None})
        self.members = settle_roles(self._first, self.table)

    def take_workers(self, asked: Sequence[int] = ()) -> bool:
        """Take the workers of programs for ranks where nothing but their likeness speaks for it. Their driver is one of
        them where it works with them, or where the user `asked` for both, and they come to no collectives.
        """
        found: Dict[int, Member] = {}
        for family in self.families:
            above = {entry.pid for pid in family.workers for entry in self.table.ancestors(pid)}
            workers = self._open(family)
            taken = any(pid in self._first for pid in family.workers)
            if taken or not workers or above & set(found) or not work_together(family, self.table, self.facts):
                continue
            driver = self.table.entries.get(family.driver or 0)
            meant = family.driver in asked and any(pid in asked for pid in workers)
            meant = meant and not any(self.facts(pid).evidence for pid in workers)
            entries = [self.table.entries[pid] for pid in workers]
            if driver is not None and (meant or takes_part(driver, entries, self.proc)):
                workers.append(driver.pid)
            found.update({pid: of_family(self.facts(pid), family.name) for pid in workers})
        self._first.update(found)
        self.members = settle_roles(self._first, self.table)
        return bool(found)

    def family_of(self, pid: int) -> Optional[Family]:
        """The workers that it belongs to, or that it has started."""
        return next((family for family in self.families if pid == family.driver or pid in family.workers), None)

    def add_unreadable_ranks(self) -> bool:
        """Take ranks by their titles that we may not look into: they can be told of, if not be read."""
        taken, self._denied = self._denied, []
        self._first.update({member.pid: member for member in taken})
        self.members = settle_roles(self._first, self.table)
        return bool(taken)

    @property
    def ranks(self) -> List[Member]:
        return [member for member in self.members.values() if member.role == RANK]

    @property
    def notes(self) -> Tuple[str, ...]:
        """What we were not allowed to see."""
        notes = []
        for engine, count in sorted(Counter(member.engine or "unknown engine" for member in self._denied).items()):
            notes.append(f"{counted(count, 'rank process', 'rank processes')} of {engine} cannot be read: {_WHO_MAY}")
        if self._hidden:
            notes.append(
                f"{counted(self._hidden, 'process', 'processes')} of other users could not be inspected: {_WHO_MAY}"
            )
        return tuple(notes)

    def _candidate(self, pid: int) -> bool:
        entry = self.table.entries[pid]
        return not entry.kernel and pid != self.self_pid  # pid 1 of a container may be the rank

    def _take_present(self, read_environ: ReadEnviron) -> None:
        workers = [self.facts(pid) for family in self.families for pid in family.workers]
        pythons = [facts for facts in workers if facts.python]
        if pythons and not self.proc.reading_kills():
            for facts in pythons:
                facts.use_current_variables(read_environ)

    def _may_work(self, pid: int, titled: Mapping[int, Optional[Member]]) -> bool:
        """No title tells what it is; what a fork server forks has the title of the server."""
        member = titled.get(pid)
        if member is None:
            return pid in titled
        entry = self.table.entries[pid]
        parent = self.table.entries.get(entry.parent)
        return parent is not None and is_forkserver(parent, self.table) and entry.title == parent.title

    def _workers_of_ranks(self) -> Dict[int, Member]:
        """Workers that have not numbered themselves: beside one that has, or connected with each other."""
        found: Dict[int, Member] = {}
        for family in self.families:
            workers = self._open(family)
            numbered = [pid for pid in workers if self.facts(pid).renumbered and pid in self._first]
            unknown = [pid for pid in workers if pid not in self._first]
            if numbered:
                found.update({pid: of_family(self.facts(pid), mate=numbered[0]) for pid in unknown})
            elif len(unknown) == len(workers) > 1:
                found.update({pid: of_family(self.facts(pid), family.name) for pid in self._connected(family, workers)})
        return found

    def _connected(self, family: Family, workers: Sequence[int]) -> Sequence[int]:
        """All workers of a program where some have a connection among them; of a shell's those that have one."""
        if not all(self.facts(pid).evidence for pid in workers):
            return ()
        groups = [
            group & set(workers) for group in connected_groups(self.proc, (*workers, family.driver or workers[0]))
        ]
        several = [group for group in groups if len(group) > 1]
        return workers if several and family.driver is not None else sorted(set().union(*several))

    def _open(self, family: Family) -> List[int]:
        """Those of the workers that we may look into and that serve no objects to the others."""
        aside = managers(family, self.proc, self.facts)
        return [pid for pid in family.workers if pid not in aside and not self.facts(pid).denied]

    def _look(self, titled: Mapping[int, Optional[Member]]) -> Dict[int, Member]:
        found: Dict[int, Member] = {}
        for pid, title_and_start in titled.items():
            member = self._identify(pid, None if self._may_work(pid, titled) else title_and_start)
            if member is not None:
                found[pid] = member
        overwritten = [pid for pid, facts in self._facts.items() if pid not in found and self._overwritten(facts)]
        for pid in overwritten:
            late = below_launcher(self.facts(pid)) if self._below_launcher(pid, found) else None
            if late is not None:
                found[pid] = late
        return found

    def _identify(self, pid: int, titled: Optional[Member]) -> Optional[Member]:
        """By title, else by variables. Ranks that may not be read are counted and left out."""
        facts = self.facts(pid)
        if titled is not None and titled.role != RANK:
            return titled
        if facts.denied:
            if titled is not None:
                self._denied.append(titled)
            else:
                self._hidden += pid != INIT or facts.python  # process 1 of a container may be a rank, init is none
            return None
        return titled or by_variables(facts)

    def _overwritten(self, facts: Facts) -> bool:
        return isinstance(facts.environ, Missing) and facts.environ.code is Code.OVERWRITTEN

    def _below_launcher(self, pid: int, found: Dict[int, Member]) -> bool:
        """The first process above it that is no shell is a launcher."""
        for entry in self.table.ancestors(pid):
            member = found.get(entry.pid)
            if member is None or member.role != "shell":
                return member is not None and member.role == LAUNCHER
        return False
