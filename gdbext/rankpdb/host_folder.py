"""The files that ranks of several hosts leave for each other: one folder of this user, with sheets and marks in it.

A sheet is named JOB.RANK.HOST.PID.START, so that no two processes ever write the same; a mark is SHEET.READER, and what
is just being written has a dot before it. Everything else is none of ours, nor are links and files of other users.

Hosts have clocks of their own: times are compared with the time of a file just written, which the file system gives.
Names are looked up by listing, and a sheet is opened for each look: NFS answers `stat` from its cache for a while.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Dict, List, Optional, Set, Tuple

from gdbext.rankpdb.identity import is_ending, start_time

Place = Tuple[str, int]
_LONGEST = 1 << 20  # bytes of a sheet
_TRIES = 20  # the folder may go between its making and its use
_NAME = re.compile(
    r"(?P<new>\.?)(?P<sheet>(?P<job>[0-9a-f]{12}-\d+)\.(?P<rank>\d+)\.(?P<host>[0-9a-f]{8})\.(?P<pid>\d+)"
    r"\.(?P<start>\d+))(?P<reader>\.\d+)?",
    re.ASCII,
)


@dataclass
class RankRecord:
    """What a rank says of itself."""

    job: str
    host: str
    pid: int
    start: str
    sign: float  # the file system's time of the last sign of life
    passed: Dict[str, int] = field(default_factory=dict)  # file:line -> the last time that nobody need wait for it
    open: List[Place] = field(default_factory=list)  # where others wait for it
    readers: Set[int] = field(default_factory=set)  # ranks of other hosts, each of which may want to read this
    ended: bool = False

    def is_alive(self) -> Optional[bool]:
        """None: its host is another one."""
        if self.host != host():
            return None
        return start_time(self.pid) == self.start and not is_ending(self.pid, self.start)


class RankRecords:
    """The folder. Its methods raise OSError; PermissionError when it is not this user's."""

    def __init__(self, shared: str, job: str, rank: int) -> None:
        self.mine = f"{job}.{rank}.{host()}.{os.getpid()}.{start_time(os.getpid())}"
        self._home = os.path.join(shared, f"gdbext-pdb-{os.geteuid()}")
        self._owner = -1  # of the files that this process writes

    def names(self) -> Dict[str, Set[str]]:
        """The sheets, and what belongs to each. Nothing as long as the folder is not there."""
        found: Dict[str, Set[str]] = {}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._home):
                match = _NAME.fullmatch(name)
                if match is not None:
                    found.setdefault(match["new"] + match["sheet"], set()).add(name)
        return found

    def now(self) -> float:
        """The file system's time. Raises FileNotFoundError when the folder is gone."""
        now = self._new("", make=False)
        os.unlink(self._path("." + self.mine))
        return now

    def write(self, sheet: RankRecord) -> None:
        """Ours, in one piece."""
        said = {"passed": sheet.passed, "open": sheet.open, "readers": sorted(sheet.readers), "ended": sheet.ended}
        self._new(json.dumps(said), make=True)
        os.rename(self._path("." + self.mine), self._path(self.mine))

    def touch(self) -> bool:
        """A sign of life; False when our sheet is gone."""
        try:
            os.utime(self._path(self.mine))
        except FileNotFoundError:
            return False
        return True

    def mark(self, name: str) -> None:
        os.close(os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

    def read(self, name: str) -> Optional[RankRecord]:
        """None when it is gone, or is none of ours."""
        match = _NAME.fullmatch(name)
        try:
            file = os.open(self._path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
                return None
            raise
        try:
            found = os.fstat(file)
            text = os.read(file, _LONGEST) if self._is_ours(found) else None
        finally:
            os.close(file)
        if text is None or match is None:
            return None
        sheet = RankRecord(
            job=match["job"], host=match["host"], pid=int(match["pid"]), start=match["start"], sign=found.st_mtime
        )
        try:
            said = json.loads(text)
            sheet.passed = {str(site): int(hit) for site, hit in said["passed"].items()}
            sheet.open = [(str(site), int(hit)) for site, hit in said["open"]]
            sheet.readers, sheet.ended = {int(rank) for rank in said["readers"]}, bool(said["ended"])
        except (ValueError, KeyError, TypeError, AttributeError):
            sheet.readers = {-1}  # nobody has read it
        return sheet

    def age(self, name: str, now: float) -> float:
        """Seconds since it was written; 0 when it is gone."""
        try:
            return now - os.lstat(self._path(name)).st_mtime
        except FileNotFoundError:
            return 0.0

    def remove(self, names: Set[str]) -> None:
        """Marks before their sheet, so that another one can go on when this process is stopped here."""
        for name in sorted(names, reverse=True):
            with contextlib.suppress(OSError):  # gone already: another rank does the same
                if self._is_ours(os.lstat(self._path(name))):
                    os.unlink(self._path(name))

    def leave(self) -> None:
        """The folder goes when nothing is in it."""
        with contextlib.suppress(OSError):
            os.rmdir(self._home)

    def _path(self, name: str) -> str:
        return os.path.join(self._home, name)

    def _new(self, text: str, make: bool) -> float:
        """Write `.mine`; returns the file system's time."""
        path = self._path("." + self.mine)
        file = self._create(path, make)
        try:
            os.write(file, text.encode())
            os.utime(file)  # the server's clock, also where the client would give its own to what it writes
            found = os.fstat(file)
        finally:
            os.close(file)
        if os.lstat(self._home).st_uid != found.st_uid:  # not geteuid(): a server may map root to somebody else
            os.unlink(path)
            raise PermissionError(f"{self._home} is not a folder of this user")
        self._owner = found.st_uid
        return found.st_mtime

    def _create(self, path: str, make: bool) -> int:
        for left in reversed(range(_TRIES)):
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self._home, 0o700)
            try:
                if not stat.S_ISDIR(os.lstat(self._home).st_mode):
                    raise PermissionError(f"{self._home} is not a folder")
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:  # another rank has just left
                if not left or not make:
                    raise
        raise AssertionError

    def _is_ours(self, found: os.stat_result) -> bool:
        if self._owner < 0:
            self.now()
        return stat.S_ISREG(found.st_mode) and found.st_uid == self._owner


def host() -> str:
    """This host, as far as its process numbers go: containers of one host may have the same name."""
    said = [os.uname().nodename]
    with contextlib.suppress(OSError):
        said.append(os.readlink("/proc/self/ns/pid"))
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            said.append(file.read())
    return sha256("\0".join(said).encode()).hexdigest()[:8]


def age_of_this_process() -> float:
    """Seconds since it was started."""
    ticks = int(start_time(os.getpid()))
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")) if ticks else 0.0
