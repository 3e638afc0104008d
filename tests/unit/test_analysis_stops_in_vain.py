"""A call that stops something and joins a thread that waits for its next request; and its twins."""

from dataclasses import replace

import pytest

from gdbext.model.codes import Code
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, READ, lasting, process

JOINED = ("__pthread_clockjoin_ex@libc.so.6", "std::thread::join@libstdc++.so.6")
RECEIVES = ("recv@libc.so.6", "Stream::receive@program stream.cpp:29")
THERE, BACK = "tcp 127.0.0.1:80 - 127.0.0.1:90", "tcp 127.0.0.1:90 - 127.0.0.1:80"
WAIT = LockWait(100, "join", 4096, 110, still=True)


def joins(*frames):
    return stack(*JOINED, *frames, "main@program main.cpp:56", state="S", syscall=FUTEX, switches=0)


def reads(*frames):
    return stack(*RECEIVES, *frames, "main@program main.cpp:63", state="S", syscall=READ, switches=0)


def answers(unowed=True, there=THERE, back=BACK, thread=110):
    return Peer(thread, there, (101,), ("S",), ("program",), unowed=unowed, back=back)


def asks(unowed=True):
    return Peer(101, BACK, (100,), ("S",), ("program",), unowed=unowed, back=THERE)


def server(*frames, unowed=True):
    return process(0, joins(*frames), reads("handle@program"), locks=(WAIT,), peers=(answers(unowed),))


CLIENT = process(1, reads(), peers=(asks(),))
STOPS = "Server::stop@program server.cpp:338"


def test_who_stops_a_server_and_waits_for_a_thread_at_rest_is_named():
    found = lasting(server(STOPS), CLIENT)
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "waits there for the end of thread 110 of pid 100" in found.summary
    assert "which waits for its next request in Stream::receive (stream.cpp:29)" in found.summary


@pytest.mark.parametrize(
    "processes",
    [
        (server("Server::run@program server.cpp:338"), CLIENT),
        (server(STOPS, unowed=False), process(1, reads(), peers=(asks(False),))),
        (server(STOPS), process(1, stack("fill@program", *MAIN, state="R", cpu=0.9, switches=9), peers=(asks(),))),
    ],
    ids=["it stops nothing", "an answer is due", "the client works"],
)
def test_it_is_not_named_where_the_thread_may_end(processes):
    assert "next request" not in lasting(*processes).summary


def test_a_short_look_does_not_tell():
    found = lasting(server(STOPS), CLIENT, seconds=3.0)
    assert (found.cause, found.finding) == ("unknown", False)
    assert found.summary.endswith("which waits for its next request in Stream::receive (stream.cpp:29).")
    assert found.decided_by is not None


IN_PYTHON = (
    "_wait_for_tstate_lock@/usr/lib/python3.11/threading.py:1139",
    "join@/usr/lib/python3.11/threading.py:1119",
)


@pytest.mark.parametrize(("name", "named"), [("Worker.shutdown", True), ("Worker.run", False)])
def test_python_that_stops_a_thread_is_seen_behind_the_standard_library(name, named):
    frames = ("sem_wait@libc.so.6", *IN_PYTHON, f"{name}@worker.py:8", *MAIN)
    stops = stack(*frames, state="S", syscall=FUTEX, switches=0)
    one = process(0, stops, reads("handle@program"), locks=(WAIT,), peers=(answers(),))
    assert ("next request" in lasting(one, CLIENT).summary) is named


def test_a_thread_that_was_woken_is_on_its_way():
    woken = replace(server(STOPS), threads=tuple(replace(one, switches=2) for one in server(STOPS).threads))
    assert "next request" not in lasting(woken, CLIENT).summary


WAITPID = (61, 101, 1, 0, 0, 0, 0)
SERVES = ("accept4@libc.so.6", "sock_accept@python3", "socket.accept@/usr/lib/python3.11/socket.py:294", "serve@a.py:7")
CHILD = ("wait4@libc.so.6", "os_waitpid@python3", "Popen.wait@/usr/lib/python3.11/multiprocessing/popen_fork.py:43")
AT_EXIT = ("_exit_function@/usr/lib/python3.11/multiprocessing/util.py:357", "Py_FinalizeEx@python3")


def parent(*frames, then=()):
    waits = stack(*CHILD, *frames, state="S", syscall=WAITPID, switches=0)
    peer = Peer(100, "pid 101", (101,), ("S",), ("python",), then=then)
    return process(0, waits, peers=(peer,))


def listener(at, number=1):
    waits = stack(*SERVES, *MAIN, state="S", syscall=(288, 6, 1, 1, 0, 0, 0), switches=0)
    peer = Peer(100 + number, f"{at}, listening", Missing("anybody", Code.ANYBODY))
    return process(number, waits, peers=(peer,))


@pytest.mark.parametrize(
    ("frames", "at", "cause"),
    [
        (AT_EXIT, "unix socket:[5]", "destructor-or-teardown"),
        (AT_EXIT, "tcp 0.0.0.0:80", "not-a-hang"),  # a server that its program has started last
        (("Engine.shutdown@engine.py:5", *MAIN), "tcp 0.0.0.0:80", "other"),
        (("Supervisor.run@engine.py:5", *MAIN), "unix socket:[5]", "not-a-hang"),
    ],
    ids=["at exit", "a server of the network", "it stops it", "it watches it"],
)
def test_who_waits_for_the_end_of_a_server_at_rest(frames, at, cause):
    found = lasting(parent(*frames), listener(at))
    assert found.cause == cause
    assert found.culprits == ((0,) if found.cause != "not-a-hang" else ())


def test_who_keeps_a_file_open_of_which_a_process_that_was_not_read_waits_for_the_end():
    then = (Peer(101, "pipe:[4711]", (102,), ("S",), ("python",)),)
    found = lasting(parent(*AT_EXIT, then=then), listener("tcp 0.0.0.0:80", 2))
    assert (found.cause, found.culprits) == ("destructor-or-teardown", (0,))
    assert "for the end of pid 101, which waits for a file that is open in pid 102" in found.summary
