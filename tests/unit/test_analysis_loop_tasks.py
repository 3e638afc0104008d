"""Tasks of an event loop that wait for each other, and twins: loops at rest, locks whose holders wait for replies."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.codes import Code
from gdbext.model.locks import LISTENING, NOTHING, Peer
from gdbext.model.missing import Missing
from gdbext.model.tasks import PythonTask
from tests.unit.stacks import frame, stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, SELECTS, live, process
from tests.unit.test_analysis_pool_tasks import EVER, LIMITED, LOOPS

ANYBODY = Missing("it listens: its other end is any client that connects", Code.ANYBODY)
ACQUIRE = ("Lock.acquire@asyncio/locks.py:113", "_ContextManagerMixin.__aenter__@asyncio/locks.py:15")
PUT, GET = ("Queue.put@asyncio/queues.py:123",), ("Queue.get@asyncio/queues.py:158",)
SERVES = ("Server.serve_forever@asyncio/base_events.py:373",)
READS = ("StreamReader._wait_for_data@asyncio/streams.py:522", "StreamReader.readline@asyncio/streams.py:545")
JOINS = ("_wait@asyncio/tasks.py:522", "wait@asyncio/tasks.py:428")


def task(name, *frames, by="move@cache.py:19", **fields):
    return PythonTask(100, tuple(map(frame, (*frames, by))), name, **fields)


def server(*tasks, call=EVER, switches=0, file=f"tcp 127.0.0.1:80{LISTENING}", others=()):
    loop = stack(*SELECTS, *LOOPS, *MAIN, syscall=call, switches=switches, state="S")
    peers = (Peer(thread=100, file=file, processes=ANYBODY),)
    return process(0, loop, *others, peers=peers, tasks=tasks)


def found(*processes):
    return judge(live(*processes)).verdict


IN = task("in", *ACQUIRE, wants=2, holds=(1,), waits_for="Future")
OUT = task("out", *ACQUIRE, wants=1, holds=(2,), waits_for="Future")
LISTENS = task("serve", *SERVES, by="main@server.py:4")
READER = task("client", *READS, by="handle@server.py:9", holds=(1,))


def test_a_circle_of_locks_is_proven_whatever_the_other_tasks_do():
    verdict = found(server(IN, OUT, LISTENS, replace(READER, holds=())))
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("lock-order-deadlock", "high", (0,))
    assert "task in waits in Lock.acquire, called from move (cache.py:19) for a lock that task out holds" in (
        verdict.summary
    )


DRAINS = ("FlowControlMixin._drain_helper@asyncio/streams.py:172", "StreamWriter.drain@asyncio/streams.py:389")


@pytest.mark.parametrize(("call", "switches", "idle"), [(EVER, 0, False), (LIMITED, 10, True)])
def test_who_waits_for_room_to_write_is_not_idle_while_nothing_moves(call, switches, idle):
    verdict = found(server(task("send", *DRAINS, waits_for="Future"), LISTENS, call=call, switches=switches))
    assert (verdict.cause == "not-a-hang") is idle
    assert idle or "task send of an event loop waits in FlowControlMixin._drain_helper" in verdict.summary


def test_one_look_at_what_gdb_holds_proves_a_circle_alone():
    def held(*tasks):
        return judge(replace(live(replace(server(*tasks, switches=None), source="held")), apart=None)).verdict

    assert (held(IN, OUT, LISTENS).cause, held(IN, OUT, LISTENS).culprits) == ("lock-order-deadlock", (0,))
    assert held(task("get", *ACQUIRE, wants=3), LISTENS).cause != "lock-order-deadlock"


def test_a_core_file_proves_a_circle_that_no_time_out_ends():
    def dumped(*tasks):
        return judge(replace(live(replace(server(*tasks, switches=None), source="core")), apart=None)).verdict

    assert (dumped(IN, OUT, LISTENS).cause, dumped(IN, OUT, LISTENS).culprits) == ("lock-order-deadlock", (0,))
    assert dumped(replace(IN, limited=True), OUT, LISTENS, READER).cause != "lock-order-deadlock"


def test_a_thread_that_does_not_stand_may_still_answer():
    works = stack("poll@libc.so.6", "run@libgrpc.so", "start_thread@libc.so.6", switches=3, state="S", syscall=LIMITED)
    alone = server(task("get", *ACQUIRE, wants=3, waits_for="Future"), LISTENS)
    assert found(alone).confidence == "medium"
    assert found(replace(alone, threads=(*alone.threads, replace(works, name="grpc_global_tim")))).confidence == "low"


def test_a_semaphore_in_a_circle_may_have_another_holder_who_lets_it_go():
    slots = tuple(
        replace(one, frames=(frame("Semaphore.acquire@asyncio/locks.py:400"), *one.frames[2:])) for one in (IN, OUT)
    )
    assert not found(server(*slots, READER, LISTENS)).finding
    assert found(server(*slots, LISTENS)).confidence == "medium"  # no task is left at all


def test_a_lock_that_its_own_task_asks_for_again():
    verdict = found(server(task("one", *ACQUIRE, wants=7, holds=(7,)), LISTENS))
    assert (verdict.cause, verdict.confidence) == ("lock-order-deadlock", "high")
    assert "that it already holds. It can never proceed." in verdict.summary


@pytest.mark.parametrize("call", [EVER, LIMITED], ids=["it was woken", "a timer runs"])
def test_in_a_loop_that_works_a_circle_counts_when_two_looks_saw_it(call):
    now = live(server(IN, OUT, call=call, switches=9))
    assert judge(now).verdict.cause != "lock-order-deadlock"
    verdict = judge(replace(now, taken_at=20.0), replace(now, taken_at=0.0)).verdict
    assert (verdict.cause, verdict.confidence) == ("lock-order-deadlock", "medium")
    limited = live(server(replace(IN, limited=True), OUT, call=call, switches=9))
    verdict = judge(replace(limited, taken_at=20.0), replace(limited, taken_at=0.0)).verdict
    assert verdict.cause != "lock-order-deadlock"  # it gives up in time


@pytest.mark.parametrize(
    ("tasks", "confidence", "file"),
    [
        ((task("get", *ACQUIRE, wants=3), LISTENS), "medium", None),  # whoever had it has ended
        ((task("get", *ACQUIRE, wants=3), LISTENS), "low", f"tcp 127.0.0.1:80{LISTENING} and more"),
        ((task("drain", *JOINS, waits_for="Task"), task("step", by="step@a.py:3", waits_for="Task")), "medium", None),
        ((task("get", *ACQUIRE, wants=3), task("all", by="main@a.py:3", waits_for="Task")), "medium", None),
    ],
)
def test_where_no_other_task_is_left_the_rest_wait_for_ever(tasks, confidence, file):
    verdict = found(server(*tasks, **({"file": file} if file else {})))
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("lock-order-deadlock", confidence, (0,))
    assert "No task is left that can" in verdict.summary


@pytest.mark.parametrize(
    "tasks",
    [
        (LISTENS,),
        (task("worker", *GET), LISTENS),
        (task("worker", *GET), task("all", by="main@a.py:3", waits_for="Task"), LISTENS),
        (task("get", *ACQUIRE, wants=1), READER, LISTENS),  # its holder waits for a client
        (task("get", *ACQUIRE, wants=3), task("call", by="ask@model.py:8", waits_for="Future"), LISTENS),
        (task("main", *JOINS, waits_for="Task"), task("call", by="ask@model.py:8", waits_for="Future")),
        (task("main", *JOINS, waits_for="Task"), task("both", *JOINS, waits_for="Future")),  # of executors, for example
        (task("get", *ACQUIRE, wants=3), PythonTask(100, ()), LISTENS),
        (PythonTask(100, (), wants=3), LISTENS),
        (task("main", *JOINS, waits_for="Task"),),  # of one alone nobody knows for what
        (task("prefetch", *PUT), LISTENS),  # a client's task takes what it has
        (task("worker", "Semaphore.acquire@asyncio/locks.py:400", wants=9), LISTENS),  # a client's task releases it
    ],
    ids=[
        "clients",
        "work",
        "gathered workers",
        "a holder that reads",
        "a reply",
        "joins a call",
        "joins executors",
        "one that could not be read",
        "one of which only its lock was read",
        "joins",
        "reads ahead",
        "orders",
    ],
)
def test_tasks_that_something_from_outside_may_end_are_no_finding(tasks):
    assert not found(server(*tasks)).finding


@pytest.mark.parametrize(
    "more",
    [
        {"call": LIMITED},  # a timer of the loop
        {"switches": 3},
        {"others": (stack("compute@engine.py:4", *MAIN, state="R", cpu=0.9, switches=5),)},
        {"others": (stack("do_futex_wait@libc.so.6", "wait@threading.py:1", syscall=FUTEX, switches=4, state="S"),)},
    ],
    ids=["timer", "woken", "a thread computes", "a thread was woken"],
)
def test_while_a_timer_or_a_thread_may_act_no_task_is_called_lost(more):
    assert found(server(task("get", *ACQUIRE, wants=3), LISTENS, **more)).cause != "lock-order-deadlock"


def client():
    reads = stack("recv@libc.so.6", "ask@client.py:3", *MAIN, syscall=(45, 3, 0, 0, 0, 0, 0), switches=0, state="S")
    return process(1, reads, peers=(Peer(101, "tcp 127.0.0.1:1 - 127.0.0.1:80", (100,), ("S",), ("python",)),))


def test_who_waits_for_the_process_is_a_victim():
    verdict = found(server(IN, OUT, LISTENS), client())
    assert (verdict.culprits, verdict.victims) == ((0,), (1,))


@pytest.mark.parametrize(
    "asks", [task("handle", *PUT), task("worker", "Semaphore.acquire@asyncio/locks.py:400", wants=9)]
)
def test_a_full_queue_or_a_semaphore_counts_where_a_client_waits_or_none_can_come(asks):
    assert (found(server(asks, LISTENS), client()).confidence, found(server(asks, LISTENS)).finding) == ("low", False)
    own = replace(server(asks), peers=(Peer(100, "eventfd 7", (100,), ("S",), ("python",)),))
    assert found(own).finding and found(own).culprits == (0,)


def test_a_server_whose_task_waits_for_the_lock_of_a_reader_is_not_idle():
    """What is read may be the answer that needs the lock."""
    assert found(server(replace(READER, holds=()), LISTENS)).cause == "not-a-hang"
    amid = found(server(task("route", *ACQUIRE, wants=1), READER, LISTENS))
    assert (amid.cause, amid.finding) == ("unknown", False)


JOINING = task("main", by="serve@server.py:30", waits_for="Task")
STREAMS = task("stream", *GET, by="stream@server.py:12", waits_for="Future")
ASKS = stack("recv@libc.so.6", "browse@client.py:4", *MAIN, id="101", lwp=101, syscall=(45, 3, 1, 1, 0, 0, 0))


def browser(of=100):
    one = replace(ASKS, switches=0, state="S", name="python")
    peer = Peer(thread=101, file="unix socket:[7]", processes=(of,), states=("S",), names=("python",))
    return replace(process(1, one, peers=(peer,)), pid=101)


def test_the_end_of_a_stream_that_has_no_more_to_send_is_not_waited_for_while_a_client_waits_for_more():
    verdict = found(server(JOINING, STREAMS, file="unix socket:[7]"), browser())
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("lock-order-deadlock", "low", (0,))


@pytest.mark.parametrize(
    ("tasks", "of"),
    [((STREAMS,), 100), ((JOINING, STREAMS, READER), 100), ((JOINING, STREAMS), 999)],
    ids=["nobody waits for its end", "another one reads from a client", "nobody waits for the server"],
)
def test_a_stream_without_news_is_at_rest(tasks, of):
    assert found(server(*tasks, file="unix socket:[7]"), browser(of)).cause != "lock-order-deadlock"


CALL = task("main", "Channel.unary@rpc.py:20", by="greet@rpc.py:26", waits_for="Future")
POLLS_NOTHING = stack("epoll_wait@libc.so.6", "work@rpc.py:9", id="110", lwp=110, syscall=EVER, switches=0, state="S")


def alone(*tasks, file=NOTHING, **fields):
    one = server(*tasks, file="unix socket:[8]", others=(POLLS_NOTHING,))
    wakes = Peer(thread=100, file="unix socket:[8]", processes=(100,))
    return replace(one, peers=(wakes, Peer(thread=110, file=file, processes=(100,))), **fields)


def test_a_future_that_nobody_is_left_to_set():
    verdict = found(alone(CALL))
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("other", "low", (0,))
    assert verdict.summary.startswith(
        "Task main of the event loop of pid 100 waits in Channel.unary (rpc.py:20) for a fut"
    )
    assert verdict.summary.endswith("nobody is left to set it.")


@pytest.mark.parametrize(
    "one",
    [
        replace(alone(CALL), handlers=(15,)),
        replace(alone(CALL), peers=(Peer(thread=100, file="unix socket:[8]", processes=(100,)),)),
        alone(CALL, READER),
        alone(replace(CALL, limited=True)),
    ],
    ids=["a signal may set it", "another thread waits for anything", "a client may", "it gives up by itself"],
)
def test_a_future_that_somebody_may_set(one):
    assert found(one).cause != "other"


SLEEPS = task("Task-1", "sleep@asyncio/tasks.py:649", by="Proxy.answer@proxy.py:16")


def test_a_loop_all_of_whose_tasks_sleep_waits_for_no_request():
    alone = server(SLEEPS, call=LIMITED, switches=9, file="tcp 127.0.0.1:80")
    naps = found(replace(alone, peers=()), replace(server(LISTENS), index=1, pid=101))
    assert (naps.cause, naps.finding) == ("unknown", False)
    assert (
        "naps again and again in sleep, called from Proxy.answer (proxy.py:16), and waits for no request"
        in naps.summary
    )
    assert found(server(SLEEPS, LISTENS, call=LIMITED, switches=9)).cause == "not-a-hang"
