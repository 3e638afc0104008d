"""Processes that wait for the answer to a request, and what they have asked; twins that wait for work."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.locks import LISTENING, Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, READ, SELECTS, live, process
from tests.unit.test_analysis_loop_tasks import ANYBODY, EVER, LIMITED, LISTENS, LOOPS, found, server, task

ANSWER = ("recv@libc.so.6", "SocketIO.readinto@/usr/lib/python3.11/socket.py:706",
          "HTTPResponse._read_status@/usr/lib/python3.11/http/client.py:286")  # fmt: skip
ZMQ = (
    "poll@libc.so.6",
    "zmq_msg_recv@libzmq.so.5",
    "Socket.recv_pyobj@/venv/lib/python3.11/site-packages/zmq/socket.py:9",
)
STILL = {"switches": 0, "state": "S"}


def asks(*frames, ends=(101,), by="generate@client.py:9", call=READ):
    thread = stack(*frames, by, *MAIN, syscall=call, **STILL)
    return process(0, thread, peers=(Peer(100, "tcp 127.0.0.1:4 - 127.0.0.1:80", ends),))


def rests(call=EVER, switches=0):
    loop = stack(*SELECTS, *LOOPS, *MAIN, syscall=call, switches=switches, state="S")
    return process(1, loop, peers=(Peer(101, f"tcp 127.0.0.1:80{LISTENING}", ANYBODY),))


def over_time(*processes, seconds=21.0):
    now = live(*processes)
    return judge(replace(now, taken_at=seconds, earlier=(replace(now, taken_at=0.0),))).verdict


@pytest.mark.parametrize(
    ("asking", "asked", "seconds", "cause", "confidence"),
    [
        (asks(*ANSWER), rests(), 21.0, "other", "medium"),
        (asks(*ANSWER), rests(LIMITED), 21.0, "other", "low"),
        (asks(*ANSWER), rests(), 5.0, "unknown", "low"),
        (asks(*ANSWER, ends=(880,)), rests(), 21.0, "unknown", "low"),
        (asks(*ANSWER[:2], by="serve@worker.py:9"), rests(), 21.0, "not-a-hang", "low"),
    ],
    ids=["a request", "the other side has a timer", "not for long", "of another program", "a message"],
)
def test_a_request_to_a_server_that_rests_is_not_worked_on(asking, asked, seconds, cause, confidence):
    answer = over_time(asking, asked, seconds=seconds)
    assert (answer.cause, answer.finding) == (cause, cause == "other")
    assert cause == "not-a-hang" or answer.confidence == confidence
    assert cause != "other" or (answer.culprits == (1,) and "for the answer to a request" in answer.summary)


@pytest.mark.parametrize(
    ("by", "idle"),
    [
        ("Client.ask@client.py:149", False),
        ("get_response@client.py:149", False),
        ("wait_for_request@worker.py:149", True),
        ("run_loop@worker.py:149", True),
    ],
)
def test_who_receives_in_a_function_that_asks_is_not_called_idle(by, idle):
    io = stack("epoll_wait@libc.so.6", "zmq::epoll_t::loop@libzmq.so.5", syscall=EVER, **STILL)
    peers = (Peer(110, "unix socket:[7], listening and more", ANYBODY), Peer(100, "eventfd 3", (100,)))
    one = process(0, stack(*ZMQ, by, *MAIN, syscall=FUTEX, **STILL), replace(io, name="ZMQbg/IO/0"), peers=peers)
    answer = judge(live(one, rests())).verdict
    assert (answer.cause == "not-a-hang") is idle
    assert idle or "for what seems to be the answer to a request" in answer.summary


@pytest.mark.parametrize(("caller", "idle"), [("Streams.shutdown@app.py:206", False), ("Streams.ping@app.py:9", True)])
def test_a_shutdown_that_checks_again_and_again_is_no_rest(caller, idle):
    naps = task("Task-1", "sleep@asyncio/tasks.py:649", by=caller, waits_for="Future")
    answer = found(server(naps, LISTENS, call=LIMITED, switches=3))
    assert (answer.cause == "not-a-hang") is idle
    assert idle or "again and again for an end" in answer.summary


DUPLICATES = ("sched_yield@libc.so.6", "PMPI_Comm_dup@libmpi.so.40")
TAKES_GIL = ("pthread_cond_timedwait@libc.so.6", "take_gil@python3", "step@train.py:20")


@pytest.mark.parametrize(
    ("keeps", "waits", "cause"),
    [(True, True, "gil-deadlock"), (False, True, "unknown"), (True, False, "unknown")],
    ids=["kept and wanted", "released", "nobody wants it"],
)
def test_the_gil_kept_in_a_collective_while_another_thread_wants_it(keeps, waits, cause):
    inside = stack(*DUPLICATES, "reduce@train.py:9", *MAIN, state="R", switches=900, still=1, left=0)
    wants = stack(*TAKES_GIL, *MAIN, gil=False, state="S", switches=9, still=7, left=0)
    others = [process(number, inside) for number in (0, 2)]
    keeper = replace(
        inside, gil=keeps, still=14 if keeps and waits else 1
    )  # its library writes into its callers' frames
    threads = (wants, keeper) if waits else (keeper,)
    snapshot = live(*others, process(1, *threads))
    ranks = (replace(one, rank=number) for number, one in zip((0, 2, 1), snapshot.processes))
    verdict = judge(replace(snapshot, processes=tuple(ranks), world_size=3)).verdict
    assert (verdict.cause == "gil-deadlock") is (cause == "gil-deadlock")


def test_an_answer_from_nobody_who_is_known_is_open():
    one = replace(asks(*ANSWER), peers=(Peer(100, "tcp", Missing("its other end is on another host")),))
    assert over_time(one, rests()).cause != "other"


def test_processes_that_check_again_and_again_while_they_exit_are_not_called_busy():
    def polls(number, *frames):
        thread = stack("sched_yield@libc.so.6", "progress@engine ucx.cc:9", *frames, state="R", switches=90, cpu=0.4)
        naps = stack("clock_nanosleep@libc.so.6", "fence@engine ucx.cc:4", *frames, state="S", switches=9, sleeps=0.001)
        return process(number, thread if number else naps)

    frames = ("__run_exit_handlers@libc.so.6", "__GI_exit@libc.so.6")
    exiting = judge(live(*(polls(number, *frames) for number in range(2)))).verdict
    assert (exiting.cause, exiting.finding) == ("unknown", False)
    assert "exiting" in exiting.summary
    assert judge(live(*(polls(number, "main@engine main.cc:3") for number in range(2)))).verdict.cause == "not-a-hang"
