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
