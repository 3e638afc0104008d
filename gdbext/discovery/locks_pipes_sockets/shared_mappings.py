"""Whether another process has a piece of shared memory too, such as the semaphore of a multiprocessing.Lock: by its
inode in the maps of all processes of the host (proc_pid_maps(5), mmap(2))."""

from __future__ import annotations

import os
import time
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex

SECONDS = 0.5  # of the processor, for the maps of all processes
_MOST_PROCESSES = 8192
_WITHOUT_NAME = "/dev/zero"
"""What the kernel calls memory that is shared by fork alone (mmap(2), MAP_SHARED | MAP_ANONYMOUS)."""
_DELETED = regex(r"(?m)^\S+ \S+ \S+ (\S+) (\d+) .*\(deleted\)$")
_SEMAPHORES = "/dev/shm"  # noqa: S108 - where sem_open(3) and shm_open(3) make their files


class Mapped(NamedTuple):
    """Memory as a line of /proc/PID/maps shows it."""

    addresses: str  # "7f00-7f10"
    device: str  # "00:1a"
    inode: int
    path: str


class SharedMemory:
    """What is told of the processes as they are when it is first asked; their maps are read once."""

    def __init__(self, proc: ProcFS) -> None:
        self._proc = proc
        self._alone: Dict[Tuple[int, str, int], bool] = {}
        self._mapped: Optional[Dict[Tuple[str, str], Set[int]]] = None
        self._unread: List[int] = []
        self._whole = False

    def is_shared(self, pid: int, memory: Mapped) -> bool:
        """Whether another process has it, or may get it by its name; True too where that cannot be told."""
        key = pid, memory.device, memory.inode
        if key not in self._alone:
            self._alone[key] = self._has_no_name(pid, memory) and self._is_alone(pid, memory)
        return not self._alone[key]

    def _has_no_name(self, pid: int, memory: Mapped) -> bool:
        """A semaphore may have a second name (sem_open(3)), so the mark "(deleted)" alone does not suffice."""
        if not memory.inode or not memory.path.endswith(" (deleted)"):
            return False
        if memory.path.startswith(_WITHOUT_NAME):
            return True
        try:
            file = os.stat(f"{self._proc.root}/{pid}/map_files/{memory.addresses}")
            return file.st_nlink == 0 and file.st_ino == memory.inode
        except OSError:  # it is for root alone
            return memory.path.startswith(f"{_SEMAPHORES}/") and self._is_not_listed(pid, memory.inode)

    def _is_not_listed(self, pid: int, inode: int) -> bool:
        try:
            with os.scandir(f"{self._proc.root}/{pid}/root{_SEMAPHORES}") as files:
                return all(file.inode() != inode for file in files)
        except OSError:
            return False

    def _is_alone(self, pid: int, memory: Mapped) -> bool:
        if self._mapped is None:
            self._mapped = self._read_maps()
        if not self._whole or any(self._may_be_forked(pid, other) for other in self._unread if other != pid):
            return False
        return self._mapped.get((memory.device, str(memory.inode)), set()) <= {pid}

    def _read_maps(self) -> Dict[Tuple[str, str], Set[int]]:
        """Who maps each file that has lost its name, by device and inode: one pass for whatever is asked."""
        found: Dict[Tuple[str, str], Set[int]] = {}
        until = time.thread_time() + SECONDS
        pids = self._proc.pids()
        self._whole = len(pids) <= _MOST_PROCESSES
        for pid in pids if self._whole else ():
            text = self._proc.text(f"{pid}/maps")
            if time.thread_time() > until:
                self._whole = False
                break
            if isinstance(text, Missing):
                self._unread.append(pid)
                continue
            for file in _DELETED.findall(text) if "(deleted)" in text else ():
                found.setdefault(file, set()).add(pid)
        return found

    def _may_be_forked(self, pid: int, other: int) -> bool:
        """Of a process whose maps may not be read: memory without a name is had by fork alone, which leaves a process
        in its session. Where both have executed a program of their own, neither has the memory of the other."""
        own, its = self._proc.stat(pid), self._proc.stat(other)
        if isinstance(own, Missing):
            return True
        return not isinstance(its, Missing) and its.session == own.session and (own.forked or its.forked)
