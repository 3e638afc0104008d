"""A folder for copies of a target's memory: nobody else can read it, and it goes away with us, whatever ends us."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Iterator

from gdbext.capture.cleanup_shell import Outliving
from gdbext.capture.copies.held_note import HELD
from gdbext.model.errors import GdbextError

_ENOUGH = 64 << 20  # bytes free; the copy of a rank has some megabytes
_SHARED_MEMORY, _PLENTY = "/dev/shm", 1 << 30  # noqa: S108 - ranks may live on it: only where it has room for everybody

_NOT_NOW = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Held back until somebody knows of the folder."""

# A stop that lasts too long ends us (capture/stop/kill_timer.py). A file that a dying gdb still writes costs another
# try.
_CLEAN_UP = """
read -r line && exit
held=$1/HELD
if [ -s "$held" ] && read -r since limit pids <"$held" && read -r up rest </proc/uptime && [ -n "$pids" ]; then
    long=$((${up%.*}${up#*.} - since))
    [ $long -lt $limit ] || echo "gdbext: suspended for $((long / 100)) s while it held pid $pids\
 (SIGSTOP, a frozen cgroup?); the kernel killed it, so the threads keep running" >&2
fi
exec 2>/dev/null
for i in 1 2 3; do rm -rf -- "$1" && exit; sleep 1; done
""".replace("HELD", HELD)


@contextlib.contextmanager
def private_copies() -> Iterator[Path]:
    """The folder. Raises `GdbextError` where there is no place for one."""
    place = place_for_copies()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_NOW)
    try:
        folder = tempfile.mkdtemp(prefix="gdbext-", dir=place)
        janitor = Outliving(_CLEAN_UP, "gdbext-clean-up", folder, speaks=True)
    except OSError as error:
        raise _no_place(f"{place}: {error.strerror}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        janitor.tell("done")
        janitor.end()


def place_for_copies() -> str:
    """Where temporary files belong ($TMPDIR, /tmp, ...); when that is full or missing, the shared memory.

    Raises `GdbextError` where there is none.
    """
    try:
        usual = tempfile.gettempdir()
    except OSError as error:
        if _room(_SHARED_MEMORY) < _PLENTY:
            raise _no_place(error.strerror or str(error)) from None
        return _SHARED_MEMORY
    return _SHARED_MEMORY if _room(usual) < _ENOUGH and _room(_SHARED_MEMORY) >= _PLENTY else usual


def _no_place(why: str) -> GdbextError:
    return GdbextError(f"no folder for temporary files ({why})", "set TMPDIR to a writable folder: TMPDIR=/some/folder")


def _room(folder: str) -> int:
    """Bytes free for us there; 0 where we cannot write."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize if os.access(folder, os.W_OK | os.X_OK) else 0
