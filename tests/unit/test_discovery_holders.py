"""Waits whose other end the kernel names: children of this very process, and locks on its files."""

import fcntl
import os
import selectors
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from gdbext.discovery.peers import waits_for
from gdbext.discovery.procfs import ProcFS
from gdbext.knowledge.waits import FILE_LOCK

WAIT4, WAITID, FLOCK, RECEIVE, EPOLL_WAIT = 61, 247, 73, 45, 232
FOR_EVER = 0xFFFFFFFF


def only(pid, tid, *call):
    found = waits_for(ProcFS(), pid, {tid: (*call, *(0,) * (7 - len(call)))})
    assert len(found) <= 1
    return found[0] if found else None


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started.pid
        started.kill()


@pytest.mark.parametrize("call", [(WAIT4, 0), (WAITID, 1, 0)], ids=["wait4", "waitid"])
def test_the_child_that_is_waited_for(child, call):
    call = tuple(child if word == 0 else word for word in call)
    peer = only(os.getpid(), 1, *call)
    assert (peer.file, peer.processes) == (f"pid {child}", (child,))
    assert peer.states[0] in "RSD"


def test_any_child_names_nobody():
    assert only(os.getpid(), 1, WAIT4, 0xFFFFFFFF) is None
    assert only(os.getpid(), 1, WAITID, 0, 0) is None


SAYS = "1: POSIX  ADVISORY  WRITE {other} 00:2f:7 0 EOF\n2: FLOCK  ADVISORY  WRITE {holder} 00:2f:9 0 EOF\n"
WAITS = "2: -> FLOCK  ADVISORY  WRITE {waiter} 00:2f:9 0 EOF\n"


def test_the_holder_of_a_file_lock(tmp_path):
    for pid in (7, 8, 9):
        (tmp_path / str(pid)).mkdir()
    (tmp_path / "locks").write_text(SAYS.format(other=7, holder=8) + WAITS.format(waiter=9))
    found = waits_for(ProcFS(str(tmp_path)), 9, {9: (FLOCK, 3, 2, 0, 0, 0, 0)})
    assert [(one.file, one.processes) for one in found] == [(f"{FILE_LOCK}00:2f:9", (8,))]


def test_a_table_of_locks_that_says_nothing_of_it(tmp_path):
    (tmp_path / "9").mkdir()
    (tmp_path / "locks").write_text(SAYS.format(other=7, holder=8) + "nonsense\n2: -> FLOCK\n")
    assert waits_for(ProcFS(str(tmp_path)), 9, {9: (FLOCK, 3, 2, 0, 0, 0, 0)}) == ()


def test_a_file_lock_of_this_machine(tmp_path):
    """The kernel's own table: a child waits for what we hold."""
    path = tmp_path / "lock"
    source = f"import fcntl; f = open({str(path)!r}); print('there', flush=True); fcntl.flock(f, fcntl.LOCK_EX)"
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen([sys.executable, "-S", "-c", source], stdout=subprocess.PIPE) as waiter:
            assert waiter.stdout.readline() == b"there\n"
            peer = None
            while peer is None and waiter.poll() is None:
                peer = only(waiter.pid, waiter.pid, FLOCK, 3, 2)
            waiter.kill()
    assert peer is not None
    assert peer.processes == (os.getpid(),)


def test_a_connection_that_nobody_has_accepted_is_for_who_listens():
    server = socket.create_server(("127.0.0.1", 0))
    with closing(server), closing(socket.create_connection(server.getsockname())) as ours:
        peer = only(os.getpid(), 1, RECEIVE, ours.fileno())
    assert peer.processes == (os.getpid(),)
    assert peer.file.endswith("not accepted yet")


def test_an_event_loop_with_nothing_but_its_own_wake_up():
    ours, theirs = socket.socketpair()
    with ours, theirs, selectors.EpollSelector() as loop:
        loop.register(ours, selectors.EVENT_READ)
        peer = only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER)
        assert peer.processes == (os.getpid(),)
        assert only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, 1000) is None, "a timer wakes it up"
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            loop.register(server, selectors.EVENT_READ)
            assert only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER) is None, "a client may come"
