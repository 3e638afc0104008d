"""Locks that are files and are tried again and again: where a waiting function of Python keeps the name of its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

LOCK_FILE = "lock_file"
"""What a captured name of such a file is called."""


@dataclass(frozen=True)
class LockFileRow:
    """`function` is matched in full against the last part of a function's name, `file` searched in its file; `local` is
    a variable there, `attribute` one of its own. `exists`: it is locked while the file is there, and whoever made it
    keeps it open."""

    function: str
    file: str
    local: str
    source: str
    attribute: str = ""
    exists: bool = False


LOCK_FILES: Tuple[LockFileRow, ...] = (
    LockFileRow(
        "wait", r"torch/utils/file_baton\.py$", "self", "torch/utils/file_baton.py", "lock_file_path", exists=True
    ),
    LockFileRow(
        "acquire|_poll_until_acquired",
        r"(^|/)filelock(/_\w+){0,3}\.py$",
        "lock_filename",
        "filelock BaseFileLock.acquire; 4.x _core/_acquire.py",
    ),
)
"""A new library is a row."""

TRIES_OPENED = r"sqlite3InvokeBusyHandler$|sqliteDefaultBusyCallback$"
"""Functions of C that sleep between two tries to lock a file which they have open (sqlite3_busy_timeout): no argument
names it, but the kernel says who has the lock."""

SQLITE_WRITES = ((120, 127), (0x40000000, 0x400001FF))
"""Bytes on which SQLite locks by fcntl(2) what only one connection may have: of the -shm file of a data base in WAL
mode (os_unix.c UNIX_SHM_BASE; a read lock of byte 128 only says that it is open), and of the data base itself (os.h
PENDING_BYTE, RESERVED_BYTE, SHARED_FIRST)."""
SQLITE_READS = ((0x40000002, 0x400001FF),)
"""Bytes whose read locks keep who commits, and has locked SQLITE_COMMITS for that, from it."""
SQLITE_COMMITS = 0x40000000
