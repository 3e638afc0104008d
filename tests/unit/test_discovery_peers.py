"""Who is at the other end: pipes, sockets and eventfds of this very process."""

import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from gdbext.discovery.locks_pipes_sockets import open_files, peers
from gdbext.discovery.locks_pipes_sockets.peers import waits_for
from gdbext.discovery.locks_pipes_sockets.tcp_traffic import Traffic, traffic
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.untimed_calls import POLLED
from gdbext.model.codes import Code
from gdbext.model.locks import LISTENING, NOTHING, UNASKED, UNOPENED, UNSET
from gdbext.model.missing import Missing
from tests.polling import wait_until

READ, WRITE, SEND, RECEIVE, EPOLL_WAIT = 0, 1, 44, 45, 232
MQ_SEND, MQ_RECEIVE = 242, 243


def peer_of(number, *descriptors):
    call = (number, *descriptors) if number == POLLED else (number, *descriptors, 0, 0, 0, 0, 0)
    found = waits_for(ProcFS(), os.getpid(), {1: call, 2: None, 3: (202, 1, 2, 3, 4, 5, 6)})
    assert len(found) <= 1
    return found[0] if found else None


def test_the_ends_of_a_pipe():
    reader, writer = os.pipe()
    assert peer_of(READ, reader).processes == (os.getpid(),)
    assert peer_of(READ, reader).file == f"pipe:[{os.fstat(reader).st_ino}]"
    assert peer_of(WRITE, writer).processes == (os.getpid(),)
    os.close(writer)
    assert not peer_of(READ, reader).processes  # its own end is not the other one
    os.close(reader)


def test_whoever_changes_files_ends_a_wait_for_changes_of_them():
    library = ctypes.CDLL(None)
    watch, (reader, writer) = library.inotify_init1(0), os.pipe()
    assert peer_of(READ, watch).processes.code == Code.CHANGES
    assert peer_of(POLLED, watch, reader).processes.code == Code.CHANGES  # a library has a pipe to wake it up
    for one in (watch, reader, writer):
        os.close(one)


@pytest.mark.process
def test_any_of_several_pipes_will_do():
    reader, writer = os.pipe()
    other, unwritten = os.pipe()
    os.close(unwritten)
    assert peer_of(POLLED, other, reader) is None  # a thread of this very process may write
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=writer) as child:
        os.close(writer)
        wait_until(lambda: peer_of(POLLED, other, reader).processes == (child.pid,))
        child.stdin.close()
    assert not peer_of(POLLED, other, reader).processes
    with closing(socket.socket()) as one:
        assert peer_of(POLLED, reader, one.fileno()) is None
    os.close(reader)
    os.close(other)


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")])
def test_a_tcp_connection_of_this_host(family, host):
    with closing(socket.socket(family)) as server:
        server.bind((host, 0))
        server.listen(1)
        with closing(socket.create_connection(server.getsockname()[:2])) as ours, closing(server.accept()[0]):
            peer = peer_of(RECEIVE, ours.fileno())
            assert peer.processes == (os.getpid(),)
            assert peer.states[0] in "RS"
            assert f":{ours.getsockname()[1]} - " in peer.file
            assert peer.file.endswith(f":{server.getsockname()[1]}")


def test_a_unix_socket_pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = peer_of(RECEIVE, ours.fileno())
        assert peer.file.startswith("unix socket:[")
        assert peer.processes == (os.getpid(),)


def test_a_unix_socket_whose_connection_nobody_has_accepted(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / "engine"))
        listener.listen()
        client.connect(str(tmp_path / "engine"))
        peer = peer_of(RECEIVE, client.fileno())
        assert peer.file.endswith("], not accepted yet")
        assert peer.processes == (os.getpid(),)
        accepted, _ = listener.accept()
        with accepted:
            assert not peer_of(RECEIVE, client.fileno()).file.endswith("yet")


def test_a_socket_of_datagrams_takes_them_of_anybody(tmp_path):
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as box:
        assert peer_of(RECEIVE, box.fileno()).processes.code == Code.OTHER, "nobody can name it"
        box.bind(str(tmp_path / "a box"))
        peer = peer_of(RECEIVE, box.fileno())
        assert (peer.file, peer.processes.code) == (f"unix {tmp_path}/a box, datagrams", Code.SENDERS)
        assert peer_of(SEND, box.fileno()).processes.code == Code.OTHER, "it waits for one that it names"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        assert peer_of(RECEIVE, ours.fileno()).processes == (os.getpid(),)


def test_a_message_queue_by_its_inode():
    library = ctypes.CDLL(None, use_errno=True)
    size = (ctypes.c_long * 8)(0, 1, 8, 0)  # mq_attr: one message of 8 bytes
    queues = []
    for access in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
        name = f"/gdbext-{os.getpid()}".encode()
        queues.append(library.mq_open(name, os.O_CREAT | access, 0o600, size))
        library.mq_unlink(name)  # the next one has the same name
    if min(queues) < 0:
        pytest.skip("no message queues here")
    both, reader, writer = queues
    peer = peer_of(MQ_RECEIVE, both)
    assert peer.file == f"message queue /gdbext-{os.getpid()} [{os.fstat(both).st_ino}]"
    assert peer_of(MQ_SEND, both).processes == peer.processes == (os.getpid(),)
    assert not peer_of(MQ_RECEIVE, reader).processes and not peer_of(MQ_SEND, writer).processes
    for one in queues:
        os.close(one)


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDONLY])
def test_a_named_pipe_that_nobody_opens_at_its_other_end(tmp_path, flags):
    os.mkfifo(tmp_path / "upload")
    opens = threading.Thread(target=lambda: os.close(os.open(tmp_path / "upload", flags)))
    opens.start()
    call = (257, 0xFFFFFF9C, 0, flags | os.O_CREAT, 0, 0, 0)
    tid = opens.native_id or 0
    wait_until(lambda: ProcFS().text(f"{os.getpid()}/task/{tid}/wchan") == "wait_for_partner")
    found = waits_for(ProcFS(), os.getpid(), {tid: call})
    os.close(os.open(tmp_path / "upload", os.O_RDWR))
    opens.join()
    assert [(one.file, one.processes) for one in found] == ([(UNOPENED, ())] if flags == os.O_WRONLY else [])
    assert not waits_for(ProcFS(), os.getpid(), {os.getpid(): call}), "it is not in there"


RING = "SqMask:\t0x7\nSqHead:\t0\nSqTail:\t{tail}\nCachedSqHead:\t{head}\n"


@pytest.mark.parametrize(
    ("tail", "head", "call", "tasks", "found"),
    [(0, 0, (0, 1, 1), "7", True), (1, 0, (0, 1, 1), "7", False), (10, 10, (0, 1, 1), "7", False),
     (0, 0, (1, 1, 1), "7", False), (0, 0, (0, 0, 1), "7", False), (0, 0, (0, 1, 0), "7", False),
     (0, 0, (0, 1, 1), "7 8", False)],
)  # fmt: skip
def test_a_ring_that_never_got_a_request(tmp_path, tail, head, call, tasks, found):
    (tmp_path / "7" / "fdinfo").mkdir(parents=True)
    for task in tasks.split():
        (tmp_path / "7" / "task" / task).mkdir(parents=True)
    (tmp_path / "7" / "task" / "7" / "children").write_text("")
    (tmp_path / "7" / "fdinfo" / "3").write_text(RING.format(tail=tail, head=head))
    rows = waits_for(ProcFS(str(tmp_path)), 7, {7: (426, 3, *call, 0, 0)})
    assert [(one.file, one.processes) for one in rows] == ([(UNASKED, ())] if found else [])


@pytest.mark.parametrize(
    ("value", "children", "found"), [("(0, 0)", "", True), ("(9, 12)", "", False), ("(0, 0)", "8", False)]
)
def test_a_timer_that_is_not_set(tmp_path, value, children, found):
    for folder in ("fd", "fdinfo", "task/7"):
        (tmp_path / "7" / folder).mkdir(parents=True)
    (tmp_path / "7" / "fd" / "3").symlink_to("anon_inode:[timerfd]")
    (tmp_path / "7" / "fdinfo" / "3").write_text(f"clockid: 1\nticks: 0\nit_value: {value}\nit_interval: (0, 0)\n")
    (tmp_path / "7" / "task" / "7" / "children").write_text(children)
    rows = waits_for(ProcFS(str(tmp_path)), 7, {7: (READ, 3, 0, 8, 0, 0, 0)})
    assert [(one.file, one.processes) for one in rows] == ([(UNSET, (7,))] if found else [])


def test_an_eventfd_by_its_number():
    descriptor = ctypes.CDLL(None).eventfd(0, 0)
    other = ctypes.CDLL(None).eventfd(0, 0)
    peer = peer_of(READ, descriptor)
    assert peer.file.startswith("eventfd ")
    assert peer.processes == (os.getpid(),)
    assert peer_of(READ, other).file != peer.file
    os.close(descriptor)
    os.close(other)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_a_wait_for_events_of_a_socket_that_listens(family, tmp_path):
    with closing(socket.socket(family)) as server, closing(select.epoll()) as events, closing(select.epoll()) as quiet:
        server.bind(str(tmp_path / "a") if family == socket.AF_UNIX else ("127.0.0.1", 0))
        pair = socket.socketpair()
        events.register(server, select.EPOLLIN)
        for one in pair:
            quiet.register(one, select.EPOLLIN)
        server.listen(1)
        waits = {7: (EPOLL_WAIT, events.fileno(), 0, 1, 0xFFFFFFFF, 0, 0)}
        (peer,) = waits_for(ProcFS(), os.getpid(), waits)
        assert (peer.processes.code, peer.file.endswith(", listening")) == (Code.ANYBODY, True)
        timed = {7: (EPOLL_WAIT, events.fileno(), 0, 1, 10, 0, 0), 8: (EPOLL_WAIT, quiet.fileno(), 0, 1, 0xFFFFFFFF)}
        (own,) = waits_for(ProcFS(), os.getpid(), timed)
        assert (own.thread, own.processes) == (8, (os.getpid(),)), "both ends of the pair wake up the loop"
        for one in pair:
            one.close()


def test_an_event_loop_that_waits_for_more_than_whoever_connects():
    with closing(socket.create_server(("127.0.0.1", 0))) as server, closing(select.epoll()) as events:
        pair, client = socket.socketpair(), socket.create_connection(server.getsockname())
        for one in (server, pair[0]):  # the pair is there to wake up the loop
            events.register(one, select.EPOLLIN)
        waits = {7: (EPOLL_WAIT, events.fileno(), 0, 1, 0xFFFFFFFF, 0, 0)}
        assert [one.file.endswith(LISTENING) for one in waits_for(ProcFS(), os.getpid(), waits)] == [True]
        events.register(client, select.EPOLLIN)
        assert [one.file.endswith(LISTENING) for one in waits_for(ProcFS(), os.getpid(), waits)] == [False]
        events.unregister(pair[0])
        assert [one.file.endswith(LISTENING) for one in waits_for(ProcFS(), os.getpid(), waits)] == [False]
        for one in (*pair, client):
            one.close()


def test_what_is_no_pipe_and_no_socket():
    with open(os.devnull) as file:
        assert peer_of(READ, file.fileno()) is None
    assert peer_of(READ, 100_000) is None


def test_an_end_on_another_host(tmp_path):
    """A connection in the table whose other half is not."""
    folder = tmp_path / "7"
    (folder / "fd").mkdir(parents=True)
    (folder / "net").mkdir()
    (folder / "fd" / "3").symlink_to("socket:[55]")
    row = "0: 0100007F:1F90 0200000A:0050 01 00000000:00000000 00:00000000 00000000 0 0 55 1 0 20 4 30 10 -1"
    (folder / "net" / "tcp").write_text(f"  sl  local_address\n   {row}\n  garbage\n")
    (peer,) = waits_for(ProcFS(str(tmp_path)), 7, {1: (RECEIVE, 3, 0, 0, 0, 0, 0)})
    assert peer.file == "tcp 127.0.0.1:8080 - 10.0.0.2:80"
    assert isinstance(peer.processes, Missing)


def test_processes_that_cannot_be_looked_into_are_no_proof(tmp_path, monkeypatch):
    reader, writer = os.pipe()
    os.close(writer)
    monkeypatch.setattr(open_files, "SECONDS", -1.0)
    assert isinstance(peer_of(READ, reader).processes, Missing)
    os.close(reader)


def test_what_an_event_loop_leaves_unread():
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs), closing(select.epoll()) as loop, closing(socket.socket()) as server:
        server.listen(1)
        assert peer_of(SEND, theirs.fileno()).unread_by == ()  # no loop watches anything
        loop.register(server, select.EPOLLIN)
        assert peer_of(SEND, theirs.fileno()).unread_by == (os.getpid(),)
        assert peer_of(RECEIVE, theirs.fileno()).unread_by == ()  # it is not written to
        loop.register(ours, select.EPOLLIN)
        assert peer_of(SEND, theirs.fileno()).unread_by == ()
        loop.modify(ours, 0)
        assert peer_of(SEND, theirs.fileno()).unread_by == (os.getpid(),)


def test_a_loop_that_waits_for_room_or_for_another_connection_may_read_later():
    ours, theirs = socket.socketpair()
    client, answer = socket.socketpair()
    with closing(ours), closing(theirs), closing(client), closing(answer), closing(select.epoll()) as loop:
        loop.register(answer, select.EPOLLOUT)
        assert peer_of(SEND, theirs.fileno()).unread_by == ()
        loop.modify(answer, select.EPOLLIN)
        own = peer_of(SEND, theirs.fileno()).unread_by  # both ends are this process': it wakes itself up
        assert own == (os.getpid(),)


def test_an_event_loop_that_watches_nothing_waits_for_its_own_threads(monkeypatch):
    monkeypatch.setattr(peers, "_is_its_own", lambda proc, pid: True)
    with closing(select.epoll()) as loop:
        call = {1: (EPOLL_WAIT, loop.fileno(), 0, 1, 0xFFFFFFFF, 0, 0)}
        (peer,) = waits_for(ProcFS(), os.getpid(), call)
        assert (peer.file, peer.processes) == (NOTHING, (os.getpid(),))
        monkeypatch.setattr(peers, "_is_its_own", lambda proc, pid: False)
        assert waits_for(ProcFS(), os.getpid(), call) == ()  # a child may add a file
        monkeypatch.setattr(peers, "read_fdinfo", lambda *_: "")
        assert waits_for(ProcFS(), os.getpid(), call) == ()


@pytest.mark.process
def test_a_child_that_has_an_epoll_may_have_inherited_it():
    """One that was started with other files alone has not."""
    waits = "import sys; sys.stdin.read()"
    has_one = f"import select; loop = select.epoll(); {waits}"
    words = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdin=0); print(p.wait())"
    )
    for program, own in ((waits, True), (has_one, False)):
        parent = subprocess.Popen([sys.executable, "-c", words, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            wait_until(lambda one=parent, own=own: _children(one.pid) and peers._is_its_own(ProcFS(), one.pid) is own)
        finally:
            parent.communicate()


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def test_who_reads_from_a_connection_is_owed_an_answer_only_where_it_asked():
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        client = socket.create_connection(server.getsockname())
        answers, _ = server.accept()

        def owed():
            return tuple(not peer_of(RECEIVE, one.fileno()).unowed for one in (client, answers))

        def says(one, other):
            one.sendall(b"x")
            assert other.recv(1)
            ends = tuple(f"127.0.0.1:{socket.getsockname()[1]}" for socket in (client, answers))
            # The kernel's clock of connections counts in steps.
            wait_until(lambda: min(traffic([ends])[ends][2:4]) >= 0.01, "the next message is seen to come later")

        with closing(client), closing(answers):
            assert owed() == (True, True)  # nobody has spoken yet: both may wait for a greeting
            says(answers, client)
            assert owed() == (False, False)
            assert peer_of(RECEIVE, client.fileno()).back == peer_of(RECEIVE, answers.fileno()).file
            says(client, answers)
            assert owed() == (True, True)
            says(answers, client)
            assert owed() == (False, False)
            server.close()
            assert owed() == (True, True)  # who has connected to whom is not known any more


@pytest.mark.parametrize(
    ("carried", "server", "nothing"),
    [
        (Traffic(3, 3, 1.0, 1.0, 0), True, True),  # in one moment, as many answers as questions
        (Traffic(4, 3, 1.0, 1.0, 0), True, False),
        (Traffic(3, 4, 1.0, 1.0, 0), False, False),
        (Traffic(3, 3, 1.0, 1.0, 0), False, True),
        (Traffic(9, 2, 1.0, 2.0, 0), True, False),
        (Traffic(2, 9, 2.0, 1.0, 0), True, True),
        (Traffic(2, 9, 2.0, 1.0, 0), False, False),
        (Traffic(0, 9, 5.0, 1.0, 0), True, True),
        (Traffic(0, 9, 5.0, 1.0, 0), False, False),
        (Traffic(0, 0, 5.0, 5.0, 0), False, False),
        (Traffic(0, 0, 5.0, 5.0, 0), True, False),
    ],
)
def test_whose_word_was_the_last(carried, server, nothing):
    assert carried.owes_nothing_to(server) is nothing
