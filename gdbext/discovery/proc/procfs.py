"""The /proc file system, or a tree that looks like it: what can be read of a process without stopping it.

Nothing here raises for a process that is gone or may not be read: the answer is then `Missing` with the reason.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from gdbext.discovery.proc.seccomp import kills_readers, refuses_ptrace
from gdbext.model.codes import Code
from gdbext.model.missing import Maybe, Missing

_MOST_BYTES = 8 << 20
"""No file of /proc is read further than this; maps of a rank are some hundred kilobytes."""

_MOST_FILES = 4096
"""Open files looked at per process."""

GONE = Missing("the process is gone", Code.GONE)
DENIED = Missing("no permission", Code.DENIED)
OVERWRITTEN = Missing("the process title overwrote its environment", Code.OVERWRITTEN)

_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat (linux include/linux/sched.h)."""
_FORKED = 0x00000040
"""PF_FORKNOEXEC, from the same header: forked, and no program was executed since."""


@dataclass(frozen=True)
class Stat:
    """The fields of /proc/PID/stat that we use (proc_pid_stat(5))."""

    pid: int
    comm: str
    state: str
    parent: int
    group: int
    session: int
    flags: int
    threads: int
    start_time: int  # clock ticks after boot

    @property
    def kernel_thread(self) -> bool:
        return bool(self.flags & _KERNEL_THREAD)

    @property
    def forked(self) -> bool:
        """Whether it still has the memory that it was forked with: execve() drops it, shared mappings too."""
        return bool(self.flags & _FORKED)


class ProcFS:
    """Reads below `root`. Tests give a folder of their own."""

    def __init__(self, root: str = "/proc") -> None:
        self.root = root

    def pids(self) -> List[int]:
        """All processes that are visible, in rising order."""
        try:
            return sorted(int(name) for name in os.listdir(self.root) if name.isdigit())
        except OSError:
            return []

    def self_pid(self) -> Optional[int]:
        """Our own pid as this tree sees us; None in a tree without `self`."""
        try:
            name = os.readlink(f"{self.root}/self")
        except OSError:
            return None
        return int(name) if name.isdigit() else None

    def exists(self, pid: int) -> bool:
        return os.path.isdir(f"{self.root}/{pid}")

    def cmdline(self, pid: int) -> Maybe[Tuple[str, ...]]:
        """The arguments; one string where setproctitle has written a title. Empty for kernel threads and zombies."""
        data = self._read(f"{pid}/cmdline")
        if isinstance(data, Missing):
            return data
        return tuple(part.decode("utf-8", "replace") for part in data.rstrip(b"\0").split(b"\0")) if data else ()

    def environ(self, pid: int) -> Maybe[Dict[str, str]]:
        """The environment as it was at exec, unless the process has overwritten it since."""
        data = self._read(f"{pid}/environ")
        return data if isinstance(data, Missing) else parse_environ(data)

    def auxv(self, pid: int) -> Maybe[bytes]:
        """What the kernel told the program at exec(): with random addresses, another text each time."""
        return self._read(f"{pid}/auxv")

    def status(self, pid: int) -> Maybe[Dict[str, str]]:
        """The lines of /proc/PID/status by name."""
        return self._lines(f"{pid}/status")

    def thread_status(self, pid: int, tid: int) -> Maybe[Dict[str, str]]:
        """The same of one thread."""
        return self._lines(f"{pid}/task/{tid}/status")

    def _lines(self, path: str) -> Maybe[Dict[str, str]]:
        data = self._read(path)
        if isinstance(data, Missing):
            return data
        pairs = (line.split(":", 1) for line in data.decode("utf-8", "replace").splitlines() if ":" in line)
        return {name: value.strip() for name, value in pairs}

    def handlers(self, pid: int) -> Optional[Tuple[int, ...]]:
        """Numbers of the signals that the process has handlers for; None where that cannot be read."""
        caught = _mask(self.status(pid), "SigCgt")
        return None if caught is None else _signals(caught)

    def held_back(self, pid: int) -> Tuple[int, ...]:
        """Signals that have come for the process, and that each of its threads blocks: none of them takes one."""
        pending = _mask(self.status(pid), "ShdPnd")
        for tid in self.tasks(pid) if pending else ():
            blocked = _mask(self.thread_status(pid, tid), "SigBlk")
            pending = (pending or 0) & (blocked or 0)
        return _signals(pending or 0)

    def stat(self, pid: int) -> Maybe[Stat]:
        data = self._read(f"{pid}/stat")
        return data if isinstance(data, Missing) else parse_stat(data)

    def tasks(self, pid: int) -> Tuple[int, ...]:
        """Ids of the threads; empty when the process is gone."""
        try:
            return tuple(sorted(int(name) for name in os.listdir(f"{self.root}/{pid}/task") if name.isdigit()))
        except OSError:
            return ()

    def comm(self, pid: int, tid: Optional[int] = None) -> Maybe[str]:
        """Name of the process or of one of its threads: at most 15 bytes."""
        data = self._read(f"{pid}/comm" if tid is None else f"{pid}/task/{tid}/comm")
        return data if isinstance(data, Missing) else data.decode("utf-8", "replace").rstrip("\n")

    def mapped_files(self, pid: int) -> Maybe[Tuple[str, ...]]:
        """Paths of the files that are mapped, each once."""
        data = self._read(f"{pid}/maps")
        if isinstance(data, Missing):
            return data
        return tuple({found.decode("utf-8", "replace"): None for found in _MAPPED_FILE.findall(data)})

    def exe(self, pid: int) -> Maybe[str]:
        """Path of the program."""
        return self._link(f"{pid}/exe")

    def filesystem_root(self, pid: int) -> Maybe[str]:
        """What the process has as `/`: differs from "/" only after a chroot."""
        return self._link(f"{pid}/root")

    def namespace(self, pid: int, kind: str) -> Maybe[str]:
        """Identity of a namespace ("pid", "mnt", "user", "net"), e.g. `pid:[4026531836]`."""
        return self._link(f"{pid}/ns/{kind}")

    def open_files(self, pid: int) -> Maybe[Tuple[str, ...]]:
        """What the file descriptors point to."""
        folder = f"{self.root}/{pid}/fd"
        try:
            names = os.listdir(folder)[:_MOST_FILES]
        except OSError as error:
            return _reason(error)
        links = (self._link(f"{pid}/fd/{name}") for name in names)
        return tuple(link for link in links if isinstance(link, str))

    def owner(self, pid: int) -> Maybe[int]:
        """User id that the process runs as."""
        try:
            return os.stat(f"{self.root}/{pid}").st_uid
        except OSError as error:
            return _reason(error)

    def owner_of_files(self, pid: int) -> Maybe[int]:
        """User id that owns what is in /proc/PID: root instead of the user when the process is not dumpable
        (proc_pid(5)). The folder itself always belongs to the user (kernel: task_dump_owner)."""
        try:
            return os.stat(f"{self.root}/{pid}/status").st_uid
        except OSError as error:
            return _reason(error)

    def text(self, path: str) -> Maybe[str]:
        """Any small file by its path below the root, e.g. `sys/kernel/yama/ptrace_scope` or `1/cgroup`."""
        data = self._read(path)
        return data if isinstance(data, Missing) else data.decode("utf-8", "replace").strip()

    def may_attach(self, pid: int) -> Optional[bool]:
        """Whether the kernel would let us trace the process; None when it cannot be asked.

        Opening /proc/PID/mem runs the same check as an attach (`mm_access` with PTRACE_MODE_ATTACH, Yama and other
        security modules included) and stops nothing.
        """
        try:
            os.close(os.open(f"{self.root}/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            return False if error.errno in (errno.EACCES, errno.EPERM) else None
        return True

    def ptrace_filtered(self) -> Optional[bool]:
        """Whether a filter refuses us the call itself; None where this is not the kernel's own tree."""
        return refuses_ptrace() if self.root == "/proc" else None

    def reading_kills(self) -> bool:
        """Whether a filter kills who reads the memory of a process; no where this is not the kernel's own tree."""
        return self.root == "/proc" and kills_readers()

    def _read(self, path: str) -> Maybe[bytes]:
        try:
            with open(f"{self.root}/{path}", "rb", buffering=0) as file:
                parts = []
                size = 0
                while size < _MOST_BYTES:
                    part = file.read(1 << 16)
                    if not part:
                        break
                    parts.append(part)
                    size += len(part)
            return b"".join(parts)
        except OSError as error:
            return _reason(error)

    def _link(self, path: str) -> Maybe[str]:
        try:
            return os.readlink(f"{self.root}/{path}")
        except OSError as error:
            return _reason(error)


def parse_environ(data: bytes) -> Maybe[Dict[str, str]]:
    """A block of NAME=VALUE strings, each ended by NUL. `Missing` when nothing but NULs is left of it."""
    entries = [entry for entry in data.split(b"\0") if entry]
    if data and not entries:
        return OVERWRITTEN
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in entries)
    return {name: value for name, equals, value in pairs if equals and name}


def _mask(status: Maybe[Mapping[str, str]], name: str) -> Optional[int]:
    """A set of signals; None where the kernel does not tell."""
    try:
        return int("" if isinstance(status, Missing) else status.get(name, ""), 16)
    except ValueError:
        return None


def _signals(mask: int) -> Tuple[int, ...]:
    return tuple(number for number in range(1, 65) if mask >> number - 1 & 1)


def parse_stat(data: bytes) -> Maybe[Stat]:
    """The line of /proc/PID/stat; the name in it may contain blanks and parentheses."""
    text = data.decode("utf-8", "replace")
    first, last = text.find("("), text.rfind(")")
    fields = text[last + 1 :].split()
    try:
        return Stat(
            pid=int(text[:first]),
            comm=text[first + 1 : last],
            state=fields[0],
            parent=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]),
            flags=int(fields[6]),
            threads=int(fields[17]),
            start_time=int(fields[19]),
        )
    except (ValueError, IndexError):
        return Missing("unreadable stat line")


_MAPPED_FILE = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ \S+ [0-9a-f]+ \S+ [1-9]\d* +(/.*)$", re.MULTILINE)


def _reason(error: OSError) -> Missing:
    if error.errno in (errno.ENOENT, errno.ESRCH):
        return GONE
    if error.errno in (errno.EACCES, errno.EPERM):
        return DENIED
    return Missing(os.strerror(error.errno or 0))
