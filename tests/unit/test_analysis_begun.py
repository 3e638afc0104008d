"""Processes that wait like idle ones and have begun something, which is said and left open; and twins that have not."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.activity import Activity, Ended
from gdbext.model.codes import ReadState
from gdbext.model.locks import LISTENING, Peer
from tests.unit.stacks import frame, rank, stack
from tests.unit.test_analysis_at_work import ACCEPTS, FUTEX, GETS, LOOPS, MAIN, READ, SELECTS, live, process, verdict
from tests.unit.test_analysis_loop_tasks import GET, LISTENS, READS, found, server, task
from tests.unit.test_analysis_pool_tasks import TASK
from tests.unit.test_waits_groups import FILE

SERVES = ("serve_forever@socketserver.py:232", "run@threading.py:982")
LOCK = ("__futex_wait@libc.so.6", "sem_wait@libc.so.6", "lock_PyThread_acquire_lock@python3")
WAITS = (*LOCK, "wait@threading.py:327")
HANDLER = ("do_GET@server.py:8", "handle@http/server.py:436", "process_request_thread@socketserver.py:691")


def still(*frames, **fields):
    return stack(*frames, *MAIN, **{"syscall": FUTEX, "switches": 0, "state": "S", **fields})


def beside_server(thread):
    return verdict(process(0, thread, still(*SELECTS, *SERVES)))


@pytest.mark.parametrize(
    ("frames", "sign"),
    [
        ((*LOCK, "evict@cache.py:9"), "waits in evict"),
        ((*WAITS, "put@queue.py:140", "feed@engine.py:4"), "waits in"),
        ((*WAITS, "result@concurrent/futures/_base.py:451", "step@engine.py:4"), "waits in"),
        ((*LOCK, "get@cache.py:12", "step@engine.py:4"), "waits in"),
    ],
    ids=["a lock", "room in a queue", "a result", "a lock, in a function that is called as a queue's"],
)
def test_a_main_thread_beside_a_server_that_waits_for_what_only_its_program_gives(frames, sign):
    answer = beside_server(still(*frames))
    assert (answer.cause, answer.finding, bool(answer.decided_by)) == ("unknown", False, True)
    assert sign in answer.summary and "Apart from that, pid 100 waits for requests" in answer.summary


def test_where_nobody_counted_who_ran_a_thread_shows_nothing():
    def look(switches):
        inside = still(*WAITS, "wait@threading.py:629", *HANDLER, switches=switches)
        return judge(replace(live(process(0, still(*SELECTS, *SERVES[:1], switches=None), inside)), apart=None))

    assert (look(None).verdict.cause, look(0).verdict.cause) == ("not-a-hang", "unknown")


@pytest.mark.parametrize(
    "frames",
    [
        (*WAITS, "get@queue.py:171", "step@engine.py:4"),
        (*LOCK, "_wait_for_tstate_lock@threading.py:1139", "join@threading.py:1119"),
        (*WAITS, "wait@threading.py:629", "serve@engine.py:4"),
    ],
    ids=["orders", "the end of the server", "an event"],
)
def test_a_main_thread_beside_a_server_that_waits_for_orders_or_the_end_is_idle(frames):
    assert beside_server(still(*frames)).cause == "not-a-hang"


@pytest.mark.parametrize(
    ("thread", "cause"),
    [
        (still(*WAITS, "wait@threading.py:629", *HANDLER), "unknown"),
        (still("recv@libc.so.6", "readinto@socket.py:706", *HANDLER[1:], syscall=READ), "not-a-hang"),
        (still(*WAITS, "wait@threading.py:629", *HANDLER, switches=4), "not-a-hang"),
    ],
    ids=["inside of a request", "the next request of its client", "it was woken"],
)
def test_a_server_one_of_whose_requests_waits_is_not_idle(thread, cause):
    assert verdict(process(0, still(*SELECTS, *SERVES[:1]), thread)).cause == cause


@pytest.mark.parametrize(
    ("ended", "cause"),
    [
        (Ended("python", 99, 9), "unknown"),
        (Ended("python", 99, 0, 1), "unknown"),
        (Ended("python", 99, 0), "not-a-hang"),
    ],
    ids=["killed", "failed", "done"],
)
def test_who_waits_for_whoever_connects_beside_a_child_that_failed(ended, cause):
    answer = verdict(
        process(0, still(*ACCEPTS, syscall=(43, 3, 0, 0, 0, 0, 0)), activity=Activity(1.0, ended=(ended,)))
    )
    assert answer.cause == cause
    assert cause == "not-a-hang" or "has ended, and its parent pid 100" in answer.summary


NOTIFIED = ("Condition.wait@asyncio/locks.py:264",)
OWN = ("idle@engine.py:9",)
ASKS = ("Client.call@client.py:70", "ask@client.py:77")
EXECUTOR = TASK[1:]


@pytest.mark.parametrize(
    ("tasks", "cause"),
    [
        ([task("one", *NOTIFIED, waits_for="Future"), LISTENS], "unknown"),
        ([task("one", *NOTIFIED, waits_for="Future", limited=True), LISTENS], "not-a-hang"),
        ([task("one", *NOTIFIED, by="_AsyncQueueProxy.get@janus/__init__.py:510"), LISTENS], "not-a-hang"),
        ([task("one", *GET, waits_for="Future"), LISTENS], "not-a-hang"),
        ([task("Task-2", *OWN, waits_for="Future"), LISTENS], "unknown"),
        ([task("Task-1", *OWN, waits_for="Future")], "not-a-hang"),
        ([task("Task-2", *READS, waits_for="Future"), LISTENS], "not-a-hang"),
        ([task("Task-1", *ASKS, waits_for="Future")], "unknown"),
        ([task("Task-1", *ASKS, waits_for="Future", limited=True)], "not-a-hang"),
    ],
    ids=[
        "a change",
        "a change, for a while",
        "a change that is work",
        "work",
        "a future of its own",
        "the program runs for ever",
        "a client",
        "an answer",
        "an answer, for a while",
    ],
)
def test_tasks_of_a_loop_that_nothing_but_new_clients_can_reach(tasks, cause):
    assert found(server(*tasks)).cause == cause


@pytest.mark.parametrize(
    ("frames", "cause"),
    [
        ((*GETS, *EXECUTOR), "not-a-hang"),
        ((*WAITS, "get@queue.py:171", *EXECUTOR), "not-a-hang"),
        ((*GETS, "dispatch@engine.py:5"), "not-a-hang"),
        ((*WAITS, "wait@threading.py:629", "report@engine.py:5"), "unknown"),
    ],
    ids=["a task of an executor reads", "it reads a queue", "a thread reads", "a thread that hears nothing"],
)
def test_a_future_may_be_set_by_a_thread_that_takes_orders(frames, cause):
    thread = still(*frames, syscall=READ if frames[0] == GETS[0] else FUTEX)
    assert found(server(task("Task-2", *OWN, waits_for="Future"), LISTENS, others=(thread,))).cause == cause


def test_a_future_may_be_set_by_whoever_the_loop_also_hears():
    loop = server(task("Task-2", *OWN, waits_for="Future"), LISTENS, file=f"tcp 127.0.0.1:80{LISTENING} and more")
    assert found(loop).cause == "not-a-hang"


def test_a_lock_beside_a_thread_that_works_is_left_open_as_long_as_it_takes():
    works = stack("hash@_hashlib.so", "report@metrics.py:3", state="R", cpu=0.9, switches=9)
    now = live(process(0, still(*LOCK, "evict@cache.py:9"), works))
    for answer in (
        judge(now).verdict,
        judge(replace(now, taken_at=30.0), replace(now, taken_at=0.0)).verdict,
    ):
        assert (answer.cause, answer.finding, bool(answer.decided_by)) == ("unknown", False, True)


# --- ranks of which some go on ---

FIRST, SECOND = (0, 1), (2, 3)


def reducing(number, ranks, moved, call="all_reduce"):
    wait = ("__futex_wait@libc.so.6", "c10d::Work::wait@libtorch_cpu.so")
    inner = frame(f"{call}@{FILE}", group=str(ranks[0]), ranks=",".join(map(str, ranks)))
    counts = {"still": 5, "switches": 9} if moved else {"still": 0, "switches": 0}
    return rank(number, stack(*wait, inner, "step@serve.py:20", *MAIN, state="S", syscall=FUTEX, **counts))


def replicas(*second):
    made = (reducing(0, FIRST, True), reducing(1, FIRST, True), *second)
    return judge(replace(live(), processes=tuple(replace(one, index=at) for at, one in enumerate(made)))).verdict


def test_a_replica_that_goes_on_does_not_clear_another_one():
    late = rank(3, still(*LOCK, "evict@cache.py:9", still=0))
    answer = replicas(reducing(2, SECOND, False), late)
    assert (answer.cause, answer.culprits) == ("missing-rank", (3,))
    other = replicas(reducing(2, SECOND, False), reducing(3, SECOND, False, "all_gather"))
    assert (other.cause, other.culprits) == ("collective-mismatch", (2, 3))


def test_a_replica_in_one_collective_may_be_slow():
    answer = replicas(reducing(2, SECOND, False), reducing(3, SECOND, False))
    assert (answer.cause, answer.finding) == ("unknown", False)


@pytest.mark.parametrize(
    ("leader", "call", "cause"),
    [
        (still(*SELECTS, *LOOPS, still=0), "broadcast", "not-a-hang"),
        (still(*SELECTS, *LOOPS, still=0), "all_reduce", "missing-rank"),
        (still(*LOCK, "evict@cache.py:9", still=0), "broadcast", "missing-rank"),
    ],
    ids=["idle", "in another step", "at a lock"],
)
def test_a_replica_whose_leader_waits_for_requests_is_idle_while_another_one_works(leader, call, cause):
    assert replicas(rank(2, leader), reducing(3, SECOND, False, call)).cause == cause


@pytest.mark.parametrize(
    "last", [reducing(3, (0, 1, 2, 3), False), reducing(3, (3,), True)], ids=["it waits for them", "it goes on"]
)
def test_who_waits_for_ranks_that_go_on_is_slow(last):
    assert replicas(reducing(2, (2, 3), False), last).cause == "not-a-hang"


# --- code of Python that runs ---


def runs(marks):
    return stack("poll@ring.py:8", "serve@ring.py:20", *MAIN, state="R", cpu=0.9, switches=9, gil=True, marks=marks)


def test_loops_of_which_no_call_returns_may_wait_for_each_other():
    now = live(process(0, runs((1, 2))), process(1, runs((1, 2))))
    other = live(process(0, runs((1, 2))), process(1, runs((1, 7))))
    assert judge(now).verdict.cause == "unknown"
    assert judge(replace(now, taken_at=3.0), replace(now, taken_at=0.0)).verdict.cause == "unknown"
    assert judge(replace(now, taken_at=3.0), replace(other, taken_at=0.0)).verdict.cause == "not-a-hang"


@pytest.mark.parametrize(("peers", "confidence"), [((101,), "low"), ((101, 4711), "medium"), ((), "medium")])
def test_who_waits_for_an_answer_of_the_one_that_moved_has_not_gone_on(peers, confidence):
    """The engine may look again and again whether it can begin."""
    ends = (Peer(100, "pipe:[7]", peers, ("S",) * len(peers), ("python",) * len(peers)),) if peers else ()
    driver = process(0, still(*ANSWER, syscall=READ, still=0), peers=ends)
    engines = (replace(runs((1, 2)), frames=runs((1, 2)).frames[1:]), runs((1, 2)))
    before, now = (replace(live(driver, process(1, one)), taken_at=at) for at, one in enumerate(engines))
    answer = judge(now, before).verdict
    assert (answer.cause, answer.confidence) == ("not-a-hang", confidence)
    assert ("the job is not stuck" in answer.summary) is (confidence == "medium")


# --- debuggers ---

PROMPT = ("read@libc.so.6", "cmdloop@cmd.py:126", "_cmdloop@pdb.py:397", "interaction@pdb.py:433", "send@m.py:2")
ANSWER = ("read@libc.so.6", "_recv@multiprocessing/connection.py:395", "ask@driver.py:7")


@pytest.mark.parametrize(("switches", "named"), [(0, True), (3, False)], ids=["nobody types", "somebody types"])
def test_who_is_at_the_prompt_of_a_debugger_is_named(switches, named):
    driver = process(0, still(*ANSWER, syscall=READ), peers=(Peer(100, "pipe:[7]", (101,), ("S",), ("python",)),))
    answer = verdict(driver, process(1, still(*PROMPT, syscall=READ, switches=switches)))
    assert (answer.culprits == (1,)) is named
    assert not named or (answer.cause, answer.confidence) == ("other", "medium")


def test_a_command_typed_at_the_prompt_that_waits_is_no_wait_for_a_command():
    typed = ("<module>@<stdin>:1", "default@pdb.py:400", "onecmd@cmd.py:217", "onecmd@pdb.py:421", *PROMPT[1:])
    answer = verdict(process(0, still(*WAITS, "get@queue.py:171", *typed)))
    assert answer.cause == "unknown" and "get (queue.py:171)" in answer.summary


@pytest.mark.parametrize(("state", "named"), [("t", True), ("S", False)], ids=["stopped", "not stopped"])
def test_who_was_stopped_by_its_tracer_is_named(state, named):
    driver = process(0, still(*ANSWER, syscall=READ), peers=(Peer(100, "pipe:[7]", (101,), (state,), ("python",)),))
    held = replace(process(1), state=ReadState.LOST, alive=True, problems=("somebody traces it",))
    assert (verdict(driver, held).culprits == (1,)) is named
