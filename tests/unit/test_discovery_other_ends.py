"""Waits whose other end the kernel names: children, connections, event loops."""

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

from gdbext.capture.without_stop.sleeping_threads import asleep_in
from gdbext.discovery.locks_pipes_sockets.peers import waits_for
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.codes import Code
from gdbext.model.locks import LISTENING
from tests.polling import DEADLINE

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


@pytest.mark.process
@pytest.mark.parametrize("call", [(WAIT4, 0), (WAITID, 1, 0)], ids=["wait4", "waitid"])
def test_the_child_that_is_waited_for(child, call):
    call = tuple(child if word == 0 else word for word in call)
    peer = only(os.getpid(), 1, *call)
    assert (peer.file, peer.processes) == (f"pid {child}", (child,))
    assert peer.states[0] in "RSD"


@pytest.mark.parametrize(
    ("children", "states", "found"),
    [("", "", ()), ("8 9", "SS", (8, 9)), ("8 9", "SZ", ()), (" ".join(map(str, range(8, 40))), "S" * 32, ())],
    ids=["none", "two", "one has ended", "many"],
)
def test_any_child_is_one_of_a_few_that_live(tmp_path, children, states, found):
    (tmp_path / "7" / "task" / "7").mkdir(parents=True)
    (tmp_path / "7" / "task" / "7" / "children").write_text(children)
    for pid, state in zip(children.split(), states):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(f"{pid} (worker) {state} 7 {'0 ' * 60}")
    rows = waits_for(ProcFS(str(tmp_path)), 7, {7: (WAIT4, 0xFFFFFFFF, 0, 0, 0, 0, 0)})
    assert [(one.file, one.children) for one in rows] == ([("the first of pids 8, 9 to end", found)] if found else [])
    assert not waits_for(ProcFS(str(tmp_path)), 7, {7: (WAITID, 0, 0, 0, 0, 0, 0)})


@pytest.mark.process
def test_the_process_of_a_pidfd(child):
    descriptor = os.pidfd_open(child)
    peer = only(os.getpid(), 1, 0, descriptor)
    os.close(descriptor)
    assert (peer.file, peer.children) == (f"pid {child}", (child,))


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
            peer = only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER)
            assert peer.processes.code == Code.ANYBODY, "a client may come"


def test_an_event_loop_with_several_wake_ups_of_its_own_as_uvloop_has():
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    with ours, theirs, selectors.EpollSelector() as loop, open(read, "rb") as pipe, open(write, "wb"):
        loop.register(ours, selectors.EVENT_READ)
        loop.register(pipe, selectors.EVENT_READ)
        peer = only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER)
        assert (peer.file[:6], peer.processes) == ("unix s", (os.getpid(),))
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            loop.register(server, selectors.EVENT_READ)
            peer = only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER)
            assert peer.file.endswith(LISTENING), "and nothing else from outside"
            loop.unregister(pipe)
            event = ctypes.CDLL(None).eventfd(0, 0)
            loop.register(event, selectors.EVENT_READ)
            peer = only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER)
            assert peer.file.endswith("and more"), "a thread of ZeroMQ may bring messages"
            loop.register(pipe, selectors.EVENT_READ)
            peer = only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER)
            assert peer.file.endswith(LISTENING), "that is libuv's"
            loop.unregister(event)
            os.close(event)
            with closing(socket.create_connection(server.getsockname())) as client:
                loop.register(client, selectors.EVENT_READ)
                peer = only(os.getpid(), 1, EPOLL_WAIT, loop.fileno(), 0, 1, FOR_EVER)
                assert peer.file.endswith("and more")


WAITS_FOR_ITS_OUTPUT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", "print('x' * (1 << 20))"], stdout=subprocess.PIPE)
child.wait()
"""
ASKS_A_SHELL = """
import subprocess
subprocess.Popen("cat; exit", shell=True, stdin=subprocess.PIPE).wait()
"""


def beyond(source, depth):
    """The waits of a program and of those that it waits for, when all of them sleep."""
    proc, until, peers, before = ProcFS(), time.monotonic() + DEADLINE, [], None
    with subprocess.Popen([sys.executable, "-S", "-c", source]) as started:
        try:
            while time.monotonic() < until:
                _, call = asleep_in(started.pid, started.pid) or (None, None)
                peers = [*waits_for(proc, started.pid, {started.pid: call}, asleep_in)]
                while peers and peers[-1].then:
                    peers.append(peers[-1].then[0])
                if len(peers) >= depth and peers == before:  # a child has its program's name a moment after its start
                    return started.pid, peers
                before = peers
        finally:
            for peer in peers:
                for pid in peer.processes:
                    if pid != started.pid:
                        with suppress(ProcessLookupError):  # it ends by itself when the one before it was killed
                            os.kill(pid, 9)
            started.kill()
    raise AssertionError(peers)


@pytest.mark.process
def test_a_child_that_nobody_asked_for_writes_what_its_parent_does_not_read():
    pid, (child, pipe) = beyond(WAITS_FOR_ITS_OUTPUT, 2)
    assert child.file.startswith("pid ")
    assert pipe.file.startswith("pipe:") and pipe.processes == (pid,) and not pipe.then


@pytest.mark.process
def test_a_shell_and_what_it_runs():
    pid, (shell, cat, pipe) = beyond(ASKS_A_SHELL, 3)
    assert (shell.names, cat.names) == (("sh",), ("cat",))
    assert pipe.processes == (pid,)


@pytest.mark.process
def test_what_is_stopped_may_have_an_answer():
    """Nobody looks behind its other end: the two were not seen to wait at one moment."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as started:
        os.kill(started.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, started.pid, os.WSTOPPED | os.WNOWAIT)
        assert asleep_in(started.pid, started.pid) is None
        started.kill()
