"""Locks on files: who holds what another process waits for."""

import fcntl
import os
import struct
import subprocess
import sys
from contextlib import contextmanager

import pytest

from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.verdict.judge import judge
from gdbext.discovery.locks_pipes_sockets.file_locks import holder, waits_for_lock
from gdbext.discovery.locks_pipes_sockets.peers import waits_for
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import job, rank, stack

WAITER = "import fcntl, sys; fcntl.{call}(open(sys.argv[1], 'r+'), fcntl.LOCK_EX)"
CALLS = {"flock": 73, "lockf": 72}


@contextmanager
def waiting(path, call, program=None):
    """A process that waits for a lock on the file: its pid and the system call."""
    with subprocess.Popen([sys.executable, "-S", "-c", *(program or (WAITER.format(call=call), path))]) as process:
        try:
            words = [""]
            while words[0] != str(CALLS[call]):
                assert process.poll() is None
                with open(f"/proc/{process.pid}/syscall") as file:
                    words = file.read().split()
                os.sched_yield()
            yield process.pid, [int(word, 0) for word in words[:7]]
        finally:
            process.kill()


@pytest.mark.process
@pytest.mark.parametrize("call", sorted(CALLS))
def test_the_holder_of_a_lock_on_a_file(call, tmp_path):
    path = tmp_path / "cache.lock"
    with open(path, "w") as file:
        getattr(fcntl, call)(file, fcntl.LOCK_EX)
        with waiting(path, call) as (pid, syscall):
            (found,) = waits_for(ProcFS(), pid, {pid: syscall})
    assert (found.lock, found.file, found.processes) == (True, str(path), (os.getpid(),))
    assert found.states[0] in "RS"


OPEN_FILE = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
"""A `struct flock` of the whole file."""


@pytest.mark.process
def test_a_lock_of_an_open_file_is_held_by_who_has_it_open(tmp_path):
    path = tmp_path / "index.lock"
    with open(path, "w") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, OPEN_FILE)
        with waiting(path, "lockf") as (pid, syscall):
            (found,) = waits_for(ProcFS(), pid, {pid: syscall})
            assert (found.lock, found.processes) == (True, (os.getpid(),))


@pytest.mark.process
def test_an_open_file_with_a_read_lock_that_wants_a_write_lock_does_not_wait_for_itself(tmp_path):
    path, shared = tmp_path / "index.lock", OPEN_FILE.replace(b"\x01", b"\x00", 1)
    path.touch()
    upgrades = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+b'); shared, alone = map(bytes.fromhex, sys.argv[2:]);"
        "fcntl.fcntl(file, fcntl.F_OFD_SETLK, shared); fcntl.fcntl(file, fcntl.F_OFD_SETLKW, alone)"
    )
    with open(path, "r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, shared)
        with waiting(path, "lockf", (upgrades, path, shared.hex(), OPEN_FILE.hex())) as (pid, syscall):
            (found,) = waits_for(ProcFS(), pid, {pid: syscall})
            assert found.processes == (os.getpid(),)
            assert isinstance(waits_for(ProcFS(), os.getpid(), {os.getpid(): syscall})[0].processes, Missing)


@pytest.mark.process
def test_a_lock_whose_taker_has_ended_is_held_by_who_has_the_open_file(tmp_path):
    path = tmp_path / "index.lock"
    with open(path, "w") as file:
        subprocess.run(["flock", str(file.fileno())], pass_fds=[file.fileno()], check=True)
        with waiting(path, "flock") as (pid, syscall):
            (found,) = waits_for(ProcFS(), pid, {pid: syscall})
    assert (found.lock, found.processes) == (True, (os.getpid(),))


def test_calls_that_do_not_wait():
    assert not waits_for_lock((73, 3, fcntl.LOCK_EX | fcntl.LOCK_NB, 0, 0, 0, 0))
    assert not waits_for_lock((72, 3, fcntl.F_SETLK, 0, 0, 0, 0))
    assert waits_for_lock((72, 3, 38, 0, 0, 0, 0))  # of an open file: F_OFD_SETLKW
    assert not waits_for_lock((0, 3, 7, 0, 0, 0, 0))


LOCKS = """\
1: POSIX  ADVISORY  WRITE 70 08:01:5 0 EOF
1: -> POSIX  ADVISORY  WRITE 71 08:01:5 0 EOF
1:  -> POSIX  ADVISORY  READ  72 08:01:5 0 EOF
2: FLOCK  ADVISORY  WRITE 0 08:01:6 0 EOF
2: -> FLOCK  ADVISORY  WRITE 71 08:01:6 0 EOF
3: OFDLCK ADVISORY  WRITE -1 08:01:7 0 EOF
3: -> POSIX  ADVISORY  WRITE 73 08:01:7 0 EOF
4: FLOCK  ADVISORY  WRITE 99 08:01:8 0 EOF
4: -> FLOCK  ADVISORY  WRITE 73 08:01:8 0 EOF
5: LEASE  ACTIVE    READ 70 08:01:9 0 EOF
5: -> FLOCK  ADVISORY  WRITE 74 08:01:9 0 EOF
torn
"""


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "70").mkdir()
    (tmp_path / "locks").write_text(LOCKS)
    return ProcFS(str(tmp_path))


def test_who_waits_behind_others_waits_for_the_same_holder(proc):
    assert holder(proc, 71, 5) == holder(proc, 72, 5) == holder(proc, 72, None) == 70


def test_who_was_taken_out_of_the_queue_by_a_debugger_waits_for_who_has_the_file(proc):
    assert holder(proc, 77, 5, "08:01") == 70
    for pid, inode, device in ((77, 5, "08:02"), (77, 4, "08:01"), (77, None, "08:01"), (70, 5, "08:01"), (77, 5, "")):
        assert isinstance(holder(proc, pid, inode, device), Missing)


@pytest.mark.parametrize(
    ("pid", "inode", "why"),
    [
        (71, 6, "another PID namespace"),
        (73, 7, "does not report the owner"),
        (73, 8, "pid 99 took it and has ended"),
        (74, 9, "lists no waiter"),
        (75, 5, "lists no waiter"),
    ],
)
def test_a_holder_that_is_not_known(proc, pid, inode, why):
    found = holder(proc, pid, inode)
    assert isinstance(found, Missing) and why in found.reason


# --- in the graph ---

LOCKING = ("flock@libc.so.6", "load_cache@engine cache.cc:9", "main@engine main.cc:9")


def locking(number, lwp, *holders, states="S"):
    peer = Peer(lwp, "/tmp/cache.lock", holders, tuple(states * len(holders)), ("x",) * len(holders), lock=True)
    return rank(number, stack(*LOCKING, id=str(lwp), lwp=lwp), pid=lwp, peers=(peer,))


def test_the_chain_ends_at_a_process_that_is_no_rank():
    found = judge(job(locking(0, 7, 880))).verdict
    assert [edge.target.label for edge in found.chain] == ["flock(/tmp/cache.lock)", "pid 880 (x)"]
    assert (found.root.kind, found.root.pid) == ("process", 880)
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", ())
    assert "flock(/tmp/cache.lock) for a lock held by pid 880 (x)" in found.summary
    stopped = judge(job(locking(0, 7, 880, states="T"))).verdict
    assert "pid 880 (x), which is stopped" in stopped.summary
    made = report(judge(job(locking(0, 7, 880))))
    assert (made.peers[0].other_end, made.notes) == ("held by pid 880 (x)", ())


def test_a_process_that_holds_the_lock_itself_never_gets_it():
    found = judge(job(locking(0, 7, 7))).verdict
    assert (found.cause, found.culprits) == ("lock-order-deadlock", (0,))
    assert "it already holds" in found.summary


def test_two_ranks_that_wait_for_a_third_one():
    reader = rank(2, stack("read@libc.so.6", "main@engine main.cc:9", id="9", lwp=9), pid=9)
    found = judge(job(locking(0, 7, 9), locking(1, 8, 9), reader)).verdict
    assert found.cause == "unknown"
    assert [edge.target.label for edge in found.chain][:2] == ["flock(/tmp/cache.lock)", "rank 2"]


def test_an_unknown_holder_leaves_it_open():
    peer = Peer(7, "/tmp/cache.lock", Missing("it belongs to an open file"), lock=True)
    found = judge(job(rank(0, stack(*LOCKING, id="7", lwp=7), pid=7, peers=(peer,)))).verdict
    assert (found.cause, found.culprits) == ("unknown", ())
