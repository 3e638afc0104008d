"""Locks that are files and are asked for again and again: who has the file open."""

import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from gdbext.discovery.locks_pipes_sockets.locks_tried_again import tried_lock, tried_locks
from gdbext.discovery.proc.procfs import ProcFS
from tests.unit.stacks import stack

pytestmark = pytest.mark.process


@contextmanager
def asking(folder, opens=""):
    """A process that has nothing open, or that file, in that folder."""
    code = "import sys; files = list(map(open, sys.argv[1:])); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-S", "-c", code, *([opens] if opens else [])]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, **pipes) as process:
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("named", [str, os.path.basename])
def test_who_made_the_file_has_it_open(tmp_path, named):
    path = tmp_path / "lock"
    with asking(tmp_path) as pid:
        file = os.open(path, os.O_CREAT | os.O_EXCL)
        found = tried_lock(ProcFS(), pid, 7, named(str(path)), exists=True)
        os.close(file)
        assert (found.thread, found.lock, found.processes) == (7, True, (os.getpid(),))
        left = tried_lock(ProcFS(), pid, 7, named(str(path)), exists=True)
        assert (left.lock, left.processes) == (True, ())
        path.unlink()
        assert tried_lock(ProcFS(), pid, 7, named(str(path)), exists=True) is None


def test_a_file_that_is_locked_only_by_the_kernel(tmp_path):
    path = str(tmp_path / "model.lock")
    with asking(tmp_path) as pid, open(path, "w") as file:
        assert tried_lock(ProcFS(), pid, 7, path, exists=False) is None  # free
        fcntl.flock(file, fcntl.LOCK_EX)
        assert tried_lock(ProcFS(), pid, 7, path, exists=False).processes == (os.getpid(),)


def test_a_folder_is_no_lock(tmp_path):
    assert tried_lock(ProcFS(), os.getpid(), 7, str(tmp_path), exists=True) is None


BUSY = ("clock_nanosleep@libc.so.6", "unixSleep@libsqlite3.so.0", "sqlite3InvokeBusyHandler@libsqlite3.so.0")


@pytest.mark.parametrize(
    ("frames", "sleeps", "locked", "found"),
    [(BUSY, 0.1, True, True), (BUSY, 0.1, False, False), (BUSY, None, True, False), (BUSY[:1], 0.1, True, False)],
    ids=["another process has it", "free", "it does not sleep", "it does not ask for a lock"],
)
def test_who_has_the_lock_on_a_data_base_that_is_tried_again(tmp_path, frames, sleeps, locked, found):
    path = str(tmp_path / "kv.db")
    with open(path, "w") as file, asking(tmp_path, path) as pid:
        if locked:
            fcntl.lockf(file, fcntl.LOCK_EX)
        peers = list(tried_locks(ProcFS(), pid, [stack(*frames, lwp=pid, sleeps=sleeps)]))
    assert [(one.file, one.processes, one.lock) for one in peers] == [(path, (os.getpid(),), True)] * found
