"""Waits whose other end the kernel names: children, connections, event loops."""

import os
import selectors
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from gdbext.discovery.peers import waits_for
from gdbext.discovery.procfs import ProcFS

WAIT4, WAITID, RECEIVE, EPOLL_WAIT = 61, 247, 45, 232
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
