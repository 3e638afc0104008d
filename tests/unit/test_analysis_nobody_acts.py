"""Jobs in which nobody acts any more, and their twins, which are at rest or at work; what two looks show of calls."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.codes import Code
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import gloo_reducing, job, rank, stack
from tests.unit.test_analysis_at_work import ACCEPTS, FUTEX, GETS, MAIN, READ, lasting, live, process, verdict
from tests.unit.waiting_ranks import setting_up

WAITS = ("do_futex_wait@libc.so.6", "wait@threading.py:327")
EVENT = ("do_futex_wait@libc.so.6", "wait@multiprocessing/synchronize.py:268", "Event.wait@synchronize.py:356")
JOINS = ("wait4@libc.so.6", "poll@multiprocessing/popen_fork.py:27", "join@multiprocessing/process.py:149")
RESULT = (*WAITS, "result@concurrent/futures/_base.py:451")
TASK = ("prepare@engine.py:4", "_process_worker@concurrent/futures/process.py:263")
SLEEPS = ("clock_nanosleep@libc.so.6", "pysleep@python3", "time_sleep@python3", "read@ring.py:13")
NAP = (230, 1, 1, 1, 0, 0, 0)


def still(*frames, call=FUTEX, **fields):
    return stack(*frames, *MAIN, **{"syscall": call, "switches": 0, "state": "S", "cpu": 0.0, **fields})


REMOTE = still("recv@libc.so.6", "readinto@socket.py:706", "fetch@engine.py:4", call=(45, 3, 1, 1, 0, 0, 0))


def joins(of=101):
    child = Peer(100, f"pid {of}", (of,), ("S",), ("a",))
    return process(0, still(*JOINS, call=(61, of, 0, 0, 0, 0, 0)), peers=(child,))


@pytest.mark.parametrize(
    ("asks", "other", "culprits"),
    [
        (joins(), still(*EVENT), (1,)),
        (process(0, still(*RESULT, "main@engine.py:9")), still(*EVENT, *TASK), (1,)),
        (process(0, still(*RESULT, "main@engine.py:9")), still(*RESULT, *TASK), (0, 1)),
        (joins(), still("sem_wait@libc.so.6", "__enter__@multiprocessing/synchronize.py:95"), (1,)),
        (process(0, still(*EVENT[:2], "JoinableQueue.join@multiprocessing/queues.py:329")), still(*EVENT), (1,)),
    ],
    ids=["nobody sets the event", "inside of the task", "each for a result", "a lock of processes", "all that was put"],
)
def test_where_somebody_has_asked_and_all_wait_nobody_acts(asks, other, culprits):
    found = verdict(asks, process(1, other))
    assert (found.cause, found.confidence, found.culprits) == ("other", "medium", culprits)
    assert found.finding and "Nobody in this program can proceed" in found.summary


def test_who_has_a_lock_of_processes_that_another_one_wants_is_blamed():
    acquires = still("sem_wait@libc.so.6", "_multiprocessing_SemLock_acquire_impl@python3", "work@program.py:15")
    held = LockWait(102, "mutex", 0x10, 101, owner_process=101, shared=True, still=True)
    found = verdict(joins(), process(1, acquires), process(2, acquires, locks=(held,)))
    assert (found.cause, found.culprits) == ("other", (1,))


@pytest.mark.parametrize(
    "other",
    [
        still(*EVENT, switches=2),
        still("compute@engine.py:4", state="R", cpu=0.9),
        still(*SLEEPS, call=NAP, sleeps=0.5, switches=4),
        still(*SLEEPS, call=NAP, sleeps=3000.0),
    ],
    ids=["woken", "computes", "naps", "sleeps for an hour, and its parent waits for its end"],
)
def test_while_somebody_may_act_nothing_is_found(other):
    assert not verdict(joins(), process(1, other)).finding


def test_a_thread_of_a_library_that_wants_a_lock_has_asked():
    """The feeder of a queue, as it waits for the lock that a killed writer had."""
    feeds = ("_feed@multiprocessing/queues.py:251", "run@threading.py:982", "_bootstrap@threading.py:1002")
    wants = still("sem_wait@libc.so.6", "__enter__@multiprocessing/synchronize.py:95", *feeds)
    reads = process(0, still("read@libc.so.6", "_recv@multiprocessing/connection.py:395", call=READ),
                    peers=(Peer(100, "pipe:[7]", (100, 101), ("S", "S"), ("a", "a")),))  # fmt: skip
    ends = still(*WAITS, "_finalize_join@multiprocessing/queues.py:199")
    found = verdict(reads, process(1, ends, wants))
    assert (found.cause, found.finding) == ("other", True)
    rests = still("sem_wait@libc.so.6", "wait@threading.py:327", *feeds)
    assert "Nobody in this program" not in verdict(reads, process(1, ends, rests)).summary


@pytest.mark.parametrize("call", ["Pool.join@multiprocessing/pool.py", "shutdown@concurrent/futures/process.py"])
def test_who_waits_for_the_end_of_a_pool_is_not_idle(call):
    parent = process(0, still(*WAITS, "join@threading.py:1119", f"{call}:9"))
    worker = process(1, still("read@libc.so.6", *GETS, "worker@multiprocessing/pool.py:114", call=READ))
    found = verdict(parent, worker)
    assert (found.cause, found.culprits) == ("other", (0,))
    tasks = ("_guarded_task_generation@multiprocessing/pool.py:392", "_handle_tasks@multiprocessing/pool.py:531")
    asks = stack(*REMOTE.calls[:3], *tasks, syscall=(45, 3, 1, 1, 0, 0, 0), switches=0, state="S")
    assert not verdict(replace(parent, threads=(*parent.threads, asks)), worker).culprits, (
        "tasks may come from elsewhere"
    )
    assert verdict(process(0, still(*WAITS, "get@queue.py:171", "serve@engine.py:4")), worker).cause == "not-a-hang"


EXITING = ("pthread_cond_wait@libc.so.6", "Engine::~Engine@engine.cc:4", "__run_exit_handlers@libc.so.6",
           "exit@libc.so.6", "Engine::run@engine.cc:9", "start_thread@libc.so.6")  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "call", "cause"),
    [(25, FUTEX, "destructor-or-teardown"), (4, FUTEX, "unknown"), (25, (202, 1, 393, 0, 4096, 0, 0), "not-a-hang")],
)
def test_a_side_thread_that_ends_the_process_decides(seconds, call, cause):
    """The main thread sleeps until a signal comes, as in a process that serves."""
    exits = stack(*EXITING, syscall=call, switches=0, state="S")
    seen = live(process(0, still("pause@libc.so.6", "main@engine.cc:20", call=(34, 0, 0, 0, 0, 0, 0)), exits))
    looks = [replace(seen, taken_at=1000.0 + at) for at in (0, seconds)]
    answer = judge(replace(looks[1], earlier=looks[:1])).verdict
    assert answer.cause == cause
    assert "Engine::~Engine (engine.cc:4)" in answer.summary


@pytest.mark.parametrize(
    ("call", "signals", "found"),
    [("pause", (10,), True), ("sigsuspend", (10, 15), True), ("pause", (), False), ("sigwait", (10,), False)],
)
def test_a_signal_that_has_come_and_is_blocked(call, signals, found):
    number = {"pause": 34, "sigsuspend": 130, "sigwait": 128}[call]
    waits = still(f"{call}@libc.so.6", "work@engine.py:4", call=(number, 0, 0, 0, 0, 0, 0))
    answer = verdict(process(0, waits, held_back=signals))
    assert ("SIGUSR1" in answer.summary, answer.finding) == (found, found)
    assert not found or (answer.cause, answer.confidence) == ("other", "low")


def test_semaphores_of_system_v_wait_for_ever():
    waits = [still("semop@libc.so.6", "take@engine", call=(220, 7, 1, 1, 0, 0, 0)) for _ in range(2)]
    children = Peer(100, "the first of pids 101, 102 to end", (101, 102), ("S", "S"), ("a", "a"))
    parent = process(0, still("wait4@libc.so.6", call=(61, 0xFFFFFFFF, 0, 0, 0, 0, 0)), peers=(children,))
    found = verdict(parent, *(process(number, one) for number, one in enumerate(waits, 1)))
    assert (found.cause, found.culprits) == ("other", (1, 2))
    timed = still("semtimedop@libc.so.6", "take@engine", call=(220, 7, 1, 1, 4096, 0, 0))
    assert verdict(parent, process(1, waits[0]), process(2, timed)).cause == "unknown"


def test_a_thread_of_a_library_that_was_woken_may_bring_the_answer():
    carries = stack("epoll_wait@libc.so.6", "uv_run@libuv.so.1", syscall=READ, switches=1, state="S")
    found = verdict(process(0, still(*RESULT, "main@engine.py:9"), carries), process(1, still(*EVENT, *TASK)))
    assert not found.culprits


@pytest.mark.parametrize("peers", [(), (Peer(101, "tcp 10.0.0.1:1 - 10.0.0.2:2", Missing("on another host")),)])
def test_an_answer_may_come_from_elsewhere(peers):
    found = verdict(process(0, still(*RESULT, "main@engine.py:9")), process(1, REMOTE, peers=peers))
    assert "for something outside the program" in found.summary


BEATS = ("beat@engine.py:3", "run@threading.py:982")


@pytest.mark.parametrize(
    ("outer", "ends", "seconds", "found"),
    [
        (BEATS, 0.5, 25, True),
        (BEATS, 0.5, 4, False),
        (BEATS, 45.0, 25, False),  # a sleep that somebody means
        (("ask_again@engine.py:8", *BEATS), 0.5, 25, False),  # at work on something
        (TASK, 0.5, 25, False),
    ],
)
def test_a_heartbeat_does_not_act(outer, ends, seconds, found):
    beats = stack(*SLEEPS[:2], *outer, syscall=NAP, switches=2, sleeps=ends, state="S", cpu=0.0)
    seen = live(process(0, still(*RESULT, "main@engine.py:9"), beats), process(1, still(*EVENT)))
    looks = [replace(seen, taken_at=1000.0 + at) for at in (0, seconds)]
    answer = judge(replace(looks[1], earlier=looks[:1])).verdict
    assert (answer.cause == "other", answer.culprits) == (found, (1,) if found else ())


@pytest.mark.parametrize(("marks", "found"), [((7, 8), True), ((7, 9), False)], ids=["the same", "others"])
def test_whose_local_variables_change_between_naps_may_work_on_the_answer(marks, found):
    looks = []
    for at, seen in ((0, (7, 8)), (25, marks)):
        beats = stack(*SLEEPS[:2], *BEATS, syscall=NAP, switches=2, sleeps=0.5, state="S", cpu=0.0, marks=seen)
        job = live(process(0, still(*RESULT, "main@engine.py:9"), beats), process(1, still(*EVENT)))
        looks.append(replace(job, taken_at=1000.0 + at))
    assert (judge(replace(looks[1], earlier=tuple(looks[:1]))).verdict.cause == "other") == found


@pytest.mark.parametrize(("seconds", "finding"), [(86000.0, True), (5.0, False)])
def test_who_sleeps_for_very_long_does_not_answer(seconds, finding):
    reads = still("recv@libc.so.6", "readinto@socket.py:706", "fetch@engine.py:4", call=(45, 3, 1, 1, 0, 0, 0))
    peer = Peer(101, "tcp 127.0.0.1:1 - 127.0.0.1:2", (102,), ("S",), ("a",))
    waits = process(0, still(*RESULT, "main@engine.py:9"))
    sleeps = process(2, still(*SLEEPS, call=NAP, sleeps=seconds))
    found = verdict(waits, process(1, reads, peers=(peer,)), sleeps)
    assert (found.finding, found.culprits) == (finding, (2,) if finding else ())


SERVER = process(
    0,
    still(*ACCEPTS, "serve@engine.py:3", call=(288, 3, 0, 0, 0, 0, 0)),
    peers=(Peer(100, "tcp 127.0.0.1:80", Missing("it listens", Code.ANYBODY)),),
)


def test_workers_that_wait_in_shared_memory_for_orders_of_a_server_are_at_rest():
    assert verdict(SERVER, process(1, still(*EVENT, "work@engine.py:4"))).cause == "not-a-hang"
    asks = verdict(SERVER, process(1, still("sem_wait@libc.so.6", "__enter__@multiprocessing/synchronize.py:95")))
    assert asks.cause != "not-a-hang"


def polls(number, *outer):
    main = still(*WAITS, "wait@threading.py:629", "worker@ring.py:20")
    looks = stack(*SLEEPS, *(outer or ("loop@ring.py:3",)), syscall=NAP, switches=90, sleeps=0.001, state="S", cpu=0.01)
    return process(number, main, looks)


@pytest.mark.parametrize(
    ("seconds", "outer", "cause"),
    [(0, (), "unknown"), (25, (), "not-a-hang"), (25, ("do_GET@http/server.py:9",), "unknown"), (25, TASK, "unknown")],
)
def test_workers_that_poll_for_orders_are_at_rest_when_nothing_else_was_seen_for_long(seconds, outer, cause):
    seen = live(SERVER, polls(1, *outer), polls(2, *outer))
    looks = [replace(seen, taken_at=1000.0 + at) for at in sorted({0, seconds})]
    found = judge(replace(looks[-1], earlier=tuple(looks[:-1]))).verdict
    assert found.cause == cause


def test_a_side_thread_that_naps_decides_nothing_where_the_main_one_is_idle():
    naps = stack(*SLEEPS, "report@engine.py:3", syscall=NAP, switches=2, sleeps=1.0, state="S")
    found = judge(live(process(0, SERVER.threads[0], naps, peers=SERVER.peers)))
    assert (found.processes[0].wait.thread, found.verdict.cause) == ("100", "not-a-hang")


def test_who_has_asked_for_nothing_is_no_finding():
    found = verdict(process(0, still(*GETS, "work@engine.py:4", call=READ)))
    assert (found.cause, found.finding, bool(found.decided_by)) == ("unknown", False, True)


@pytest.mark.parametrize(
    ("calls", "finding"),
    [(("put@queue.py:140",), True), (("__enter__@threading.py:272", "put@queue.py:133"), True),
     (("__enter__@multiprocessing/synchronize.py:95", "get@multiprocessing/queues.py:102"), False)],
)  # fmt: skip
def test_who_waits_for_room_or_a_lock_has_asked(calls, finding):
    assert verdict(process(0, still("do_futex_wait@libc.so.6", *calls, "log@engine.py:3"))).finding is finding


KEY = ("poll@libc.so.6", "c10d::TCPStore::doWait@libtorch_cpu.so", "take@engine.py:72", *MAIN)


def asks_key(number):
    return rank(number, stack(*KEY, syscall=(7, 1, 1, 86400000, 0, 0, 0), switches=0, still=0, cpu=0.0))


def standing(number):
    one = gloo_reducing(number)
    return replace(one, threads=tuple(replace(thread, still=0, switches=0, cpu=0.0) for thread in one.threads))


def test_a_key_of_the_store_and_a_collective_wait_for_each_other():
    found = judge(job(standing(0), standing(1), asks_key(2), apart=1.2)).verdict
    assert (found.cause, found.culprits) == ("missing-rank", (2,))
    assert "for a key of the store, which another rank must set" in found.summary


def test_a_set_up_that_a_rank_in_a_collective_has_not_joined():
    found = judge(job(setting_up(0), setting_up(1), standing(2), apart=1.2)).verdict
    assert (found.cause, found.culprits) == ("init-rendezvous", (2,))
    assert found.summary.endswith("in a set-up that rank 2 must join: neither side can go on without the other.")
    for other in (
        job(setting_up(0), setting_up(1), gloo_reducing(2)),  # the collective may be about to end
        job(setting_up(0), standing(1), standing(2), apart=1.2),
        job(setting_up(0), setting_up(1), standing(2), world_size=4, apart=1.2),
    ):
        assert "neither side can go on" not in judge(other).verdict.summary


def test_ranks_that_all_wait_for_keys_wait_for_each_other():
    found = judge(job(asks_key(0), asks_key(1), asks_key(2), apart=1.2)).verdict
    assert (found.cause, found.culprits) == ("collective-mismatch", (0, 1, 2))
    assert "a key of the store, which only another rank sets" in found.summary
    alone = judge(job(asks_key(0), asks_key(1), world_size=3, apart=1.2)).verdict
    assert alone.cause != "collective-mismatch", "the third may set them"


def in_mpi(number, call, place="serve@farm.py:26", still=1):
    calls = (f"mca_pml_ob1_{call.lower()}@mca_pml_ob1.so", f"PMPI_{call}@libmpi.so.40", place, *MAIN)
    return rank(number, stack(*calls, state="R", cpu=0.9, switches=3000, still=still))


def test_ranks_that_probe_and_nobody_sends():
    master = in_mpi(0, "Mprobe", "collect@farm.py:44")
    found = judge(job(master, in_mpi(1, "Mprobe"), in_mpi(2, "Mprobe"), apart=1.2)).verdict
    assert (found.cause, found.culprits) == ("collective-mismatch", (0,))
    assert "none of them sends" in found.summary and "collect (farm.py:44)" in found.summary


def test_a_send_and_a_receive_that_do_not_mean_each_other():
    ranks = in_mpi(0, "Recv"), in_mpi(1, "Ssend"), in_mpi(2, "Barrier")
    found = judge(job(*ranks, apart=1.2)).verdict
    assert (found.cause, found.culprits) == ("collective-mismatch", (0, 1))
    assert judge(job(*ranks)).verdict.cause == "unknown", "seen once they may be about to meet"
    moved = in_mpi(2, "Barrier", still=5)
    assert judge(job(*ranks[:2], moved, apart=1.2)).verdict.cause == "not-a-hang"


def test_a_send_and_a_receive_of_two_ranks_that_do_not_end_do_not_match():
    found = judge(job(in_mpi(0, "Recv"), in_mpi(1, "Ssend"), apart=1.2)).verdict
    assert found.cause == "collective-mismatch"
    assert "sends and receives that do not match" in found.summary


def test_ranks_in_one_collective_with_different_roots():
    def broadcasting(number, root):
        one = standing(number)
        calls = stack("c10d::Work::wait@libtorch_cpu.so", "broadcast@torch/distributed/distributed_c10d.py:3151", *MAIN)
        names = {"group": "0", "ranks": "0,1,2", "group_src": root}
        frames = (calls.frames[0], replace(calls.frames[1], captures=names), *calls.frames[2:])
        return replace(one, threads=(replace(one.threads[0], frames=frames), *one.threads[1:]))

    found = judge(job(*(broadcasting(number, root) for number, root in enumerate((0, 2, 0))), apart=1.2)).verdict
    assert (found.cause, found.culprits) == ("collective-mismatch", (1,))
    assert "the same collective with different roots: rank 1 in broadcast" in found.summary
    same = judge(job(*(broadcasting(number, 0) for number in range(3)), apart=1.2)).verdict
    assert same.cause == "unknown"


def marked(number, *marks, looped=False):
    outer = ("step@train.py:5", "train@train.py:9", "<module>@train.py:1")
    if looped:
        return rank(number, stack("spin@train.py:3", *outer, state="R", cpu=0.9, marks=marks))
    one = gloo_reducing(number)
    main = replace(one.threads[0], frames=(*one.threads[0].frames[:4], *stack(*outer).frames), marks=marks, still=1)
    return replace(one, threads=(replace(main, switches=0, cpu=0.0), *one.threads[1:]))


def two_looks(first, second):
    looks = [job(*ranks, apart=1.2, taken_at=1000.0 + at) for at, ranks in ((0, first), (24, second))]
    return judge(replace(looks[1], earlier=looks[:1])).verdict


@pytest.mark.parametrize(
    ("waits", "loops", "cause"),
    [
        ((7, 8, 9), (5, 6, 7, 8), "missing-rank"),
        ((7, 80, 9), (5, 6, 7, 8), "not-a-hang"),  # the caller of what waits has gone on
        ((7, 0, 9), (5, 6, 7, 8), "missing-rank"),  # it was not read
        ((7, 8, 9), (5, 6, 7, 80), "missing-rank"),  # the loop itself counts
        ((7, 8, 9), (5, 60, 7, 8), "unknown"),  # the loop was called anew
    ],
)
def test_local_variables_of_a_caller_show_that_its_call_has_returned(waits, loops, cause):
    first = marked(0, 7, 8, 9), marked(1, 5, 6, 7, 8, looped=True)
    assert two_looks(first, (marked(0, *waits), marked(1, *loops, looped=True))).cause == cause


def test_a_rank_that_asks_the_store_again_and_again_makes_no_progress():
    outer = ("meet@train.py:{}", "<module>@train.py:1")
    naps = stack("clock_nanosleep@libc.so.6", *(one.format(90) for one in outer), sleeps=0.1, switches=9, marks=(7, 8))
    asks = stack(
        "recv@libc.so.6", "c10d::TCPStore::add@libtorch_cpu.so", *(one.format(89) for one in outer), left=4, still=5,
        switches=9, marks=(7, 8),
    )  # fmt: skip
    waits = stack(
        "poll@libc.so.6", "c10d::TCPStore::wait@libtorch_cpu.so", *(one.format(92) for one in outer), left=0, still=0,
        switches=0, marks=(7, 8),
    )  # fmt: skip
    others = tuple(rank(number, waits) for number in (1, 2))
    assert two_looks((rank(0, naps), *others), (rank(0, asks), *others)).cause == "unknown"
    got = replace(asks, marks=(7, 80))
    assert two_looks((rank(0, naps), *others), (rank(0, got), *others)).cause == "not-a-hang"


CALLS = ("read@libc.so.6", "_recv@multiprocessing/connection.py:395", "_callmethod@multiprocessing/managers.py:822")
MANAGES = still(*WAITS, "serve_forever@multiprocessing/managers.py:176", call=(202, 1, 137, 0, 0x7FFF0000, 0, 0))
WANTS = ("do_futex_wait@libc.so.6", "lock_PyThread_acquire_lock@python3", "Registry.has@engine.py:85")
NEXT_CALL = ("read@libc.so.6", "_recv@multiprocessing/connection.py:395")


@pytest.mark.parametrize(
    ("serves", "culprits"), [(WANTS, (1,)), (NEXT_CALL, ())], ids=["a lock of its object", "the next call"]
)
def test_a_manager_whose_own_object_waits_is_no_idle_server(serves, culprits):
    calls = process(0, still(*CALLS, call=READ), peers=(Peer(100, "unix socket:[7]", (101,), ("S",), ("python",)),))
    client = still(*serves, "serve_client@multiprocessing/managers.py:273", call=READ if serves is NEXT_CALL else FUTEX)
    assert verdict(calls, process(1, MANAGES, client)).culprits == culprits


POLLS_FOR_TASKS = ("poll@libc.so.6", "select_poll_poll@python3", "unix_poll@pebble/pool/channel.py:59")


def manager(cpu):
    frames = ("clock_nanosleep@libc.so.6", "time_sleep@python3", "pool_manager_loop@pebble/pool/process.py:183", *MAIN)
    return stack(*frames, state="S", syscall=NAP, sleeps=0.2, switches=9, cpu=cpu)


@pytest.mark.parametrize(
    ("seconds", "cpu", "ends", "cause"),
    [(21.0, 0.001, 100, "other"), (3.0, 0.001, 100, "unknown"), (21.0, 0.5, 100, "not-a-hang"),
     (21.0, 0.001, 880, "unknown")],
    ids=["nobody has it", "for a short time", "the parent works", "another program may send tasks"],
)  # fmt: skip
def test_a_pool_whose_workers_wait_for_tasks_while_their_parent_waits_for_a_result(seconds, cpu, ends, cause):
    peer = Peer(101, "unix socket:[9]", (ends,), ("S",), ("python",))
    worker = process(1, still(*POLLS_FOR_TASKS, call=(7, 1, 1, 0xFFFFFFFF, 0, 0, 0)), peers=(peer,))
    now = live(process(0, still(*RESULT, "main@engine.py:9"), manager(cpu)), worker)
    found = judge(replace(now, taken_at=seconds), replace(now, taken_at=0.0)).verdict
    assert (found.cause, found.culprits) == (cause, (0,) if cause == "other" else ())


ACQUIRES = still("do_futex_wait@libc.so.6", "wait@threading.py:327", "Semaphore.acquire@threading.py:479")
TAKES_CLIENTS = still(*ACCEPTS, call=(288, 3, 0, 0, 0, 0, 0))
COMPUTES = stack("sum@a.so", "add@tunnel.py:9", state="R", cpu=0.9, switches=9)
KEEPS = stack(*SLEEPS[:3], "keep@tunnel.py:230", "run@threading.py:982", syscall=NAP, sleeps=2.0, switches=0, state="S")


@pytest.mark.parametrize(
    ("others", "finding"),
    [((KEEPS,), True), ((TAKES_CLIENTS,), False), ((TAKES_CLIENTS, ACQUIRES), True), ((COMPUTES,), False)],
    ids=["a heartbeat", "a client may bring it", "two of them", "another one is elsewhere"],
)
def test_a_process_alone_that_waits_for_what_only_itself_can_give(others, finding):
    found = lasting(process(0, ACQUIRES, *others, handlers=()))
    assert found.finding is finding, found.summary
