"""Locks that are files and are asked for again and again: who has the file open."""

import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from gdbext.discovery.locks_pipes_sockets.locks_tried_again import tried_lock
from gdbext.discovery.proc.procfs import ProcFS

pytestmark = pytest.mark.process


@contextmanager
def asking(folder):
    """A process that has nothing open, in that folder."""
    command = [sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()"]
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
