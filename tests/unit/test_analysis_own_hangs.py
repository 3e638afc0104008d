"""Who keeps the GIL while it waits, who waits for a child that was killed, who came late to a barrier; and their
twins."""

import signal
from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.activity import Activity, Child, Ended
from gdbext.model.codes import Code
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, GETS, MAIN, READ, live, process

KILLED = Activity(1.0, ended=(Ended("python", 99, 9),))
NAP = (230, 1, 1, 1, 0, 0, 0)
EPOLL = (232, 5, 1, 1, 0xFFFFFFFF, 0, 0)
YIELDS = ("sched_yield@libc.so.6", "ring_get@libring.so ring.cpp:15", "read@engine.py:8")
NAPS = ("clock_nanosleep@libc.so.6", "usleep@libc.so.6", "wait_done@libext.so ext.cpp:9", "transfer@engine.py:8")
TAKES_GIL = ("pthread_cond_timedwait@libc.so.6", "take_gil@python3", "copy@engine.py:20")


def over_time(*processes, seconds=21.0):
    """The same seen twice."""
    now = live(*processes)
    return judge(replace(now, taken_at=seconds), replace(now, taken_at=0.0)).verdict


def keeper(*frames, gil=True, **fields):
    more = {"syscall": NAP, "sleeps": 0.001, "state": "S", **fields}
    return stack(*frames, *MAIN, gil=gil, switches=90, marks=(1, 2, 3), **more)


def waiter(**fields):
    return stack(*TAKES_GIL, *MAIN, state="S", switches=200, gil=False, **{"marks": (4, 5), **fields})


def of_gil(one, other):
    wait = LockWait(110, "gil", 0x10, 100, still=True)
    return process(0, one, other, locks=(wait,))


@pytest.mark.parametrize("one", [keeper(*NAPS), keeper(*YIELDS, sleeps=None, state="R")], ids=["naps", "yields"])
def test_who_keeps_the_gil_while_it_waits_is_named(one):
    found = over_time(of_gil(one, waiter()))
    assert (found.cause, found.confidence, found.culprits) == ("gil-deadlock", "medium", (0,))
    assert "native code must release the GIL before it waits" in found.summary


@pytest.mark.parametrize(
    "threads",
    [
        (keeper("compute@libext.so ext.cpp:3", "transfer@engine.py:8", sleeps=None, state="R", cpu=0.9), waiter()),
        (keeper(*NAPS, gil=False), waiter()),
        (keeper("sched_yield@libc.so.6", "bootstrapRecv@libnccl.so.2", "ncclCommInitRank@libnccl.so.2"), waiter()),
        (keeper(*NAPS), stack("clock_nanosleep@libc.so.6", "time_sleep@python3", "f@a.py:2", sleeps=1.0, state="S")),
    ],
    ids=["it computes", "it has given the GIL back", "it waits for other ranks", "nobody waits for it"],
)
def test_who_computes_or_has_no_gil_or_bars_nobody_keeps_none(threads):
    assert over_time(of_gil(*threads)).cause != "gil-deadlock"


def test_who_keeps_the_gil_while_a_native_thread_works_may_wait_for_that():
    works = stack("gemm@libext.so", "worker@libext.so", state="R", cpu=0.9, switches=50)
    assert over_time(process(0, keeper(*NAPS), waiter(), works)).cause != "gil-deadlock"


def test_what_one_sample_shows_of_the_gil_proves_nothing_yet_and_is_not_called_healthy():
    found = judge(live(of_gil(keeper(*NAPS), waiter()))).verdict
    assert (found.cause, found.finding) == ("unknown", False)


def test_a_waiter_that_executed_something_in_between_had_the_gil():
    now = live(of_gil(keeper(*NAPS), waiter()))
    then = live(of_gil(keeper(*NAPS), waiter(marks=(4, 9))))
    assert judge(replace(now, taken_at=21.0), replace(then, taken_at=0.0)).verdict.cause != "gil-deadlock"


def spins(*frames, **fields):
    return stack(*frames, *MAIN, **{"state": "R", "cpu": 0.9, "switches": 50, "left": 0, "marks": (7, 8), **fields})


def test_who_spins_for_what_a_killed_child_was_to_write_is_named():
    found = over_time(process(0, spins(*YIELDS), activity=KILLED))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "pid 99 (python, SIGKILL)" in found.summary


@pytest.mark.parametrize(
    ("thread", "activity", "seconds"),
    [
        (spins(*YIELDS), Activity(1.0), 21.0),
        (spins(*YIELDS), KILLED, 5.0),
        (spins("hash@libcrypto.so", "work@engine.py:8"), KILLED, 21.0),
    ],
    ids=["no child was killed", "not for long", "it computes"],
)
def test_without_a_killed_child_or_while_it_computes_nobody_is_named(thread, activity, seconds):
    assert not over_time(process(0, thread, activity=activity), seconds=seconds).finding


CHECKS = ("_PyEval_EvalFrameDefault@python3", "Worker.wait_ready@engine.py:8")
WITH_FAILED = Activity(1.0, ended=(Ended("python", 99, 0, status=1),))


def test_who_runs_in_a_wait_for_what_a_failed_child_was_to_write_is_named_after_some_time():
    checks = process(0, spins(*CHECKS), activity=WITH_FAILED)
    naps = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", "run_chip@engine.py:5", *MAIN, syscall=NAP,
                 sleeps=0.001, state="S", switches=800)  # fmt: skip
    found = over_time(checks, process(1, naps))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "pid 99 (python, status 1)" in found.summary
    soon = judge(live(checks, process(1, naps))).verdict
    assert (soon.cause, soon.finding) == ("unknown", False)
    assert "started a child that has failed" in soon.summary


@pytest.mark.parametrize(
    ("function", "activity"),
    [("Model.fit", WITH_FAILED), ("Worker.wait_ready", Activity(1.0))],
    ids=["its name says that it works", "no child has failed"],
)
def test_who_computes_or_has_no_failed_child_may_work(function, activity):
    frames = ("_PyEval_EvalFrameDefault@python3", f"{function}@engine.py:8")
    assert not over_time(process(0, spins(*frames), activity=activity)).finding


POOL = "/usr/lib/python3.11/multiprocessing/pool.py"
OF_POOL = ("futex@libc.so.6", f"ApplyResult.wait@{POOL}:765", f"ApplyResult.get@{POOL}:768", "main@train.py:9")
TAKES_RESULTS = ("read@libc.so.6", f"Pool._handle_results@{POOL}:579")


def pool_with(activity, woken=0):
    waits = stack(*OF_POOL, *MAIN, state="S", switches=0, syscall=FUTEX)
    takes = stack(*TAKES_RESULTS, state="S", switches=woken, syscall=(0, 5, 1, 4, 0, 0, 0))
    return process(0, waits, takes, activity=activity)


def test_a_pool_whose_workers_end_and_are_started_again_without_a_result_is_named():
    lost = replace(process(1, stack()), alive=False, threads=())
    found = judge(live(pool_with(Activity(1.5, resting=4, replaced=4)), lost)).verdict
    assert (found.cause, found.confidence, found.culprits, found.victims) == ("other", "medium", (0,), ())
    assert "All workers ended within 1.5 s, and others took their places" in found.summary
    assert "BrokenProcessPool" in found.remedies[0].action


@pytest.mark.parametrize(
    ("activity", "woken"),
    [(Activity(1.5, resting=4), 0), (Activity(1.5, resting=4, replaced=4), 3)],
    ids=["its workers live", "a worker has sent something"],
)
def test_a_pool_whose_workers_live_or_send_results_may_work(activity, woken):
    assert "took their places" not in judge(live(pool_with(activity, woken))).verdict.summary


def test_who_waits_for_a_connection_to_itself_while_another_thread_works_is_at_work():
    asks = stack("recv@libc.so.6", "Server::get@engine server.cpp:87", *MAIN, state="S", switches=0,
                 syscall=(45, 4, 1, 1, 0, 0, 0))  # fmt: skip
    works = stack("multiply@engine model.cpp:4", "Model::generate@engine model.cpp:9", state="R", cpu=0.5, switches=90)
    own = (Peer(100, "tcp 127.0.0.1:4 - 127.0.0.1:5", (100,), ("S",), ("engine",)),)
    assert judge(live(process(0, asks, works, peers=own))).verdict.cause == "not-a-hang"


RESTS = (
    "epoll_wait@libc.so.6",
    "EpollSelector.select@selectors.py:468",
    "BaseEventLoop._run_once@asyncio/base_events.py:1",
)


@pytest.mark.parametrize(
    ("activity", "seconds", "cause"),
    [
        (KILLED, 21.0, "other"),
        (KILLED, 5.0, "unknown"),
        (Activity(1.0, ended=(Ended("python", 99, int(signal.SIGTERM)),)), 21.0, "unknown"),
        (Activity(1.0), 21.0, "not-a-hang"),
    ],
    ids=["killed", "not for long", "it was asked to end", "no child was killed"],
)
def test_a_server_that_rests_although_its_engine_was_killed_is_no_idle_one(activity, seconds, cause):
    loop = stack(*RESTS, *MAIN, syscall=EPOLL, state="S", switches=0)
    found = over_time(process(0, loop, activity=activity), seconds=seconds)
    assert found.cause == cause
    assert ("pid 99 (python, SIGKILL)" in found.summary) == (activity == KILLED)
    assert found.finding == (cause == "other")


FAILED = (Ended("python", 98, 0, status=1), Ended("python", 99, 0, status=1))


@pytest.mark.parametrize(
    ("activity", "seconds", "cause"),
    [
        (Activity(1.0, ended=FAILED), 21.0, "other"),
        (Activity(1.0, ended=FAILED), 5.0, "unknown"),
        (Activity(1.0, ended=FAILED, resting=1), 21.0, "unknown"),
        (Activity(1.0, ended=(Ended("python", 99, 0),)), 21.0, "unknown"),
    ],
    ids=["all have failed", "not for long", "one is left", "it has done its work"],
)
def test_who_asks_again_and_again_for_messages_of_children_that_have_failed(activity, seconds, cause):
    gets = ("poll@libc.so.6", "Connection._poll@multiprocessing/connection.py:440", "Queue.get@queues.py:113")
    asks = stack(*gets, "collect@engine.py:9", *MAIN, syscall=(7, 1, 1, 1000, 0, 0, 0), state="S", switches=4)
    found = over_time(process(0, asks, activity=activity), seconds=seconds)
    assert (found.cause, found.finding) == (cause, cause == "other")
    assert ("children have ended with an error: pid 98 (python, status 1)" in found.summary) == found.finding


LOADS = ("poll@libc.so.6", "get@multiprocessing/queues.py:113", "_try_get_data@torch/utils/data/dataloader.py:1291")


@pytest.mark.parametrize(
    ("cpu", "cause", "finding"), [(0.4, "not-a-hang", False), (0.01, "other", True)], ids=["it works", "it rests"]
)
def test_ranks_that_wait_for_a_batch_of_a_worker(cpu, cause, finding):
    activity = Activity(6.0, children=(Child("pt_data_worker", 40, cpu),))
    loads = stack(*LOADS, "train@train.py:9", *MAIN, syscall=(7, 1, 1, 5000, 1, 0, 0), state="S", switches=0)
    found = judge(live(*(process(number, loads, activity=activity) for number in (0, 1)))).verdict
    assert (found.cause, found.finding) == (cause, finding)
    assert finding or "wait for a child that works" in found.summary


POOL = ("sched_yield@libc.so.6", "??@libopenblas.so", "GOMP_parallel@libgomp.so.1", "dsyrk_@libopenblas.so")


@pytest.mark.parametrize(
    ("seconds", "threads", "forked"), [(21.0, 1, True), (5.0, 1, False), (21.0, 2, False)],
    ids=["long", "not for long", "it has more threads"],
)  # fmt: skip
def test_the_only_thread_of_a_child_that_runs_until_a_pool_has_done_its_share(seconds, threads, forked):
    waits = stack("wait4@libc.so.6", *MAIN, syscall=(61, 101, 0, 0, 0, 0, 0), state="S", switches=0)
    rests = stack("futex_wait@libc.so.6", "gomp_thread_start@libgomp.so.1", syscall=FUTEX, state="S", switches=0)
    child = Peer(100, "pid 101", (101,), ("R",), ("test",))
    spins = stack(*POOL, *MAIN, state="R", switches=41205, cpu=0.7)
    other = stack("epoll_wait@libc.so.6", "serve@librpc.so", state="S", switches=0)
    parent = process(0, waits, rests, peers=(child,), title="./test")
    found = over_time(parent, process(1, *(spins, other)[:threads], title="./test"), seconds=seconds)
    assert (found.cause == "fork-after-cuda") == forked
    assert not forked or (found.culprits, found.victims) == ((1,), (0,))


COMPILES = ("syscall@libc.so.6", "absl::Mutex::Block@libjax.so", "backend_compile_and_load@jax/_src/compiler.py:344")


@pytest.mark.parametrize(("seconds", "cpu", "forked"), [(21.0, 0.0004, True), (5.0, 0.0004, False), (21.0, 0.9, False)])
def test_the_only_thread_of_a_child_that_waits_in_turns_for_what_a_pool_compiles(seconds, cpu, forked):
    waits = stack("wait4@libc.so.6", *MAIN, syscall=(61, 101, 0, 0, 0, 0, 0), state="S", switches=0)
    rests = stack("futex_wait@libc.so.6", "Eigen::WorkerLoop@libjax.so", syscall=FUTEX, state="S", switches=0)
    child = Peer(100, "pid 101", (101,), ("S",), ("test",))
    turns = stack(*COMPILES, *MAIN, state="S", switches=12, cpu=cpu, syscall=(202, 1, 128, 0, 0x7FFF, 0, 0))
    parent = process(0, waits, rests, peers=(child,), title="./test")
    found = over_time(parent, process(1, turns, title="./test"), seconds=seconds)
    assert (found.cause == "fork-after-cuda") == forked


def test_workers_of_a_pool_that_wait_for_threads_of_rayon_were_forked_without_them():
    waits = ("syscall@libc.so.6", "rayon_core::latch::LockLatch::wait_and_reset@tokenizers.so", "encode@repro.py:16")
    forks = ("worker@multiprocessing/pool.py:125", "Popen._launch@multiprocessing/popen_fork.py:71")
    workers = [
        process(number, stack(*waits, *forks, *MAIN, syscall=FUTEX, state="S", switches=0),
                locks=(LockWait(100 + number, "futex", 0x50, Missing("nothing names it"), still=True),))
        for number in (0, 1)
    ]  # fmt: skip
    found = judge(live(*workers)).verdict
    assert (found.cause, found.confidence, found.culprits) == ("fork-after-cuda", "medium", (0, 1))
    assert "are forked children" in found.summary


READS_OUTPUT = ("poll@libc.so.6", "Popen._communicate@subprocess.py:2108", "run@tool.py:4")
ENDED = Activity(1.0, ended=(Ended("sh", 98, 9),))


@pytest.mark.parametrize(
    ("activity", "holder", "state", "found"),
    [
        (ENDED, 77, "S", True),
        (Activity(1.0), 77, "S", False),
        (replace(ENDED, children=(Child("cc1", 9, 0.9),)), 77, "S", False),
        (replace(ENDED, resting=1), 77, "S", False),
        (ENDED, 77, "R", False),
        (ENDED, 101, "S", False),
    ],
    ids=["an outsider keeps it open", "no child ended", "a child works", "a child is there", "it writes", "of the job"],
)
def test_who_reads_the_output_of_a_child_that_has_ended(activity, holder, state, found):
    pipe = Peer(100, "pipe:[7]", (holder,), (state,), ("sleep",))
    reads = stack(*READS_OUTPUT, *MAIN, syscall=(7, 1, 2, 0xFFFFFFFF, 0, 0, 0), state="S", switches=0)
    other = process(1, stack(*READS_OUTPUT, *MAIN, state="S", switches=0))
    verdict = judge(
        live(process(0, reads, activity=activity, peers=(pipe,)), *([other] if holder == 101 else []))
    ).verdict
    assert ("pid 98 (sh, SIGKILL), has ended, but pid 77 (sleep) still has" in verdict.summary) == found
    assert (verdict.cause == "other") == found


SERVES = ("epoll_wait@libc.so.6", "??@cygrpc.so", "_serve@grpc/_server.py:1314", "run@threading.py:982")
ITS_OWN = ("poll@libc.so.6", "work@jobs.py:9", "run@threading.py:982")


@pytest.mark.parametrize(
    ("seconds", "side", "cause"),
    [(86367.0, SERVES, "not-a-hang"), (86367.0, ITS_OWN, "unknown")],
    ids=["a server", "no server"],
)
def test_who_sleeps_for_a_day_has_left_the_work_to_its_server(seconds, side, cause):
    sleeps = ("clock_nanosleep@libc.so.6", "pysleep@python3", "time_sleep@python3", "serve@greeter.py:27")
    main = stack(*sleeps, *MAIN, syscall=NAP, sleeps=seconds, state="S", switches=0)
    beside = stack(*side, syscall=(232, 3, 1, 1, 201, 0, 0), state="S", switches=8, still=3)
    assert judge(live(process(0, main, beside))).verdict.cause == cause


def test_a_server_that_sleeps_for_a_day_while_it_answers_waits_for_no_request():
    sleeps = ("clock_nanosleep@libc.so.6", "pysleep@python3", "time_sleep@python3", "do_GET@hub.py:46")
    main = stack(*sleeps, *SERVES[2:], syscall=NAP, sleeps=86367.0, state="S", switches=0)
    assert "for requests" not in judge(live(process(0, main))).verdict.summary


ONE_NAP = ("clock_nanosleep@libc.so.6", "pysleep@python3", "time_sleep@python3", "acquire@engine.py:8")


@pytest.mark.parametrize(
    ("activity", "cpu", "beside", "cause"),
    [
        (Activity(1.0), 0.001, (), "unknown"),
        (Activity(1.0, written_bytes=9), 0.001, (), "not-a-hang"),
        (Activity(1.0, children=(Child("cc1", 9, 0.9),)), 0.001, (), "not-a-hang"),
        (Activity(1.0), 0.02, (), "not-a-hang"),
        (Activity(1.0), 0.001, (stack("epoll_wait@libc.so.6", "serve@librpc.so", switches=3),), "not-a-hang"),
    ],
    ids=["nothing else", "it writes", "a child works", "it computes in between", "a library's thread runs"],
)
def test_who_only_naps_again_and_again_may_look_for_what_never_comes(activity, cpu, beside, cause):
    naps = stack(*ONE_NAP, *MAIN, syscall=NAP, sleeps=0.1, state="S", switches=10, cpu=cpu, left=3)
    found = over_time(process(0, naps, *beside, activity=activity))
    assert (found.cause, found.finding) == (cause, False)


def test_who_naps_beside_a_killed_child_is_not_called_healthy():
    naps = ("clock_nanosleep@libc.so.6", "pysleep@python3", "time_sleep@python3", "wait_for@engine.py:8")
    one = stack(*naps, *MAIN, syscall=NAP, sleeps=0.01, state="S", switches=90)
    assert judge(live(process(0, one))).verdict.cause == "not-a-hang"
    assert judge(live(process(0, one, activity=KILLED))).verdict.cause == "unknown"


BARRIER = ("sem_wait@libc.so.6", "wait@multiprocessing/synchronize.py:268", "Barrier.wait@threading.py:684")


@pytest.mark.parametrize(
    ("started", "culprits"), [((10, 11, 500), (2,)), ((10, 11, 12), (0, 1)), ((None,) * 3, (0, 1))], ids=str
)
def test_who_came_late_to_a_barrier_that_the_others_are_past(started, culprits):
    still = {"switches": 0, "state": "S"}
    past = stack(*GETS, "shard@engine.py:62", *MAIN, syscall=READ, **still)
    stands = stack(*BARRIER, "shard@engine.py:57", *MAIN, syscall=FUTEX, **still)
    ends = [Peer(100 + number, "pipe:[7]", (102,), ("S",), ("a",)) for number in (0, 1)]
    ranks = [process(number, past, peers=(ends[number],), started=started[number]) for number in (0, 1)]
    found = judge(live(*ranks, process(2, stands, started=started[2]))).verdict
    assert (found.cause, found.culprits) == ("other", culprits)
    assert found.confidence == ("low" if culprits == (2,) else "medium")  # spawning may take its time, too


SIGWAIT = ("__GI___sigtimedwait@libc.so.6", "signal_sigwait@python3", "reap@program.py:3")


@pytest.mark.parametrize(
    ("ended", "cause"),
    [((), "not-a-hang"), ((Ended("python", 99, 0),), "unknown")],
    ids=["all are asked for", "one waits to be asked"],
)
def test_one_signal_may_stand_for_two_children(ended, cause):
    waits = stack(*SIGWAIT, *MAIN, syscall=FUTEX, switches=0, state="S")
    assert judge(live(process(0, waits, activity=Activity(1.0, ended=ended)))).verdict.cause == cause


SLEEPS = ("clock_nanosleep@libc.so.6", "std::this_thread::sleep_for@libstdc++.so.6")


def ends(function="Workers::join@engine pool.cpp:40", *outer, **fields):
    more = {"syscall": NAP, "sleeps": 0.5, "state": "S", "switches": 2, "left": 0, **fields}
    return stack(*SLEEPS, function, *outer, "main@engine main.cpp:9", **more)


@pytest.mark.parametrize(
    "function",
    [
        "Workers::join@engine pool.cpp:40",
        "engine::Pool::~Pool@engine pool.cpp:40",
        "waitForAllTasks@engine pool.cpp:40",
        "Engine.shutdown@engine.py:40",
        "Engine.wait_until_drained@engine.py:40",
    ],
)
def test_who_naps_for_the_end_of_something_while_nothing_else_runs_is_named(function):
    found = over_time(process(0, ends(function), activity=Activity(1.0)))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "checking for 22 s" in found.summary and "it has no other thread." in found.summary
    assert ("--locals" if ".py" in function else "info locals") in found.remedies[0].action
    resting = over_time(process(0, ends(function), activity=Activity(1.0, resting=2)))
    assert "it has no other thread, and its child processes used no processor" in resting.summary


IDLE = stack("pthread_cond_wait@libc.so.6", "take@engine pool.cpp:8", syscall=FUTEX, switches=0, state="S")
BUSY = stack("gemm@libext.so", "worker@libext.so", state="R", cpu=0.9, switches=50)
NAPPING = stack(*SLEEPS, "fetch@engine net.cpp:8", syscall=NAP, sleeps=1.0, switches=2, state="S")


@pytest.mark.parametrize(
    ("threads", "activity"),
    [
        ((ends("flush_loop@engine log.cpp:40"),), Activity(1.0)),
        ((ends("serve@engine main.cpp:40"),), Activity(1.0)),
        ((ends("closest_checkpoint@engine main.cpp:40"),), Activity(1.0)),
        ((ends("joinCluster@engine main.cpp:40"),), Activity(1.0)),
        ((ends(), BUSY), Activity(1.0)),
        ((ends(), NAPPING), Activity(1.0)),
        ((ends(),), Activity(1.0, own_bytes=4096)),
        ((ends(),), Activity(1.0, napping=1)),
    ],
    ids=[
        "a loop",
        "a server",
        "another word",
        "it joins a group",
        "a thread works",
        "a thread naps",
        "it writes",
        "a child naps",
    ],
)
def test_who_naps_in_a_loop_or_beside_work_is_not_named(threads, activity):
    assert not over_time(process(0, *threads, activity=activity)).finding


@pytest.mark.parametrize(
    ("frames", "peers"),
    [
        (RESTS, ()),
        (("accept4@libc.so.6", "serve@engine net.cpp:8"), (Peer(110, "a socket", Missing("all", Code.ANYBODY)),)),
    ],
    ids=["a loop", "it listens"],
)
def test_a_server_that_looks_whether_it_is_to_end_is_idle(frames, peers):
    server = stack(*frames, *MAIN, syscall=EPOLL, state="S", switches=0)
    assert not over_time(process(0, ends(), server, peers=peers, activity=Activity(1.0))).finding


def test_who_naps_for_an_end_is_named_only_after_some_time():
    job = process(0, ends(), IDLE, activity=Activity(1.0))
    early = over_time(job, seconds=5.0)
    assert (early.cause, early.finding) == ("unknown", False)
    assert "none of its other threads moved" in over_time(job).summary


JOINED = ("futex_wait@libc.so.6", "__pthread_clockjoin_ex@libc.so.6", "std::thread::join@libstdc++.so.6")


def joins(function="Pool::~Pool@engine pool.cpp:40"):
    return stack(*JOINED, function, "main@engine main.cpp:9", syscall=FUTEX, switches=1, state="S")


def test_one_join_that_ended_does_not_say_that_the_next_one_will():
    wait = LockWait(100, "join", 0x10, 110, still=False)
    job = process(0, joins(), BUSY, locks=(wait,))
    early = over_time(job, seconds=5.0)
    assert early.cause == "unknown"
    assert "ended between two copies. It may wait for further ones." in early.summary
    assert over_time(job).cause == "not-a-hang"


def test_beside_a_thread_that_naps_a_wait_is_looked_at_for_longer():
    locks = (LockWait(100, "join", 0x10, 110, still=True), LockWait(110, "condvar", 0x20, Missing("none"), still=True))
    job = process(0, replace(joins(), switches=0), IDLE, NAPPING, locks=locks)
    early = over_time(job, seconds=5.0)
    assert (early.cause, early.finding) == ("unknown", False)
    assert early.summary.startswith("It is not clear yet")
    assert not over_time(job).summary.startswith("It is not clear yet")


@pytest.mark.parametrize(
    ("threads", "activity"),
    [((BUSY,), Activity(1.0)), ((), Activity(1.0, children=(Child("python", 200, 0.5),)))],
    ids=["a thread works", "a child works"],
)
def test_who_naps_for_the_end_of_what_works_is_at_work(threads, activity):
    naps = ("clock_nanosleep@libc.so.6", "pysleep@python3", "time_sleep@python3", "Pool.join@engine.py:8")
    main = stack(*naps, *MAIN, syscall=NAP, sleeps=0.5, state="S", switches=2)
    found = over_time(process(0, main, *threads, activity=activity))
    assert (found.cause, found.finding) == ("not-a-hang", False)


COND = ("pthread_cond_wait@libc.so.6", "Stream::synchronize@libext.so ext.cpp:31", "release@engine.py:8")
CALLS_BACK = (
    "pthread_cond_timedwait@libc.so.6",
    "take_gil@python3",
    "PyGILState_Ensure@python3",
    "run@libext.so ext.cpp:4",
)


def waits_with_gil(**fields):
    return stack(*COND, *MAIN, gil=True, switches=0, state="S", syscall=FUTEX, marks=(1,), **fields)


def calls_back(*frames):
    return stack(*(frames or CALLS_BACK), id="110", lwp=110, gil=False, switches=200, state="S", cpu=0.0)


def test_a_thread_of_native_code_that_calls_back_needs_the_gil_of_who_waits_for_it():
    verdict = judge(live(of_gil(waits_with_gil(), calls_back()))).verdict
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("gil-deadlock", "medium", (0,))
    assert "needs the GIL to call back into Python" in verdict.summary
    syncs = replace(waits_with_gil(), frames=stack("cuStreamSynchronize@libcuda.so.1", *COND[1:], *MAIN).frames)
    on_gpu = replace(of_gil(syncs, calls_back()), libraries=("/usr/lib/libcuda.so.1",))
    verdict = judge(live(on_gpu)).verdict
    assert (verdict.cause, verdict.confidence) == ("gil-deadlock", "low")


@pytest.mark.parametrize(
    "threads",
    [
        (waits_with_gil(), calls_back(*TAKES_GIL, *MAIN)),
        (replace(waits_with_gil(), gil=False), calls_back()),
        (waits_with_gil(), calls_back(), stack("gemm@libmkl.so", id="9", lwp=9, state="R", cpu=0.9, switches=9)),
    ],
    ids=["it was started by Python", "the GIL is free", "a third thread works"],
)
def test_a_wait_with_the_gil_that_may_end(threads):
    assert judge(live(of_gil(*threads[:2]))).verdict.cause != "gil-deadlock" or len(threads) > 2
    wait = LockWait(110, "gil", 0x10, 100, still=True)
    assert judge(live(process(0, *threads, locks=(wait,)))).verdict.cause != "gil-deadlock"


def naps_in(index, function, **fields):
    one = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", f"{function}@ring.py:9", "step@engine.py:5", *MAIN,
                syscall=NAP, sleeps=0.0005, state="S", switches=900, marks=(1, 2), **fields)  # fmt: skip
    return process(index, one, activity=Activity(1.0, napping=1))


def seen_for_long(*processes):
    now = replace(live(*processes), taken_at=30.0)
    return judge(replace(now, earlier=(replace(now, taken_at=0.0),))).verdict


def test_room_that_no_reader_makes():
    verdict = seen_for_long(naps_in(0, "Ring.enqueue"), naps_in(1, "Ring.dequeue"))
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("other", "low", (0,))
    assert "for room in" in verdict.summary and "for a message in" in verdict.summary


@pytest.mark.parametrize(
    "processes",
    [
        (naps_in(0, "Ring.dequeue"), naps_in(1, "Ring.dequeue")),
        (naps_in(0, "Ring.enqueue"), process(1, stack("add@engine.py:3", *MAIN, state="R", cpu=0.9, switches=9))),
        (replace(naps_in(0, "Ring.enqueue"), activity=Activity(1.0, read_bytes=5000)), naps_in(1, "Ring.dequeue")),
    ],
    ids=["all wait for messages", "a reader works", "it reads a file"],
)
def test_room_that_may_be_made(processes):
    assert seen_for_long(*processes).cause != "other"


WRITE = (1, 2, 0x7F00, 121, 0, 0, 0)


def writes(switches=0, reader=100, call=WRITE):
    one = stack("write@libc.so.6", "_Py_write@python3", "print_bar@download.py:7", *MAIN, state="S",
                syscall=call, switches=switches, wchan="pipe_write")  # fmt: skip
    peers = (Peer(101, "pipe:[7]", (reader,), ("S",), ("python",)),)
    return process(1, one, activity=Activity(1.0), peers=peers)


def sleeps(**counts):
    one = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", "wait_for_it@launch.py:9", *MAIN, syscall=NAP,
                sleeps=1.0, state="S", switches=2)  # fmt: skip
    return process(0, one, activity=Activity(1.0, **counts))


def test_who_naps_while_a_child_writes_to_the_full_pipe_that_only_it_can_read():
    verdict = seen_for_long(sleeps(), writes())
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("other", "low", (0,))
    assert "because the pipe is full. Only pid 100 can read it" in verdict.summary
    soon = judge(live(sleeps(), writes())).verdict
    assert (soon.cause, soon.finding) == ("unknown", False)


def receives(reads=()):
    """A ZeroMQ socket that clients may connect to, so that a message may come."""
    calls = ("poll@libc.so.6", "zmq_msg_recv@libzmq.so.5", "recv_json@zmq/sugar/socket.py:9", "pool@launch.py:9")
    one = stack(*calls, *MAIN, syscall=(7, 1, 1, 0xFFFFFFFF, 0, 0, 0), state="S", switches=0)
    loop = stack("epoll_wait@libc.so.6", "zmq::epoll_t::loop@libzmq.so.5", "clone3@libc.so.6", state="S", switches=0,
                 syscall=(232, 7, 1, 256, 0xFFFFFFFF, 0, 0))  # fmt: skip
    peers = [Peer(100, file, (100,), ("S",), ("python",)) for file in ("eventfd 5", *reads)]
    peers.append(Peer(110, "tcp 127.0.0.1:1, listening and more", Missing("any client", Code.ANYBODY)))
    return process(0, one, loop, peers=tuple(peers), activity=Activity(1.0))


def test_who_waits_for_a_message_while_a_child_writes_to_the_full_pipe_that_only_it_can_read():
    soon = judge(live(receives(), writes())).verdict
    assert (soon.cause, soon.finding) == ("unknown", False)
    assert "the pipe is full, and pid 100, which can read it, is in recv_json" in soon.summary
    later = seen_for_long(receives(), writes())
    assert (later.cause, later.confidence, later.culprits) == ("other", "low", (0,))
    assert "and has been waiting for something else in recv_json" in later.summary
    assert "the pipe is full" not in seen_for_long(receives(reads=("pipe:[7]",)), writes()).summary


@pytest.mark.parametrize(
    "processes",
    [
        (sleeps(read_bytes=4096), writes()),
        (sleeps(), writes(switches=3)),
        (sleeps(), writes(reader=77)),
        (sleeps(), writes(call=READ)),
    ],
    ids=["it reads something", "somebody reads the pipe", "another process can read it", "it does not write"],
)
def test_a_write_that_may_go_on(processes):
    assert "the pipe is full" not in seen_for_long(*processes).summary


@pytest.mark.parametrize(
    ("task", "cause"),
    [
        (("Result.get@huey/api.py:1259", "count_beans@tasks.py:20"), "unknown"),
        (("wait_a_bit@tasks.py:20",), "not-a-hang"),
    ],
    ids=["it asks for a result", "it naps"],
)
def test_a_consumer_whose_task_asks_again_and_again_for_the_result_of_another_one_is_not_idle(task, cause):
    main = stack("poll@libc.so.6", "ForkSafeFlag.wait@huey/consumer.py:227", "Consumer.loop@huey/consumer.py:629",
                 *MAIN, state="S", switches=9, syscall=(7, 1, 1, 100, 0, 0, 0))  # fmt: skip
    runs = ("Huey._execute@huey/api.py:453", "Worker.loop@huey/consumer.py:132", "run@threading.py:982")
    naps = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", *task, *runs, syscall=NAP, sleeps=0.1, state="S",
                 switches=9)  # fmt: skip
    assert judge(live(process(0, main, naps))).verdict.cause == cause


@pytest.mark.parametrize("function", ["ModelLock.__enter__", "Store.acquire_lock", "FileLock.acquire"])
def test_who_tries_again_and_again_for_a_lock_that_nobody_here_has_is_named_after_some_time(function):
    tries = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", f"{function}@hub.py:5", *MAIN, syscall=NAP,
                  sleeps=1.0, state="S", switches=3)  # fmt: skip
    found = over_time(process(0, tries))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "whether a lock is free" in found.summary and "left it behind" in found.summary
    works = stack("??@libwhatever.so", "download@hub.py:9", *MAIN, state="R", cpu=0.9, switches=9)
    assert not over_time(process(0, tries), process(1, works)).finding, "it may have the lock"
    assert not judge(live(process(0, tries))).verdict.finding


@pytest.mark.parametrize("function", ["StagingBuffer.allocate", "Pool.acquire_block", "Cache.get_free_slots"])
def test_who_looks_again_and_again_for_room_that_only_it_could_make_is_named_after_some_time(function):
    tries = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", f"{function}@store.py:5", *MAIN, syscall=NAP,
                  sleeps=1.0, state="S", switches=3)  # fmt: skip
    found = over_time(process(0, tries))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "whether there is room, in" in found.summary and "goes back only after this call" in found.summary
    frees = stack("clock_nanosleep@libc.so.6", "time_sleep@python3", "run@store.py:9", *MAIN, syscall=NAP, sleeps=1.0,
                  state="S", switches=3)  # fmt: skip
    assert not over_time(process(0, tries, frees)).finding, "it may give some back"
    assert not judge(live(process(0, tries))).verdict.finding


def wants_room(*frames, sleeps=0.0002, switches=4000):
    naps = ("clock_nanosleep@libc.so.6", "nanosleep@libc.so.6", "std::this_thread::sleep_for<long>@program")
    return stack(*naps, *frames, syscall=NAP, sleeps=sleeps, state="S", switches=switches, cpu=0.03)


def test_two_threads_that_both_want_room_of_each_other_are_named_after_some_time():
    writes = "Ring::write@program ring.cpp:49"
    host = wants_room(writes, "Node::host@program", "main@program")
    enclave = wants_room(writes, "Node::enclave@program", "start_thread@libc.so.6")
    found = over_time(process(0, host, enclave))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "again and again for room in Ring::write (ring.cpp:49)" in found.summary
    assert (judge(live(process(0, host, enclave))).verdict.decided_by or "").startswith("gdbext diagnose")
    reads = wants_room("Node::take_all@program", "start_thread@libc.so.6")
    assert not over_time(process(0, host, enclave, reads)).finding, "a third one may take"
    rated = wants_room(writes, "Load::run@program", "start_thread@libc.so.6", sleeps=0.1)
    assert over_time(process(0, rated, rated)).cause == "not-a-hang"
