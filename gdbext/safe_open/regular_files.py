"""Opens regular files that a target, a core file or a snapshot names, and nothing else.

A FIFO would wait for its writer, a terminal for its carrier, and to open a device can do something (a watchdog begins
to count). So the place is looked up first, without opening it; what is not a regular file there is refused by name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from typing import NamedTuple, Optional

from gdbext.knowledge.runtimes.file_systems import PSEUDO
from gdbext.safe_open import path_lookup

LARGEST = 1 << 36
"""Bytes of a file beyond which it is refused: a sparse one of 8 EiB takes no room, and for ever to be read."""
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link of the kernel"),
)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


class Identity(NamedTuple):
    """Which file it is. `content` changes when it is written to."""

    device: int
    inode: int
    content: int = 0


def identity_of(status: os.stat_result) -> Identity:
    """Of an open file, or of what a path meant a moment ago."""
    return Identity(status.st_dev, status.st_ino, hash((status.st_size, status.st_mtime_ns)))


class Refused(OSError):
    """It is there, and is not opened: `strerror` says what it is."""

    identity: Optional[Identity] = None


def open_regular(path: str, root: Optional[str] = None, most: int = LARGEST, links: bool = True) -> int:
    """A descriptor of the regular file that a path means, to read. Raises `OSError`, `Refused` among them. `root` and
    `links`: see lookup.place."""
    at = path_lookup.place(path, root, links)
    try:
        status = os.fstat(at)
        why = _objection(at, status, most)
        if why:
            refused = Refused(errno.EINVAL, why, path)
            refused.identity = identity_of(status)
            raise refused
        return os.open(f"/proc/self/fd/{at}", _READ)
    finally:
        os.close(at)


def open_folder(path: str, root: Optional[str] = None, links: bool = True) -> int:
    """A descriptor of the folder that a path means, to list it. Raises `OSError`."""
    at = path_lookup.place(path, root, links)
    try:
        return os.open(f"/proc/self/fd/{at}", _READ | os.O_DIRECTORY)
    finally:
        os.close(at)


def _objection(at: int, status: os.stat_result, most: int) -> str:
    for test, name in _KINDS:
        if test(status.st_mode):
            return f"it is {name}, not a regular file"
    if status.st_size > most:
        return f"it has {status.st_size} bytes, more than the limit of {most}"
    kind = PSEUDO.get(_file_system(at))
    return f"it is a file of {kind}, not a regular file" if kind else ""


def _file_system(at: int) -> int:
    """f_type of statfs(2), the first word of what it fills in."""
    room = (ctypes.c_ulong * 64)()
    return int(room[0]) & 0xFFFFFFFF if _libc.fstatfs(at, room) == 0 else 0
