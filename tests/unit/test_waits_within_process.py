"""Processes of which every thread waits for another one of them, and those that look alike and have a way out."""

import time
from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.capture.locks_in_memory.futexes import FutexCall
from gdbext.capture.locks_in_memory.lock_context import Surroundings
from gdbext.capture.locks_in_memory.mutex_owners import resolve
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.glibc_locks import BY_HANDLER, LET_GO, NO_OWNER
from gdbext.model.activity import Activity
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import KINDS, LockWait, Peer
from gdbext.model.missing import Missing
from tests.unit.stacks import job, rank, reducing, stack

SLEEPS = ("__futex_abstimed_wait_common64@libc.so.6", "pthread_cond_wait@libc.so.6", "work@engine pool.cc:3")
JOINS = ("__futex_abstimed_wait_common64@libc.so.6", "__pthread_clockjoin_ex@libc.so.6", "main@engine main.cc:9")
ACCEPTS = ("accept4@libc.so.6", "serve@engine server.cc:7", "main@engine main.cc:9")


def thread(lwp, *frames, **fields):
    return stack(*(frames or SLEEPS), id=str(lwp), lwp=lwp, **fields)


def waits(lwp, kind="condvar", owner=None, **fields):
    fields.setdefault("still", True)
    return LockWait(
        lwp, kind, 0x1000 * lwp, Missing(NO_OWNER.get(kind, "nothing")) if owner is None else owner, **fields
    )


def pool(*locks, threads=(), **fields):
    """A main thread that waits for the end of a worker, the worker, and more."""
    fields.setdefault("handlers", ())
    found = (waits(1, "join", 2), *locks)
    return rank(0, thread(1, *JOINS), thread(2), *threads, pid=1, locks=found, **fields)


def verdict(*ranks):
    return judge(job(*ranks)).verdict


@pytest.mark.parametrize(
    ("process", "confidence"),
    [
        (pool(waits(2)), "high"),
        (pool(waits(2, still=None)), "high"),
        (pool(waits(2, "semaphore")), "high"),
        (pool(waits(2, "barrier")), "high"),
        (pool(waits(2, "once")), "high"),
        (pool(waits(2, "rwlock", Missing("held by 1 reader"), detail="held by 1 reader", readers=True)), "high"),
        (pool(waits(2, "futex")), "medium"),
        (pool(waits(2, "semaphore"), handlers=(2, 11, 32), python="3.11"), "medium"),
        (pool(waits(2), handlers=None, source="core"), "medium"),
        (pool(waits(2, "semaphore"), handlers=(15,)), "low"),  # which only ends the program
        (pool(waits(2, "semaphore"), handlers=(15, 17), activity=Activity(1.0)), "low"),
        (rank(0, thread(1), pid=1, locks=(waits(1),), handlers=()), "high"),
        (pool(waits(2), waits(3, "mutex", 2), threads=(thread(3),)), "high"),
        (pool(waits(2), threads=(thread(3, state="Z"),)), "high"),
    ],
    ids=lambda one: "" if isinstance(one, RankSnapshot) else one,
)
def test_nobody_is_left(process, confidence):
    found = verdict(process)
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", confidence, (0,))
    assert "No thread of rank 0 is left that could wake another one" in found.summary
    assert found.chain[-1].target.id in {edge.source.id for edge in found.chain}


@pytest.mark.parametrize(
    ("process", "why"),
    [
        (pool(waits(2), threads=(thread(3, *ACCEPTS),)), "serve (server.cc:7)"),
        (pool(waits(2), waits(3), threads=(thread(3), thread(4))), "thread 4 is in work"),  # a wait that nobody saw
        (pool(waits(2), waits(3, timed=True), threads=(thread(3),)), "thread 3 waits with a time-out"),
        (pool(waits(2), waits(3, "semaphore", shared=True), threads=(thread(3),)), "other processes share"),
        (pool(waits(2, "semaphore"), waits(3), threads=(thread(3),), handlers=(10,)), "handler of signal 10"),
        (pool(waits(2, "semaphore"), handlers=(15, 17)), "handler of signal 17"),  # a child may end
        (pool(waits(2), waits(3), threads=(thread(3),), handlers=(2,)), "handler of signal 2"),  # of no Python
        (pool(waits(2, "semaphore"), handlers=None, source="core"), "may be woken by a signal handler"),
        (pool(waits(2), waits(3, "condvar", LET_GO), threads=(thread(3),)), "thread 3 is about to resume"),
        (pool(waits(2), waits(3, still=False), threads=(thread(3),)), "thread 3 is about to resume"),
        (pool(waits(2), waits(3, "mutex", Missing("torn")), threads=(thread(3),)), "an object of unknown owner (torn)"),
        (pool(waits(2), waits(3, "mutex", 77), threads=(thread(3),)), "its owner was not seen"),
        (pool(waits(2), state="partial"), "not all of the process was read"),
    ],
    ids=lambda one: "" if isinstance(one, RankSnapshot) else one,
)
def test_a_way_out_leaves_it_open_and_is_told(process, why):
    found = verdict(process)
    assert (found.cause, found.culprits) == ("unknown", ())
    told = [line.text for line in found.evidence if "what may wake the waiting threads" in line.text]
    assert why in "".join(told) or why == "not all of the process was read"


def test_a_copy_whose_stacks_lack_their_outer_end_shows_all_waits():
    waiting = (202, 1, 128, 0, 0, 0, 0)
    process = pool(waits(2), state="partial")
    known = replace(process, threads=tuple(replace(one, syscall=waiting) for one in process.threads))
    assert verdict(known).cause == "lock-order-deadlock"


def test_who_waits_to_be_told_to_end_may_do_so():
    assert verdict(rank(0, thread(1), pid=1, locks=(waits(1, "semaphore"),), handlers=(15,))).cause == "unknown"


def test_who_waits_in_the_only_handler_that_the_program_has_is_woken_by_none():
    frames = (
        *SLEEPS[:2],
        "Buffer.on_term@buffer.py:9",
        "_PyErr_CheckSignalsTstate@python3",
        "Buffer.append@buffer.py:5",
    )
    inside = rank(0, thread(1, *frames), pid=1, locks=(waits(1, "semaphore"),), handlers=(2, 15), python="3.11")
    found = verdict(inside)
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "medium", (0,))
    assert "Python has interrupted Buffer.append (buffer.py:5) for a signal handler" in found.summary
    assert verdict(replace(inside, handlers=(2, 10, 15))).cause == "unknown", "another handler may wake it"


def test_a_rank_that_waits_for_others_is_not_left_alone():
    inside = stack("sched_yield@libc.so.6", "ncclAllReduce@libnccl.so.2", "main@engine", id="3", lwp=3)
    found = verdict(pool(waits(2), waits(3), threads=(inside,)), reducing(1))
    assert found.cause != "lock-order-deadlock"


def test_the_others_wait_for_the_process_that_nobody_in_it_can_wake():
    found = verdict(pool(waits(2)), reducing(1), reducing(2))
    assert (found.cause, found.culprits, found.victims) == ("lock-order-deadlock", (0,), (1, 2))
    assert found.remedies[0].action.startswith("Find the code that should wake the waiting threads")


def test_a_circle_of_two_in_it_is_the_answer():
    found = verdict(pool(waits(2), waits(3, "mutex", 4), waits(4, "mutex", 3), threads=(thread(3), thread(4))))
    assert found.cause == "lock-order-deadlock"
    assert "Two threads of rank 0 wait for each other" in found.summary


def test_a_lock_of_one_that_has_ended_is_the_answer():
    found = verdict(pool(waits(2, "mutex", 99, gone=True), waits(3), threads=(thread(3),)))
    assert (found.cause, found.confidence) == ("other", "high")


def test_thousands_of_them():
    count = 4000
    threads = tuple(replace(thread(1), id=str(lwp), lwp=lwp) for lwp in range(1, count))
    began = time.process_time()
    found = verdict(RankSnapshot(0, threads, pid=1, rank=0, locks=tuple(map(waits, range(1, count))), handlers=()))
    assert time.process_time() - began < 10
    assert found.cause == "lock-order-deadlock"
    assert len(found.summary) < 1000


# --- capture: who is asleep, and on what ---


@pytest.mark.parametrize("kind", sorted(set(KINDS) & {*NO_OWNER, *BY_HANDLER}))
def test_a_word_that_has_changed_is_a_thread_that_is_about_to_run(kind):
    calls = {"semaphore": "sem_wait", "once": "__pthread_once", "barrier": "pthread_barrier_wait", "malloc": "malloc"}
    calls.update(condvar="pthread_cond_wait", futex="??")
    one = stack(f"{calls[kind]}@libc.so.6", "main@engine", lwp=7)
    for word, about_to_run in ((0, False), (2, True)):
        memory = word.to_bytes(4, "little") + bytes(60)
        call = FutexCall(7, 0x5000, 0, 0, timed=False, private=True, before=bytes(48), memory=memory)
        (row,) = resolve({7: call}, [one], Surroundings({}))
        assert row.kind == kind
        assert (row.owner == LET_GO) == about_to_run
        assert not row.shared
    open_to_others = call._replace(private=False, memory=bytes(64))
    (row,) = resolve({7: open_to_others}, [one], Surroundings({}))
    assert row.shared


def test_handlers_of_a_process(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("Name:\tx\nSigCgt:\t0000000180004002\n")
    assert ProcFS(str(tmp_path)).handlers(7) == (2, 15, 32, 33)
    assert ProcFS(str(tmp_path)).handlers(8) is None
    (tmp_path / "7" / "status").write_text("Name:\tx\n")
    assert ProcFS(str(tmp_path)).handlers(7) is None


RECEIVES = ("recv@libc.so.6", "serve@engine server.cc:7", "main@engine main.cc:9")
LOCKS_FILE = ("flock@libc.so.6", "save@engine cache.cc:7", "main@engine main.cc:9")


def with_file(frames, *pids, lock=False, locks=(), switches=0, **fields):
    """Two threads, the second of which waits for a file that these processes have at its other end, or locked."""
    fields.setdefault("handlers", ())
    states = ("S",) * len(pids)
    peer = Peer(2, "/tmp/cache" if lock else "unix socket:[9]", pids, states, ("engine",) * len(pids), lock=lock)
    threads = (thread(1, *SLEEPS), thread(2, *frames, switches=switches))
    return rank(0, *threads, pid=1, locks=locks or (waits(1),), peers=(peer,), **fields)


@pytest.mark.parametrize(
    "process",
    [
        with_file(RECEIVES, 1),
        with_file(LOCKS_FILE, 1, lock=True),
        with_file(LOCKS_FILE, 1, lock=True, locks=(waits(1, "mutex", 2),)),
        with_file(LOCKS_FILE, 1, lock=True, locks=(waits(1, "mutex", 2),), handlers=(15,)),
        with_file(("epoll_wait@libc.so.6", "select@selectors.py:468", "run_forever@asyncio/base_events.py:607"), 1),
    ],
)
def test_a_file_whose_other_end_is_in_the_same_process_is_for_its_own_threads_to_serve(process):
    found = verdict(process)
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "medium", (0,)), found.summary
    assert found.summary.startswith("No thread of rank 0 is left that could wake another one: thread 1 waits")


@pytest.mark.parametrize(
    ("wait", "cause"),
    [(waits(1, "mutex", 2), "lock-order-deadlock"), (waits(1), "unknown")],
    ids=["a lock with an owner", "a condition, which a client's request may fulfil"],
)
def test_no_new_client_ends_a_wait_for_a_lock_or_for_an_answer_asked_for_already(wait, cause):
    process = with_file(RECEIVES, 1, locks=(wait,))
    accepts = thread(3, *ACCEPTS, state="S", switches=0)
    assert verdict(replace(process, threads=(*process.threads, accepts))).cause == cause


@pytest.mark.parametrize(
    "process",
    [
        with_file(RECEIVES, 880),
        with_file(RECEIVES, 1, 880),
        with_file(RECEIVES, 1, handlers=(15,), locks=(waits(1, "mutex", 2),)),
        with_file(RECEIVES, 1, handlers=None),
        with_file(RECEIVES, 1, switches=2),
    ],
)
def test_a_file_that_others_have_or_a_handler_may_write_to_is_a_way_out(process):
    assert verdict(process).cause in ("unknown", "not-a-hang")


def test_a_file_lock_that_a_process_outside_of_the_job_holds_names_it_and_blames_nobody():
    found = verdict(with_file(LOCKS_FILE, 880, lock=True))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", ())
    assert "pid 880" in found.summary


def test_of_a_file_lock_of_the_process_itself_a_library_thread_is_no_holder():
    loop = thread(3, "epoll_wait@libc.so.6", "gloo::transport::tcp::Loop::run@libtorch_cpu.so", "clone3@libc.so.6")
    stuck = with_file(LOCKS_FILE, 1, lock=True, locks=(waits(1, "mutex", 2),))
    found = verdict(replace(stuck, threads=(*stuck.threads, loop)))
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "medium", (0,)), found.summary
    assert "flock(/tmp/cache) that thread 1 holds" in found.summary
    at_work = with_file(LOCKS_FILE, 1, lock=True, locks=())
    at_work = replace(at_work, locks=(), threads=(thread(1, "train@engine"), at_work.threads[1], loop))
    assert verdict(at_work).cause == "unknown"


@pytest.mark.parametrize(
    ("pending", "blocked", "signals"),
    [
        (0x200, (0x4200, 0x200), (10,)),
        (0x200, (0x4200, 0), ()),
        (0, (0x200, 0x200), ()),
        (0x4200, (0x4200, 0x200), (10,)),
    ],
)
def test_signals_that_every_thread_blocks(tmp_path, pending, blocked, signals):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text(f"Name:\tx\nShdPnd:\t{pending:016x}\n")
    for tid, mask in enumerate(blocked, 7):
        (tmp_path / "7" / "task" / str(tid)).mkdir(parents=True)
        (tmp_path / "7" / "task" / str(tid) / "status").write_text(f"Name:\tx\nSigBlk:\t{mask:016x}\n")
    assert ProcFS(str(tmp_path)).held_back(7) == signals
    assert ProcFS(str(tmp_path)).held_back(8) == ()


def test_who_alone_waits_for_the_waiters_of_a_condition_was_forked_from_a_process_that_had_them():
    destroys = ("futex_wait@libc.so.6", "__GI___pthread_cond_destroy@libc.so.6", "~Queue@engine queue.h:22", JOINS[2])
    alone = rank(0, thread(1, *destroys), pid=1, locks=(waits(1, "futex"),), handlers=())
    found = verdict(alone)
    assert (found.cause, found.culprits) == ("fork-after-cuda", (0,))
    beside = replace(alone, threads=(*alone.threads, thread(2, *ACCEPTS)))
    assert verdict(beside).cause != "fork-after-cuda"  # its other thread may be about to leave that wait


SIGNALS = ("futex_wait@libc.so.6", "__condvar_quiesce_and_switch_g1@libc.so.6", "pthread_cond_broadcast@libc.so.6",
           "notify@engine queue.h:22", "main@engine main.cc:9")  # fmt: skip


@pytest.mark.parametrize(("shared", "seconds", "cause"), [(True, 30.0, "other"), (True, 1.0, ""), (False, 30.0, "")])
def test_who_signals_a_condition_whose_waiter_was_killed_in_its_wait(shared, seconds, cause):
    signals = thread(1, *SIGNALS, syscall=(202, 1, 0, 3, 0, 0, 0), switches=0, state="S")
    one = rank(0, signals, pid=1, locks=(waits(1, "futex", shared=shared, still=True),), handlers=())
    now = replace(job(one, world_size=None, apart=0.5), taken_at=1000.0 + seconds)
    found = judge(replace(now, earlier=(replace(now, taken_at=1000.0),))).verdict
    assert ("have left it" in found.summary) is bool(cause), found.summary
    assert not cause or (found.cause, found.confidence, found.culprits) == (cause, "medium", (0,))
