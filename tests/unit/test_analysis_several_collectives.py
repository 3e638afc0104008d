"""Ranks that have several collectives of Gloo under way at once, none of which ends."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from tests.unit.stacks import ENTRY, gloo_reducing, job, rank, stack


def under_way(work, **fields):
    frames = ("pthread_cond_timedwait@libc.so.6", f"c10d::{work}@libtorch_cpu.so")
    loop = "c10d::ProcessGroupGloo::runLoop@libtorch_cpu.so"
    return stack(*frames, loop, *ENTRY, name="pt_gloo_runloop", **{"state": "S", "switches": 0, **fields})


def saves(number, *works):
    """A main thread that waits for one of them, while threads of Gloo carry all of them out."""
    main = stack("pthread_cond_wait@libc.so.6", "c10d::Work::wait@libtorch_cpu.so", "save@checkpoint.py:97",
                 "<module>@train.py:9", state="S", switches=0)  # fmt: skip
    threads = [replace(one, id=str(at), lwp=100 * number + at) for at, one in enumerate((main, *works))]
    return rank(number, *threads)


BARRIER, GATHER = "AsyncBarrierWork::run", "AsyncAllgatherWork::allgather"


def verdict(*ranks):
    return judge(job(*ranks, apart=1.0)).verdict


def test_ranks_that_have_begun_the_same_ones_began_them_in_another_order():
    found = verdict(*(saves(number, under_way(BARRIER), under_way(GATHER)) for number in range(3)))
    assert (found.cause, found.confidence) == ("collective-mismatch", "low")
    assert "the same collectives of Gloo (all_gather and barrier), and none of them ends" in found.summary


@pytest.mark.parametrize(
    "last",
    [
        saves(2, under_way(BARRIER)),
        saves(2, under_way(BARRIER), under_way(GATHER, switches=4)),
        gloo_reducing(2),
    ],
    ids=["one has not begun both", "one of them moves", "one is in another"],
)
def test_a_rank_that_has_not_begun_both_or_moves(last):
    first = (saves(number, under_way(BARRIER), under_way(GATHER)) for number in range(2))
    assert "have begun the same collectives" not in verdict(*first, last).summary


def in_torch(collective, *frames, switches=0):
    """Work that a thread of Python waits for."""
    waits = ("pthread_cond_wait@libc.so.6", "c10d::Work::wait@libtorch_cpu.so")
    calls = (f"{collective}@torch/distributed/distributed_c10d.py:3252", *frames)
    return stack(*waits, *calls, *ENTRY, state="S", switches=switches)


def moves_experts(number, *beside):
    """A rank with a thread of Gloo that has nothing to do."""
    waits = ("pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6")
    idle = stack(*waits, "c10d::ProcessGroupGloo::runLoop@libtorch_cpu.so", *ENTRY, name="pt_gloo_runloop", state="S",
                 switches=0)  # fmt: skip
    threads = (in_torch("all_reduce", "step@experts.py:323", "<module>@serve.py:9"), idle, *beside)
    return rank(number, *(replace(one, id=str(at), lwp=100 * (number + 1) + at) for at, one in enumerate(threads)))


def test_a_rank_that_is_in_another_collective_besides_is_named():
    mover = in_torch("broadcast", "_move@experts.py:311")
    found = verdict(moves_experts(0, mover), moves_experts(1))
    assert (found.cause, found.confidence, found.culprits) == ("collective-mismatch", "low", (0,))
    assert "of rank 0 waits in broadcast, too" in found.summary
    listener = in_torch("broadcast", "listen_loop@orders.py:5")
    moving = in_torch("broadcast", "_move@experts.py:311", switches=3)
    for beside in ((moves_experts(0, mover), moves_experts(1, mover)), (moves_experts(0), moves_experts(1, listener)),
                   (moves_experts(0, moving), moves_experts(1))):  # fmt: skip
        assert "in broadcast, too" not in verdict(*beside).summary
