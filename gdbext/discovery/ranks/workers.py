"""Processes that one program has started to work side by side, where neither a title nor a variable names their ranks.

multiprocessing (fork, spawn, forkserver), torch.multiprocessing, pools, `os.fork`, a loop of `subprocess.Popen`, actors
of Ray and workers of web servers all look the same: children of one parent that run the same program with the same
arguments but for numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from gdbext.discovery.proc.process_table import INIT, Entry, ProcessTable
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.roles import Facts
from gdbext.knowledge.launch.launchers import FORKSERVER, MANAGER_SOCKETS, SUPERVISORS, TITLE_SHAPES, WAITS_OF_DRIVERS
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex

_PYTHON = regex(r"^\S*python")
_FORKSERVER = regex(FORKSERVER)
_SHAPES = tuple((regex(row.pattern), row.replacement) for row in TITLE_SHAPES)
_WITH_DRIVER = tuple(regex(row.pattern) for row in TITLE_SHAPES if row.with_driver)
_MANAGER = regex(MANAGER_SOCKETS)
_DRIVER_WAITS = regex(WAITS_OF_DRIVERS)
_SUPERVISOR = regex(SUPERVISORS)
_MOST_WORKERS = 4096

FactsOf = Callable[[int], Facts]


@dataclass(frozen=True)
class Family:
    """Workers of one parent. `driver` is the program that has started them, where it is no shell and not init."""

    driver: Optional[int]
    workers: Tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.driver or 0}:{min(self.workers)}"


def find_families(table: ProcessTable, facts: FactsOf, candidate: Callable[[int], bool]) -> Tuple[Family, ...]:
    """All families of the host, outer ones first. A worker alone is one too: the child that a program waits for."""
    alike: Dict[Tuple[int, str], List[Entry]] = {}
    for entry in table.entries.values():
        if not candidate(entry.pid) or is_forkserver(entry, table):
            continue
        starter = _starter(entry, table)
        if starter != INIT or _PYTHON.search(entry.title):  # daemons are alike too
            alike.setdefault((starter, _shape(entry.title)), []).append(entry)
    found = [
        Family(_driver(parent, table, candidate), tuple(sorted(workers)))
        for (parent, _), entries in alike.items()
        for workers in _of_one_program(entries[:_MOST_WORKERS], facts)
    ]
    return tuple(sorted(found, key=lambda one: (table.depth(one.workers[0]), one.workers)))


def is_forkserver(entry: Entry, table: ProcessTable) -> bool:
    """The server itself; what it forks keeps its title."""
    parent = table.entries.get(entry.parent)
    return bool(_FORKSERVER.search(entry.title)) and (parent is None or parent.title != entry.title)


def work_together(family: Family, table: ProcessTable, facts: FactsOf) -> bool:
    """The workers run the program of their driver, under its own title (fork) or one that a row knows. Others may be
    services that have nothing to do with each other."""
    driver = table.entries.get(family.driver or 0)
    worker = table.entries[family.workers[0]]
    if driver is None or facts(driver.pid).exe != facts(worker.pid).exe:
        return False
    return driver.title == worker.title or any(pattern.search(worker.title) for pattern, _ in _SHAPES)


def managers(family: Family, proc: ProcFS, facts: FactsOf) -> Tuple[int, ...]:
    """Those of the workers that serve objects to the others: they listen on a socket that multiprocessing has made."""
    listening = _listening(proc, family.workers[0])
    found = tuple(pid for pid in family.workers if listening and listening & set(facts(pid).open_files))
    return found if len(found) < len(family.workers) else ()


def takes_part(driver: Entry, workers: Sequence[Entry], proc: ProcFS) -> bool:
    """Whether the program that has started workers works with them: by what their titles say of such programs, else as
    far as the kernel shows it: its main thread does not wait for any of many events. With one worker it counts, for
    one of the two waits for the other."""
    if _SUPERVISOR.search(driver.title):
        return False
    if workers and any(pattern.search(workers[0].title) for pattern in _WITH_DRIVER):
        return True
    place = proc.text(f"{driver.pid}/wchan")
    known = not isinstance(place, Missing) and place not in ("", "0")
    return len(workers) == 1 or (known and not _DRIVER_WAITS.match(str(place)))


def _starter(entry: Entry, table: ProcessTable) -> int:
    """Who has started it: the parent, and behind a forkserver that one's parent."""
    parent = table.entries.get(entry.parent)
    return parent.parent if parent is not None and is_forkserver(parent, table) else entry.parent


def _driver(parent: int, table: ProcessTable, candidate: Callable[[int], bool]) -> Optional[int]:
    entry = table.entries.get(parent)
    return parent if entry is not None and parent != INIT and not entry.kernel and candidate(parent) else None


def _of_one_program(entries: Sequence[Entry], facts: FactsOf) -> Iterator[List[int]]:
    by_program: Dict[str, List[int]] = {}
    for entry in entries:
        by_program.setdefault(str(facts(entry.pid).exe) if len(entries) > 1 else "", []).append(entry.pid)
    yield from by_program.values()


def _shape(title: str) -> str:
    """The title without what differs between workers."""
    for pattern, replacement in _SHAPES:
        title = pattern.sub(replacement, title)
    return re.sub(r"\d+", "#", title)


def _listening(proc: ProcFS, pid: int) -> set[str]:
    """Sockets that multiprocessing listens on, as `/proc/PID/fd` shows them (proc_pid_net(5))."""
    text = proc.text(f"{pid}/net/unix")
    rows = (line.split(None, 7) for line in ("" if isinstance(text, Missing) else text).splitlines()[1:])
    return {f"socket:[{row[6]}]" for row in rows if len(row) == 8 and _MANAGER.search(row[7])}
