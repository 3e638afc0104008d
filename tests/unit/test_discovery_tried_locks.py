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
def asking(folder, opens=(), then="pass"):
    """A process that has these files open, in that folder, and has done something with them."""
    code = "import fcntl, sys; files = [open(name, 'a+') for name in sys.argv[1:]]"
    command = [sys.executable, "-S", "-c", f"{code}; {then}; print(flush=True); sys.stdin.read()", *opens]
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


COMMITS = "fcntl.lockf(files[0], fcntl.LOCK_EX, 2, 0x40000000)"
WRITES, READS, IS_OPEN, ALL = (2, 0x40000001), (510, 0x40000002), (1, 128), (0, 0)


@pytest.mark.parametrize(
    ("frames", "sleeps", "locks", "found"),
    [
        (BUSY, 0.1, [(fcntl.LOCK_EX, *WRITES)], True),
        (BUSY, 0.1, [], False),
        (BUSY, None, [(fcntl.LOCK_EX, *WRITES)], False),
        (BUSY[:1], 0.1, [(fcntl.LOCK_EX, *WRITES)], False),
        (BUSY, 0.1, [(fcntl.LOCK_SH, *READS)], False),
        (BUSY, 0.1, [(fcntl.LOCK_SH, *IS_OPEN)], False),
        (BUSY, 0.1, [(fcntl.LOCK_EX, *ALL)], False),
    ],
    ids=[
        "another process writes",
        "free",
        "it does not sleep",
        "it does not ask for a lock",
        "another one reads: then a thread of its own writes",
        "another one has it open",
        "no lock of SQLite",
    ],
)
def test_who_has_the_lock_on_a_data_base_that_is_tried_again(tmp_path, frames, sleeps, locks, found):
    path = str(tmp_path / "kv.db")
    with open(path, "w+") as file, asking(tmp_path, [path]) as pid:
        for kind, size, start in locks:
            fcntl.lockf(file, kind, size, start)
        peers = list(tried_locks(ProcFS(), pid, [stack(*frames, lwp=pid, sleeps=sleeps)]))
    assert [(one.file, one.processes, one.lock) for one in peers] == [(path, (os.getpid(),), True)] * found


OWN = "fcntl.lockf(files[0], fcntl.LOCK_EX, 510, 0x40000002)"


def test_another_connection_of_the_process_itself_may_have_the_lock(tmp_path):
    path = str(tmp_path / "kv.db")
    with asking(tmp_path, [path], OWN) as pid:
        peers = list(tried_locks(ProcFS(), pid, [stack(*BUSY, lwp=pid, sleeps=0.1)]))
    assert [(one.file, one.processes) for one in peers] == [(path, (pid,))]


def test_who_reads_a_data_base_keeps_its_writer_from_the_commit(tmp_path):
    path = str(tmp_path / "kv.db")
    with open(path, "w+") as file, asking(tmp_path, [path], COMMITS) as pid:
        fcntl.lockf(file, fcntl.LOCK_SH, *READS)
        peers = list(tried_locks(ProcFS(), pid, [stack(*BUSY, lwp=pid, sleeps=0.1)]))
    assert [(one.file, one.processes) for one in peers] == [(path, (os.getpid(),))]


def test_of_two_data_bases_that_are_locked_by_others_nobody_knows_which_it_waits_for(tmp_path):
    paths = [str(tmp_path / name) for name in ("kv.db", "log.db")]
    with asking(tmp_path, paths) as pid, open(paths[0], "w+") as file, asking(tmp_path, paths[1:], COMMITS):
        fcntl.lockf(file, fcntl.LOCK_EX, *WRITES)
        assert list(tried_locks(ProcFS(), pid, [stack(*BUSY, lwp=pid, sleeps=0.1)])) == []
