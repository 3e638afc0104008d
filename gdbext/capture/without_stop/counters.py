"""Counters of processes at two moments, and what they say of the time between (proc(5)). Nothing is stopped."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import islice
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from gdbext.capture.copies.syscall_line import Standing, call_number, parse_standing
from gdbext.capture.proc_texts import text_of
from gdbext.knowledge.runtimes.system_calls import CLOCK_NANOSLEEP, NANOSLEEP
from gdbext.model.activity import Activity, Child, Ended

_TICKS = os.sysconf("SC_CLK_TCK")
_LEAST = 0.05
"""Fraction of a core from which a child counts as working."""
_MOST_CHILDREN = 8
_MOST_NAPPING = 64
_SIGNAL = 0x7F  # of the status of a process that has ended (wait(2)); the kernel shows it to those who may trace it


@dataclass(frozen=True)
class _Process:
    """One line of /proc/PID/stat."""

    name: str
    parent: int
    session: int
    major_faults: int
    ticks: int
    started: int
    ended: Optional[int] = None  # the status (wait(2)) of one that has ended and waits for its parent to ask


class _Bytes(NamedTuple):
    """What a task has read and written so far; None where it is not told (proc_pid_io(5)).

    A call counts when it is over, and a long one is seen before that by what it has moved to or from a disk.
    """

    read: Optional[int]
    written: Optional[int]
    from_disk: Optional[int]
    to_disk: Optional[int]


_NO_COUNTS = _Bytes(None, None, None, None)


@dataclass(frozen=True)
class Census:
    """All processes of the host at the second `at` (CLOCK_MONOTONIC), and more of some of them."""

    at: float
    processes: Mapping[int, _Process]
    moved: Mapping[int, _Bytes]
    moved_by_main: Mapping[int, _Bytes]  # by the main thread alone
    swapped: Mapping[int, int]
    napping: FrozenSet[int] = frozenset()  # below them, in a sleep of a length that they chose


def take(pids: Sequence[int], proc: str = "/proc") -> Census:
    """Read every process once (some 20 microseconds each): a rank's children are found by their parents."""
    processes: Dict[int, _Process] = {}
    for name in os.listdir(proc):
        if name.isdigit():
            found = _process(text_of(f"{proc}/{name}/stat"))
            if found is not None:
                processes[int(name)] = found
    moved = {pid: _bytes(f"{proc}/{pid}/io") for pid in pids}
    by_main = {pid: _bytes(f"{proc}/{pid}/task/{pid}/io") for pid in pids}
    swapped = {pid: _field(text_of(f"{proc}/{pid}/status"), "VmSwap:") for pid in pids}
    return Census(
        at=time.monotonic(),
        processes=processes,
        moved=moved,
        moved_by_main=by_main,
        swapped={pid: value * 1024 for pid, value in swapped.items() if value is not None},
        napping=frozenset(one for one in _below(set(pids), processes) if _naps(text_of(f"{proc}/{one}/syscall"))),
    )


def _below(pids: Set[int], processes: Mapping[int, _Process]) -> List[int]:
    """Children of these, and theirs, as many as are looked at."""
    found: List[int] = []
    while len(found) < _MOST_NAPPING:
        more = [pid for pid, one in processes.items() if one.parent in pids.union(found) and pid not in found]
        if not more:
            break
        found += more
    return found[:_MOST_NAPPING]


def _naps(line: str) -> bool:
    standing = parse_standing(line)
    return isinstance(standing, Standing) and call_number(standing) in (NANOSLEEP, CLOCK_NANOSLEEP)


def activity_between(before: Census, after: Census, pids: Sequence[int]) -> Dict[int, Activity]:
    """What each of `pids` did; those that are new or gone are left out."""
    seconds = after.at - before.at
    if seconds <= 0:
        return {}
    was_below, below = _by_parent(before.processes), _by_parent(after.processes)
    found = {}
    for pid in pids:
        old, new = before.processes.get(pid), after.processes.get(pid)
        if old is None or new is None or old.started != new.started:
            continue
        read, written = _moved(before.moved, after.moved, pid)
        own = _moved(before.moved_by_main, after.moved_by_main, pid)
        napping = before.napping | after.napping
        children, resting = _children(pid, set(pids), below, before, after)
        found[pid] = Activity(
            seconds=seconds,
            major_faults=new.major_faults - old.major_faults,
            read_bytes=read,
            swapped_bytes=after.swapped.get(pid),
            children=children,
            written_bytes=written,
            own_bytes=max((one for one in own if one is not None), default=None),
            ended=_ended(pid, below.get(pid, ()), after.processes),
            napping=sum(1 for one in _below({pid}, after.processes) if one in napping),
            resting=resting,
            replaced=_replaced(
                _own_living(pid, was_below.get(pid, ()), before.processes),
                _own_living(pid, below.get(pid, ()), after.processes),
            ),
        )
    return found


def _by_parent(processes: Mapping[int, _Process]) -> Dict[int, List[int]]:
    """The children of each process."""
    found: Dict[int, List[int]] = {}
    for pid, process in processes.items():
        found.setdefault(process.parent, []).append(pid)
    return found


def _replaced(old: Set[Tuple[int, int]], new: Set[Tuple[int, int]]) -> int:
    return len(new) if old and old.isdisjoint(new) else 0


def _own_living(parent: int, children: Sequence[int], processes: Mapping[int, _Process]) -> Set[Tuple[int, int]]:
    """Its children that have not ended, each with the moment it was started; without orphans that it was given."""
    session = processes[parent].session
    own = ((pid, processes[pid]) for pid in children)
    return {(pid, one.started) for pid, one in own if one.ended is None and one.session in (session, pid)}


def _ended(parent: int, pids: Sequence[int], processes: Mapping[int, _Process]) -> Tuple[Ended, ...]:
    """Those that it started: of another session are orphans, which the first process of a container gets, too."""
    own = (pid for pid in pids if processes[pid].session in (processes[parent].session, pid))
    gone = ((pid, processes[pid].name, processes[pid].ended) for pid in own)
    found = (Ended(name, pid, code & _SIGNAL, code >> 8) for pid, name, code in gone if code is not None)
    return tuple(islice(found, _MOST_CHILDREN))


def _children(
    pid: int, ranks: Set[int], below: Mapping[int, List[int]], before: Census, after: Census
) -> Tuple[Tuple[Child, ...], int]:
    """All processes below `pid` that worked, and how many others there are, without other ranks and what is below
    them."""
    found: List[Child] = []
    resting = 0
    todo, seen = list(below.get(pid, ())), {pid}
    while todo:
        one = todo.pop()
        if one in seen or one in ranks:
            continue
        seen.add(one)
        todo += below.get(one, ())
        new, old = after.processes[one], before.processes.get(one)
        # A child that is new did all its work in between.
        ticks = new.ticks - (old.ticks if old is not None and old.started == new.started else 0)
        cpu = ticks / _TICKS / (after.at - before.at)
        if cpu >= _LEAST:
            found.append(Child(new.name, one, round(cpu, 3)))
        elif new.ended is None:
            resting += 1
    return tuple(sorted(found, key=lambda child: -child.cpu)[:_MOST_CHILDREN]), resting


def _bytes(path: str) -> _Bytes:
    text = text_of(path)
    return _Bytes(*(_field(text, name) for name in ("rchar:", "wchar:", "read_bytes:", "write_bytes:")))


def _moved(before: Mapping[int, _Bytes], after: Mapping[int, _Bytes], pid: int) -> Tuple[Optional[int], Optional[int]]:
    """Bytes that were read and written between two moments."""
    pairs = zip(before.get(pid, _NO_COUNTS), after.get(pid, _NO_COUNTS))
    more = [None if old is None or new is None else new - old for old, new in pairs]
    read, written = ([one for one in pair if one is not None] for pair in (more[::2], more[1::2]))
    return max(read, default=None), max(written, default=None)


def _process(stat: str) -> Optional[_Process]:
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    try:
        return _Process(
            name=name,
            parent=int(fields[1]),
            session=int(fields[3]),
            major_faults=int(fields[9]),
            ticks=int(fields[11]) + int(fields[12]),
            started=int(fields[19]),
            ended=int(fields[49]) if fields[0] == "Z" and len(fields) > 49 else None,
        )
    except (IndexError, ValueError):
        return None


def _field(text: str, name: str) -> Optional[int]:
    line = next((line for line in text.splitlines() if line.startswith(name)), "")
    words = line.split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None
