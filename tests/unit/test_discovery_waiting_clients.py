"""Who has asked a server and was sent nothing, as the kernel counts it: connections of this very process."""

import os
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from gdbext.discovery.locks_pipes_sockets import sock_diag, waiting_clients
from gdbext.discovery.proc.procfs import ProcFS

ASKS = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); {}; sys.stdin.read()"


def found(*job):
    own = os.getpid()
    return waiting_clients.waiting_clients(ProcFS(), set(job or (own,)))[own]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(waiting_clients, "_AFTER", 0.0)


def server(family=socket.AF_INET):
    host, dual = ("127.0.0.1", False) if family == socket.AF_INET else ("", True)
    return closing(socket.create_server((host, 0), family=family, dualstack_ipv6=dual))


@pytest.fixture
def asking():
    """Starts another process, which connects, does something and stays."""
    started = []

    def start(listener, does):
        words = [sys.executable, "-c", ASKS.format(does), str(listener.getsockname()[1])]
        started.append(subprocess.Popen(words, stdin=subprocess.PIPE))
        return started[-1].pid, listener.accept()[0]

    yield start
    for process in started:
        process.communicate()


@pytest.mark.process
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_who_was_sent_nothing_waits(family, asking):
    with server(family) as listener:
        pid, ours = asking(listener, "s.sendall(b'GET / ')")
        with ours:
            ours.recv(1, socket.MSG_PEEK)
            (client,) = found()
            port = listener.getsockname()[1]
            assert (client.server, client.pids, client.unread) == (f"127.0.0.1:{port}", (pid,), 6)
            assert client.address.endswith(f":{ours.getpeername()[1]}") and client.names[0].startswith("python")
            assert 0 <= client.seconds < 60
            ours.recv(6)
            assert found()[0].unread == 0
            assert found(os.getpid(), pid) == ()  # it is a process of the job
            ours.sendall(b"HTTP/1.1 200 OK")
            assert found() == ()


@pytest.mark.process
def test_who_has_sent_nothing_or_was_just_heard_is_not_listed(asking, monkeypatch):
    with server() as listener:
        _, silent = asking(listener, "pass")
        _, talks = asking(listener, "s.sendall(b'GET / ')")
        with silent, talks:
            talks.recv(1, socket.MSG_PEEK)
            assert [client.unread for client in found()] == [6]
            monkeypatch.setattr(waiting_clients, "_AFTER", 1000.0)
            assert found() == ()


@pytest.mark.process
def test_an_old_kernel_does_not_count(asking, monkeypatch):
    """Before Linux 4.6 the times are there, and not what was sent."""
    ask = sock_diag.Link.ask

    def short(self, *words):
        for fixed, attributes in ask(self, *words):
            yield sock_diag.Answer(fixed, {2: attributes[2][:104]})

    with server() as listener:
        _, ours = asking(listener, "s.sendall(b'GET / ')")
        with ours:
            ours.recv(1, socket.MSG_PEEK)
            assert len(found()) == 1
            monkeypatch.setattr(sock_diag.Link, "ask", short)
            assert found() == ()


def test_a_refusing_kernel_shows_nobody(monkeypatch):
    def refuses(*_):
        raise PermissionError

    monkeypatch.setattr(sock_diag.Link, "__init__", refuses)
    assert found() == ()


def test_answers_that_are_cut_are_read_as_far_as_they_go():
    whole = b"\x08\x00\x02\x00abcd" + b"\x07\x00\x03\x00xyz\x00"
    assert sock_diag._attributes(whole) == {2: b"abcd", 3: b"xyz"}
    assert sock_diag._attributes(whole[:6]) == {2: b"ab"}
    assert sock_diag._attributes(b"\x00\x00\x00\x00") == {0: b""}
