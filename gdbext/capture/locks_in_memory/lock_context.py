"""What surrounds a lock: the threads that may own it, the file whose memory it lies in, the processes that share it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.memory.maps import MemoryMap
from gdbext.capture.symbols.global_variables import file_at


@dataclass(frozen=True)
class Surroundings:
    """What the owner's id is held against. Ids in memory are those of the process's own PID namespace."""

    ids: Mapping[int, int]  # id in memory -> LWP, of the threads of this process
    words: Mapping[int, int] = field(default_factory=dict)  # address of that id -> LWP
    complete: bool = False  # of all of them: an id that is not there is no thread of this process
    place: Callable[[int], Optional[str]] = lambda address: None  # the file whose memory an address is
    variable: Callable[[int], str] = lambda address: ""  # the variable that an address is in
    shared: Callable[[int], bool] = lambda address: True  # whether other processes may have that memory too
    others: Mapping[int, Tuple[int, int]] = field(default_factory=dict)  # id in memory -> pid, LWP: the job's others
    exists: Callable[[int], bool] = lambda owner: True  # whether any process has this thread; True when nobody knows
    sharers: Callable[[int], Sequence[int]] = lambda address: ()  # pids of the job that map the same memory
    parent: Optional[int] = None  # pid
    parents_threads: FrozenSet[int] = frozenset()
    before_fork: int = 0  # ids in memory below this one are of threads that were there before the process itself


def oldest_id(pid: int, parent: Optional[int], lwps: Mapping[int, int], root: str = "/proc") -> int:
    """The id of a forked process's own main thread, which all its threads are younger than; 0 where that is not known.

    The kernel gives ids in ascending order, so an owner with a lower one had the lock at the fork, whether or not that
    thread of the parent has ended since. A process that has replaced its program has no lock of its parent's, and after
    the highest id the kernel begins anew: then threads have lower ids than their process.
    """
    own = next((number for number, lwp in lwps.items() if lwp == pid), 0)
    if not parent or not own or min(lwps) < own:
        return 0
    try:
        programs = {os.readlink(f"{root}/{one}/exe") for one in (pid, parent)}
    except OSError:
        return 0
    return own if len(programs) == 1 else 0


def place_in(memory: MemoryMap) -> Callable[[int], Optional[str]]:
    """The file that memory belongs to."""

    def place(address: int) -> Optional[str]:
        found = file_at(memory, address)
        return found.file if found is not None else None

    return place


def shared_in(memory: MemoryMap) -> Callable[[int], bool]:
    """Whether memory is shared with other processes."""

    def shared(address: int) -> bool:
        found = memory.find(address)
        return found is None or found.permissions[3:4] == "s"

    return shared


class SharedFiles:
    """Which processes of a job map the same files shared: a ring, a semaphore in /dev/shm."""

    def __init__(self, maps: Mapping[int, MemoryMap]) -> None:
        self._maps = maps  # by pid
        self._users: Dict[Tuple[str, int], List[int]] = {}
        for pid, memory in maps.items():
            for file in {(one.device, one.inode) for one in memory if one.inode and one.permissions[3:4] == "s"}:
                self._users.setdefault(file, []).append(pid)

    def with_process(self, pid: int) -> Callable[[int], Sequence[int]]:
        """Who has the memory at an address of this process too."""

        def sharers(address: int) -> Sequence[int]:
            found = self._maps[pid].find(address)
            users = self._users.get((found.device, found.inode), []) if found is not None and found.inode else []
            return [user for user in users if user != pid]

        return sharers


def exists_beside(ids: Mapping[int, int], proc: str = "/proc") -> Callable[[int], bool]:
    """Whether there is a thread of an id, where the ids in memory are those that we see as well (no PID namespace)."""
    same = bool(ids) and all(owner == lwp for owner, lwp in ids.items())
    return lambda owner: not same or os.path.exists(f"{proc}/{owner}")
