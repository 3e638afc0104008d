"""Jobs of thousands of ranks are judged in time that grows with their number, not with its square."""

import time
from dataclasses import replace

import pytest

from gdbext.analysis.stacks import thread_kind
from gdbext.analysis.stacks.thread_kind import judge_thread
from gdbext.analysis.verdict.judge import judge
from gdbext.model.activity import Activity
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.locks import LockWait
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.parsers import parse_files

RANKS = 4000
SOON = 4.0
"""Seconds of CPU; one is usual. The first two take 13 and 5 where parties are compared in pairs, by their times for
2,000 ranks; the others guard what was mended for jobs larger than these."""

MAIN = Frame("main", "/bin/x")
COLLECTIVES = tuple(Frame(name, "/l/libnccl.so.2") for name in ("ncclAllReduce", "ncclBroadcast", "ncclReduceScatter"))


def rank(index, number, **more):
    return RankSnapshot(index, threads(index, COLLECTIVES[0]), 1000 + index, number, **more)


def threads(index, frame, state="S"):
    return (ThreadStack(str(index + 1), (frame, MAIN), index + 1, state=state, cpu=0.0),)


def half_of_them_dead(many):
    lost = {"threads": (), "state": "lost", "alive": False}
    made = (vars(rank(index, index)) for index in range(many))
    return [RankSnapshot(**{**one, **(lost if one["index"] % 2 else {})}) for one in made]


def in_three_collectives(many):
    return [RankSnapshot(number, threads(number, COLLECTIVES[number % 3]), rank=number) for number in range(many)]


def a_chain_of_locks(many):
    lock = Frame("pthread_mutex_lock", "libc.so.6")
    waits = tuple(LockWait(one + 1, "mutex", 64 * one, one + 2 if one + 1 < many else 1) for one in range(many))
    return [RankSnapshot(0, tuple(threads(one, lock)[0] for one in range(many)), 1, 0, locks=waits)]


def two_jobs_of_equal_numbers(many):
    return [rank(index, index % (many // 2)) for index in range(many)]


def all_but_one_wait_for_their_gpus(many):
    sync, pinned = (Frame(name, "/l/libcudart.so.12") for name in ("cudaStreamSynchronize", "cudaMallocHost"))
    ranks = range(2 * many)
    return [RankSnapshot(one, threads(one, sync if one else pinned), rank=one, world_size=len(ranks)) for one in ranks]


@pytest.mark.parametrize(
    ("processes", "cause"),
    [
        (all_but_one_wait_for_their_gpus, "implicit-sync-vs-collective"),
        (half_of_them_dead, "missing-rank"),
        (in_three_collectives, "collective-mismatch"),
        (a_chain_of_locks, "lock-order-deadlock"),
        (two_jobs_of_equal_numbers, "unknown"),
    ],
)
def test_thousands(processes, cause):
    took = seconds(processes, RANKS, cause)
    # A busy machine is slow at everything; then it counts how the time grows: three times as many ranks, nine times
    # as many pairs.
    assert took < SOON or took < 4.5 * seconds(processes, RANKS // 3, cause)


def test_what_thousands_of_processes_wrote_is_compared_in_time_that_grows_with_their_number():
    def took(many):
        waits = Frame("get", file="queue.py", line=171, language="python")
        wrote = Activity(1.0, written_bytes=1 << 20)
        ranks = [RankSnapshot(one, threads(one, waits), 1000 + one, one, activity=wrote) for one in range(many)]
        now = JobSnapshot(tuple(ranks), taken_at=21.0, apart=1.0)
        begin = time.process_time()
        judge(now, replace(now, taken_at=0.0))
        return time.process_time() - begin

    long = took(RANKS)
    assert long < SOON or long < 4.5 * took(RANKS // 3)


def seconds(processes, many, cause):
    job = JobSnapshot(tuple(processes(many)))
    begin = time.process_time()
    assert judge(job).verdict.cause == cause
    return time.process_time() - begin


def test_frames_of_an_endless_recursion_are_counted_not_called_strange():
    """gdb numbers them beyond 99999."""
    frames = "".join(f"#{number}  0x{number:016x} in recurse () from /bin/x\n" for number in range(100_010))
    (told,) = parse_files([("x", f"Thread 1 (LWP 7):\n{frames}".encode())]).problems
    assert "98986 frames or threads beyond the limits were not kept" in told


def test_equal_stacks_are_judged_once(monkeypatch):
    """Of a saved look; a thread of which something else is known is judged for itself."""
    ranks = [rank(number, number) for number in range(50)]
    pool = tuple(ThreadStack(str(lwp), (Frame("poll", "/l/libc.so.6", pc=lwp), MAIN), lwp) for lwp in range(90, 99))
    ranks[7] = replace(ranks[7], threads=(*ranks[7].threads, *pool, *threads(7, COLLECTIVES[0], "R")))
    saved = load_snapshot(dump_snapshot(JobSnapshot(tuple(ranks))))
    asked = []
    monkeypatch.setattr(thread_kind, "judge_thread", lambda *one: asked.append(one[0]) or judge_thread(*one))
    found = judge(saved)
    assert [one.frames[0].function for one in asked] == ["ncclAllReduce", "poll", "ncclAllReduce"]
    assert found.verdict == judge(JobSnapshot(tuple(ranks))).verdict
    groups = found.processes[7].groups
    assert [list(positions) for _, positions in groups] == [[0], list(range(1, 10)), [10]]
    assert found.processes[7].threads[0] is found.processes[8].threads[0]
