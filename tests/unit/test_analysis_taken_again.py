"""Locks that nobody can let go: taken further out on the stack, left by a fork, or given by a thread that needs the
GIL; and a thread that writes while it naps."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.activity import Activity, Child
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, LOOPS, MAIN, READ, SELECTS, live, process
from tests.unit.test_analysis_own_hangs import over_time

ACQUIRES = ("futex_wait@libc.so.6", "PyThread_acquire_lock_timed@python3", "lock_PyThread_acquire_lock@python3")
INNER, HANDLER, OUTER = "Log.write@log.py:26", "Server.on_signal@server.py:50", "Log.write@log.py:31"
SIGNAL = "_PyErr_CheckSignalsTstate@python3"
RECEIVES = stack("recv@libc.so.6", "reader@libext.so ext.cpp:6", syscall=READ, state="S", switches=0)
LOOP = stack(
    "epoll_wait@libc.so.6", *SELECTS[1:], *LOOPS, syscall=(232, 5, 1, 1, 0xFFFFFFFF, 0, 0), state="S", switches=0
)
COMPUTES = stack("gemm@libext.so", "main@engine", state="R", cpu=0.9, switches=50)
AT_REST = stack("epoll_wait@libc.so.6", "poll@engine io.cpp:5", syscall=FUTEX, state="S", switches=0)


def writes(*frames, acquires=ACQUIRES, **fields):
    return stack(*acquires, *frames, *MAIN, **{"syscall": FUTEX, "state": "S", "switches": 0, **fields})


@pytest.mark.parametrize(
    "called", [(HANDLER, SIGNAL), (HANDLER, "slot_tp_finalize@python3"), ("Log.__del__@log.py:9",)], ids=str
)
def test_a_function_that_a_handler_calls_again_waits_for_the_lock_that_it_has(called):
    found = judge(live(process(0, writes(INNER, *called, OUTER)))).verdict
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "medium", (0,))
    assert found.summary.startswith("Self-deadlock")
    assert "Log.write is at line 31, past line 26" in found.summary
    assert "threading.RLock" in found.remedies[0].action
    beside = judge(live(process(0, writes(INNER, *called, OUTER), RECEIVES))).verdict
    assert (beside.cause, beside.confidence) == ("lock-order-deadlock", "low")


def test_locks_of_two_objects_may_have_equal_code():
    found = judge(live(process(0, writes(INNER, HANDLER, OUTER)))).verdict
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "low", (0,))
    assert "If that is the same lock, it waits for itself" in found.summary


@pytest.mark.parametrize(
    "threads",
    [
        (writes(INNER, HANDLER),),
        (writes(INNER, HANDLER, "Log.write@log.py:20"),),
        (writes(INNER, HANDLER, "Log.write@other.py:31"),),
        (writes(INNER, HANDLER, OUTER, switches=3),),
        (writes(INNER, HANDLER, OUTER, acquires=(*ACQUIRES[:2], "rlock_acquire@python3")),),
        (writes(INNER, HANDLER, OUTER, acquires=ACQUIRES[:2]),),
        (writes(INNER, SIGNAL, OUTER), stack("gemm@libext.so", "work@libext.so", state="R", cpu=0.9, switches=9)),
        (writes(INNER, HANDLER, OUTER), RECEIVES),
        (writes(INNER, HANDLER, OUTER), LOOP),
    ],
    ids=[
        "once",
        "before the line",
        "another file",
        "it was woken",
        "taken again by its owner",
        "perhaps taken again by its owner",
        "a thread works",
        "a thread may have it",
        "a task of a loop may have it",
    ],
)
def test_who_may_get_the_lock_is_no_deadlock_of_its_own(threads):
    assert "further out on the same stack" not in judge(live(process(0, *threads))).verdict.summary


@pytest.mark.parametrize(
    "fields",
    [{"locks": (LockWait(100, "mutex", 0x10, 110),)}, {"activity": Activity(1.0, children=(Child("python", 9, 0.9),))}],
    ids=["another thread has it", "a child works"],
)
def test_a_lock_whose_holder_is_known_or_may_wait_for_a_child_is_not_its_own(fields):
    one = process(0, writes(INNER, HANDLER, OUTER), **fields)
    assert "further out on the same stack" not in judge(live(one)).verdict.summary


def test_a_lock_is_not_its_own_while_another_process_works():
    one, other = process(0, writes(INNER, HANDLER, OUTER)), process(1, COMPUTES)
    assert "further out on the same stack" not in judge(live(one, other)).verdict.summary


def receives(*others, pid=100, gil=True):
    peer = Peer(100, "tcp 127.0.0.1:1 - 127.0.0.1:2", (pid,), ("S",), ("python",))
    main = stack("recv@libc.so.6", "connect@libext.so ext.cpp:9", *MAIN, syscall=READ, state="S", switches=0, gil=gil)
    waits = stack("pthread_cond_timedwait@libc.so.6", "take_gil@python3", "serve@store.py:9", state="S", switches=9)
    return process(0, main, waits, *others, peers=(peer,), locks=(LockWait(110, "gil", 0x10, 100, still=True),))


@pytest.mark.parametrize(("fields", "named"), [({}, True), ({"pid": 200}, False), ({"gil": False}, False)])
def test_who_keeps_the_gil_while_only_its_own_process_can_answer_is_named(fields, named):
    found = over_time(receives(**fields))
    assert (ITS_OWN in found.summary) == named
    assert not named or (found.cause, found.confidence) == ("gil-deadlock", "medium")


ITS_OWN = "the other end of that connection is in the same process"


def test_others_that_wait_for_the_same_process_bring_no_answer():
    reads = stack("recv@libc.so.6", "copy@proxy.py:9", syscall=READ, state="S", switches=0)
    proxy = receives(reads)
    back = Peer(120, "tcp 127.0.0.1:3 - 127.0.0.1:4", (100,), ("S",), ("python",))
    assert ITS_OWN in over_time(replace(proxy, peers=(*proxy.peers, back))).summary
    assert ITS_OWN not in over_time(replace(proxy, peers=(*proxy.peers, replace(back, processes=(200,))))).summary


@pytest.mark.parametrize(
    ("jobs", "seconds"),
    [
        ((receives(RECEIVES),), 21.0),
        ((receives(), process(1, COMPUTES)), 21.0),
        ((receives(),), 5.0),
    ],
    ids=["a thread waits for something else", "another process works", "not for long"],
)
def test_who_keeps_the_gil_while_somebody_may_bring_the_answer_is_not_named(jobs, seconds):
    assert ITS_OWN not in over_time(*jobs, seconds=seconds).summary


NAPS = ("clock_nanosleep@libc.so.6", "std::this_thread::sleep_for@libc.so.6")


def forks(
    *calls,
    threads=1,
    kind="condvar",
    rest=AT_REST,
    file="pipe:[7]",
    shared=False,
    handlers=None,
    seconds=21.0,
    **fields,
):
    """A program with two threads, and its child, whose end of a pipe it reads."""
    peer = Peer(100, file, (101,), ("S",), ("engine",))
    reads = stack("read@libc.so.6", "start@engine run.cpp:5", "main@engine", syscall=READ, state="S", switches=0)
    more = {"syscall": FUTEX, "state": "S", "switches": 0, **fields}
    wait = LockWait(101, kind, 0x20, Missing("none"), still=True, shared=shared)
    locks = () if "sleeps" in fields else (wait,)
    child = process(1, *[stack(*calls, "start@engine run.cpp:4", "main@engine", **more)] * threads, locks=locks)
    parent = replace(process(0, reads, rest, peers=(peer,)), title="engine")
    return over_time(parent, replace(child, title="engine", handlers=handlers), seconds=seconds)


NAP = {"syscall": (230, 0, 0, 1, 1, 0, 0), "sleeps": 0.001, "switches": 500}


def test_a_forked_child_that_tries_a_lock_again_and_again_waits_for_a_thread_of_its_parent():
    found = forks(*NAPS, "Heap::lock@engine heap.cpp:5", **NAP)
    assert (found.cause, found.confidence, found.culprits) == ("fork-after-cuda", "low", (1,))


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ("Heap::lookup@engine heap.cpp:5", {}),
        ("Heap::lock@engine heap.cpp:5", {"threads": 2}),
        ("Ring::acquire@engine ring.cpp:5", {}),
        ("Lease.lock@lease.py:5", {}),
        ("Heap::lock@engine heap.cpp:5", {"seconds": 5.0}),
        ("Heap::lock@engine heap.cpp:5", {"rest": replace(AT_REST, switches=3)}),
    ],
    ids=["another name", "another thread", "a slot", "of Python", "not for long", "its parent works"],
)
def test_who_looks_again_for_what_others_may_give_is_not_called_forked(call, fields):
    found = forks(*NAPS, call, **NAP, **fields)
    assert found.cause in ("unknown", "not-a-hang") and not found.finding


@pytest.mark.parametrize(
    ("calls", "fields", "confidence"),
    [
        (("sem_wait@libc.so.6", *ACQUIRES[1:]), {"kind": "semaphore"}, "medium"),
        (("sem_wait@libc.so.6", "Pool::run@libpool.so pool.cpp:30"), {"kind": "semaphore"}, "low"),
        (("sem_wait@libc.so.6", *ACQUIRES[1:]), {"kind": "semaphore", "handlers": (2, 11, 15)}, "medium"),
        (("sem_wait@libc.so.6", "Pool::run@libpool.so pool.cpp:30"), {"kind": "semaphore", "handlers": (15,)}, ""),
        (("sem_wait@libc.so.6", *ACQUIRES[1:]), {"kind": "semaphore", "shared": True}, ""),
        (("lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6"), {"handlers": (15,)}, "medium"),
        (("__libc_pause@libc.so.6",), {"syscall": (34, 0, 0, 0, 0, 0, 0)}, ""),
        (("__GI___sigsuspend@libc.so.6",), {"syscall": (130, 0, 0, 0, 0, 0, 0)}, ""),
    ],
    ids=[
        "a lock",
        "a semaphore",
        "a lock, where workers of torch have handlers",
        "a semaphore with a handler",
        "that is shared",
        "a mutex",
        "a signal",
        "a signal that it lets come",
    ],
)
def test_a_child_at_rest_is_not_called_forked_beside_a_lock(calls, fields, confidence):
    found = forks(*calls, "serve@engine run.cpp:3", file="pid 101", **fields)
    assert (found.cause == "fork-after-cuda") == bool(confidence)
    assert not confidence or found.confidence == confidence


def test_the_only_thread_of_a_forked_child_waits_for_a_pool_that_stayed_behind():
    waits = (
        "pthread_cond_wait@libc.so.6",
        "Pool::run@libpool.so pool.cpp:30",
        "os.fork@engine.py:4",
        "_launch@popen.py:7",
    )
    found = forks(*waits)
    assert (found.cause, found.culprits) == ("fork-after-cuda", (1,))
    assert forks(*waits, kind="semaphore").cause != "fork-after-cuda"  # a handler may post it


@pytest.mark.parametrize(
    ("handlers", "cause"), [((2, 11), "lock-order-deadlock"), ((2, 15), "unknown")], ids=["none", "of SIGTERM"]
)
def test_a_child_that_a_handler_may_end_may_rest(handlers, cause):
    waits = ("wait4@libc.so.6", "Popen.poll@multiprocessing/popen_fork.py:27")
    parent = stack(*waits, *MAIN, syscall=(61, 101, 0, 0, 0, 0, 0), state="S", switches=0)
    child = stack("sem_wait@libc.so.6", *ACQUIRES[1:], "Condition.wait@threading.py:327", "Event.wait@threading.py:629",
                  *MAIN, syscall=FUTEX, state="S", switches=0)  # fmt: skip
    peer, wait = Peer(100, "pid 101", (101,)), LockWait(101, "semaphore", 0x20, Missing("none"), still=True)
    rests = process(1, child, locks=(wait,), handlers=handlers, python="3.11")
    assert judge(live(process(0, parent, peers=(peer,)), rests)).verdict.cause == cause


QUEUE = ("futex_wait@libc.so.6", "PyThread_acquire_lock_timed@python3", "Queue.get@queue.py:171", "main@run.py:3")


@pytest.mark.parametrize(
    ("waits", "written", "may_go_on"),
    [(QUEUE, 100_000, True), (QUEUE, 4_000, False), ((*ACQUIRES, "save@run.py:3"), 100_000, False)],
    ids=["a queue", "it writes little", "a lock"],
)
def test_a_thread_that_writes_all_the_time_may_feed_a_wait_but_does_not_keep_a_lock(waits, written, may_go_on):
    main = stack(*waits, *MAIN, syscall=FUTEX, state="S", switches=0)
    nap = {"syscall": (230, 0, 0, 1, 1, 0, 0), "sleeps": 0.0, "state": "S", "switches": 30}
    disk = stack(
        "clock_nanosleep@libc.so.6", "time_sleep@python3", "move@disk.py:8", "Thread.run@threading.py:9", **nap
    )
    found = over_time(process(0, main, disk, activity=Activity(1.0, written_bytes=written)))
    assert found.cause == "unknown"
    assert ("threads that wake up repeatedly" in found.summary) == may_go_on
