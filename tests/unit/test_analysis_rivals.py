"""Pairs of explanations that both fit a look: which one is the answer, whom it blames, how sure it is, and what is told
beside it. Each look shows why the one is preferred; the same look without the winner shows that the other one fits."""

import pytest

from gdbext.analysis.verdict.judge import judge
from tests.unit.stacks import DRIVER, ENGINE, gloo_reducing, inside, job, rank, reducing, sleeping, stack, syncing
from tests.unit.waiting_ranks import (
    BARRIER,
    MISMATCH,
    XID,
    aborting,
    both_locks,
    child,
    counted,
    gathers,
    gil,
    going,
    hurried,
    idle,
    in_driver,
    launching,
    locked,
    lost,
    other_comm,
    perhaps_locked,
    pinning,
    piped,
    reads,
    setting_up,
    still,
    stopped,
    witness,
)


def verdict(*ranks, **fields):
    return judge(job(*ranks, **fields)).verdict


def answer(found):
    """`locks`-like words: cause, confidence, whom it blames by number, absent ones negative."""
    return found.cause, found.confidence, (*found.culprits, *(-one for one in found.absent))


def others(found):
    """The alternatives, by row."""
    return [
        (one.row, one.confidence, (*one.culprits, *(-number for number in one.absent))) for one in found.alternatives
    ]


DEADLOCK, MISSING, IMPLICIT = "lock-order-deadlock", "missing-rank", "implicit-sync-vs-collective"
ORDER, SIZES, TEARDOWN, SET_UP = (
    "multi-comm-ordering",
    "collective-mismatch",
    "destructor-or-teardown",
    "init-rendezvous",
)
AWAY = ("elsewhere", "medium")
OF_FOUR = {"world_size": 4, "absent": (3,)}

# name: ranks, fields of the job, answer, alternatives, unexplained
EXPLAINS_MORE = {
    "a circle in memory and a rank without a process": (
        (reducing(0), locked(1), reducing(2)), OF_FOUR, (DEADLOCK, "high", (1,)), [("gone", "medium", (-3,))], (),
    ),
    "a circle in memory and a rank that is stopped": (
        (reducing(0), locked(1), stopped(2), reducing(3)), {}, (DEADLOCK, "high", (1,)), [("gone", "medium", (2,))], (),
    ),
    "a circle in memory and a rank that is dead": (
        (reducing(0), locked(1), lost(2), reducing(3)), {}, (DEADLOCK, "high", (1,)), [("gone", "medium", (2,))], (),
    ),
    "a circle in memory and a rank elsewhere": (
        (reducing(0), locked(1), reads(2), reducing(3)), {}, (DEADLOCK, "high", (1,)), [(*AWAY, (2,))], (),
    ),
    "a circle that may end by itself and a surer rank elsewhere": (
        (reducing(0), hurried(1), reads(2), reducing(3)), {}, (DEADLOCK, "medium", (1,)), [(*AWAY, (2,))], (),
    ),
    "a circle that is only assumed and a surer rank elsewhere": (
        (reducing(0), perhaps_locked(1), reads(2), reducing(3)), {}, (DEADLOCK, "low", (1,)), [(*AWAY, (2,))], (),
    ),
    "the GIL and a rank elsewhere": (
        (reducing(0), gil(1), reads(2), reducing(3)), {}, ("gil-deadlock", "high", (1,)), [(*AWAY, (2,))], (),
    ),
    "the GIL and a rank that is stopped": (
        (reducing(0), gil(1), stopped(2), reducing(3)), {}, ("gil-deadlock", "high", (1,)),
        [("gone", "medium", (2,))], (),
    ),
    "a circle in memory and an allocation that waits for the device": (
        (syncing(0), pinning(1), locked(2), syncing(3)), {}, (DEADLOCK, "high", (2,)), [("implicit", "medium", (1,))],
        (),
    ),
    "a circle in memory and ranks in another communicator": (
        (reducing(0, members=4), other_comm(1), locked(2), reducing(3, members=4)), {}, (DEADLOCK, "high", (2,)),
        [("order", "medium", (1,))], (),
    ),
    "a circle in memory and a teardown": (
        (syncing(0), aborting(1), locked(2), syncing(3)), {}, (DEADLOCK, "high", (2,)),
        [("teardown", "medium", (1,))], (),
    ),
    "a circle in memory and a set-up that lacks a member": (
        (setting_up(0), locked(1), reads(2), setting_up(3)), {}, (DEADLOCK, "high", (1,)),
        [("set-up", "medium", (2,))], (),
    ),
    "a forked child and a rank elsewhere": (
        (reducing(0), child(1), reads(2), reducing(3)), {}, ("fork-after-cuda", "high", (1,)), [(*AWAY, (2,))], (),
    ),
    "a circle in memory and a GPU that failed, of a rank that waits": (
        (reducing(0), locked(1), reducing(2)), {"witnesses": witness("gpu-fault", 0)}, (DEADLOCK, "high", (1,)),
        [("gpu-fault", "high", (0,))], (),
    ),
}  # fmt: skip

SURER = {
    "stacks that are clear and a log line that names the cause": (
        (gloo_reducing(0), sleeping(1), gloo_reducing(2)), {"said": (MISMATCH,)}, (MISSING, "high", (1,)),
        [("told-by-log", "high", ())], (),
    ),
    "a rank without a process and a log line of less": (
        (reducing(0), reducing(1)), {"said": (XID,), "world_size": 3, "absent": (2,)}, (MISSING, "high", (-2,)),
        [("told-by-log", "medium", ())], (),
    ),
    "a rank elsewhere and one that waits for work": (
        (reducing(0), reads(1), idle(2), reducing(3)), {}, (MISSING, "high", (1,)), [("idle-peer", "low", (2,))], (),
    ),
    "a rank that is stopped and one that waits for work": (
        (reducing(0), stopped(1), idle(2), reducing(3)), {}, (MISSING, "high", (1,)), [("idle-peer", "low", (2,))], (),
    ),
    "different collectives and a rank that waits for work": (
        (reducing(0), idle(1), gathers(2), reducing(3)), {}, (SIZES, "medium", (2,)), [("idle-peer", "low", (1,))], (),
    ),
    "a rank elsewhere and collectives that may be of different moments": (
        (reducing(0), reads(1), gathers(2), reducing(3)), {}, (MISSING, "high", (1,)), [("mismatch", "medium", (2,))],
        (),
    ),
    "a rank elsewhere and communicators that may share no rank": (
        (reducing(0, members=2), other_comm(1, 2), reads(2), reducing(3, members=2)), {}, (MISSING, "high", (2,)),
        [("order", "low", (1,))], (),
    ),
    "a teardown and a rank that waits for work": (
        (reducing(0), aborting(1), idle(2), reducing(3)), {}, (TEARDOWN, "high", (1,)), [("idle-peer", "low", (2,))],
        (),
    ),
    "a rank elsewhere and one that reads what nobody writes": (
        (reducing(0), piped(1, "Z"), reads(2), reducing(3)), {}, (MISSING, "high", (2,)), [("nobody", "medium", (1,))],
        (),
    ),
    "a rank elsewhere and one inside the kernel's driver": (
        (reducing(0), in_driver(1), reads(2), reducing(3)), {}, (MISSING, "high", (2,)), [("driver", "medium", (1,))],
        (),
    ),
    "a GPU that failed and different collectives": (
        (reducing(0), gathers(1), reducing(2)), {"witnesses": witness("gpu-fault", 0)}, ("gpu-fault", "high", (0,)),
        [("mismatch", "medium", (1,))], (),
    ),
    "a GPU that failed and a rank that may be stopped for another reason": (
        (syncing(0), stopped(1), syncing(2)), {"witnesses": witness("gpu-fault", 0)}, ("gpu-fault", "high", (0,)),
        [("gone", "medium", (1,))], (),
    ),
    "counts that prove different launches and a rank that may be missing": (
        (counted(syncing(0), 4), counted(syncing(1), 3, 4), counted(reads(2), 4)), {"apart": 1.5},
        (SIZES, "high", (1,)), [(*AWAY, (2,))], (),
    ),
    "counts that prove different launches and an allocation that waits for the device": (
        (counted(syncing(0), 4), counted(pinning(1), 3, 4), counted(syncing(2), 4)), {"apart": 1.5},
        (SIZES, "high", (1,)), [("implicit", "medium", (1,))], (),
    ),
    "a GPU that failed and an allocation on it that waits for the device": (
        (syncing(0), pinning(1), syncing(2)), {"witnesses": witness("gpu-fault", 1)}, ("gpu-fault", "high", (1,)),
        [("implicit", "medium", (1,))], (),
    ),
}  # fmt: skip

SEEN = {
    "a rank that is dead and one elsewhere": (
        (reducing(0), reads(1), lost(2), reducing(3)), {}, (MISSING, "high", (2,)), [("elsewhere", "high", (1,))], (),
    ),
    "a rank that is stopped and one elsewhere": (
        (reducing(0), reads(1), stopped(2), reducing(3)), {}, (MISSING, "high", (2,)), [("elsewhere", "high", (1,))],
        (),
    ),
    "a rank without a process and one elsewhere": (
        (reducing(0), reads(1), reducing(2)), OF_FOUR, (MISSING, "high", (-3,)), [("elsewhere", "high", (1,))], (),
    ),
    "a rank without a process and an allocation that waits for the device": (
        (syncing(0), pinning(1), syncing(2)), OF_FOUR, (MISSING, "medium", (-3,)), [("implicit", "medium", (1,))], (),
    ),
    "a rank that is stopped and a teardown": (
        (reducing(0), aborting(1), stopped(2), reducing(3)), {}, (MISSING, "high", (2,)), [("teardown", "high", (1,))],
        (),
    ),
    "a rank that is stopped and ranks in another communicator": (
        (reducing(0, members=4), other_comm(1), stopped(2), reducing(3, members=4)), {}, (MISSING, "high", (2,)),
        [("order", "high", (1,))], (),
    ),
    "a rank that is stopped and different collectives of one number": (
        (reducing(0, operations=9), gathers(1, operations=9), stopped(2), reducing(3, operations=9)), {},
        (MISSING, "high", (2,)), [("mismatch", "high", (1,))], (),
    ),
    "a rank that is stopped and one inside the kernel's driver": (
        (syncing(0), in_driver(1), stopped(2), syncing(3)), {}, (MISSING, "medium", (2,)),
        [("driver", "medium", (1,))], (),
    ),
    "a rank that is stopped and a program that is, which another rank reads from": (
        (reducing(0), piped(1, "T"), stopped(2), reducing(3)), {}, (MISSING, "high", (2,)),
        [("other-program", "high", ())], (),
    ),
    "a program that is stopped and a rank elsewhere": (
        (reducing(0), piped(1, "T"), reads(2), reducing(3)), {}, ("other", "high", ()), [("elsewhere", "high", (2,))],
        (),
    ),
    "a rank that is stopped and a counter that is behind": (
        (stopped(0), still(syncing(1)), still(syncing(2))), {"apart": 1.5, "witnesses": witness("behind", 1)},
        (MISSING, "medium", (0,)), [], (),
    ),
}  # fmt: skip

NEVER_ENDS = {
    "an allocation that waits for the device and a rank elsewhere": (
        (syncing(0), pinning(1), reads(2), syncing(3)), {}, (IMPLICIT, "medium", (1,)), [(*AWAY, (2,))], (),
    ),
    "a teardown and a rank elsewhere": (
        (reducing(0), aborting(1), reads(2), reducing(3)), {}, (TEARDOWN, "high", (1,)), [("elsewhere", "high", (2,))],
        (),
    ),
    "ranks in another communicator and one elsewhere": (
        (reducing(0, members=4), other_comm(1), reads(2), reducing(3, members=4)), {}, (ORDER, "medium", (1,)),
        [("elsewhere", "high", (2,))], (),
    ),
    "different collectives of one number and a rank elsewhere": (
        (reducing(0, operations=9), gathers(1, operations=9), reads(2), reducing(3, operations=9)), {},
        (SIZES, "high", (1,)), [("elsewhere", "high", (2,))], (),
    ),
    "a call that waits for the device and one inside the kernel's driver": (
        (syncing(0), in_driver(1), pinning(2), syncing(3)), {}, (IMPLICIT, "medium", (2,)),
        [("driver", "medium", (1,))], (),
    ),
}  # fmt: skip

STACKS = {
    "a log line that is as sure and names another rank": (
        (syncing(0), reads(1), syncing(2)), {"said": (BARRIER,)}, (MISSING, "medium", (1,)),
        [("told-by-log", "medium", (2,))], (),
    ),
    "a log line that is as sure and names one of two": (
        (syncing(0), reads(1), reads(2), syncing(3)), {"said": (BARRIER,)}, (MISSING, "medium", (1, 2)),
        [("told-by-log", "medium", (2,))], (),
    ),
    "a log line that is as sure and names a cause": (
        (syncing(0), pinning(1), syncing(2)), {"said": (XID,)}, (IMPLICIT, "medium", (1,)),
        [("told-by-log", "medium", ())], (),
    ),
    "a counter that names another rank": (
        (still(pinning(0)), still(syncing(1)), still(syncing(2))),
        {"apart": 1.5, "witnesses": witness("behind", 1)}, (IMPLICIT, "medium", (0,)), [("behind", "medium", (1,))],
        (),
    ),
    "a counter that names a rank beside one elsewhere": (
        (counted(syncing(0), 4), counted(syncing(1), 3), counted(reads(2), 4)), {"apart": 1.5},
        (MISSING, "low", (2,)), [("launched-less", "medium", (1,))], (),
    ),
    "a flight recorder beside a rank without a process": (
        (still(syncing(0)), still(syncing(1)), still(syncing(2))),
        {"apart": 1.5, "witnesses": witness("mismatch", 1), **OF_FOUR}, (MISSING, "medium", (-3,)),
        [("behind", "medium", (1,))], (),
    ),
    "a flight recorder beside a circle in memory": (
        (still(syncing(0)), still(syncing(1)), still(locked(2))),
        {"apart": 1.5, "witnesses": witness("mismatch", 1)}, (DEADLOCK, "high", (2,)), [("behind", "medium", (1,))],
        (),
    ),
    "a line that is older than the stack of the rank it names": (
        (reducing(0, operations=9), gathers(1, operations=9), reducing(2, operations=9)), {"said": (BARRIER,)},
        (SIZES, "high", (1,)), [("told-by-log", "medium", (2,))], (),
    ),
}  # fmt: skip

BOTH = {
    "two ranks in allocations": (
        (syncing(0), pinning(1), inside(2, "cudaFree@libcudart.so.12"), syncing(3)), {}, (IMPLICIT, "medium", (1, 2)),
        [], (),
    ),
    "an allocation and a launch that has no room": (
        (syncing(0), launching(1), pinning(2), syncing(3)), {}, (IMPLICIT, "medium", (2,)), [], (),
    ),
    "two circles in memory": (
        (reducing(0), locked(1), locked(2), reducing(3)), {}, (DEADLOCK, "high", (1, 2)), [], (),
    ),
    "a set-up that lacks one rank elsewhere and one without a process": (
        (setting_up(0), reads(1), setting_up(2)), OF_FOUR, (SET_UP, "high", (1, -3)), [], (),
    ),
    "a set-up that lacks one rank elsewhere and one that is stopped": (
        (setting_up(0), reads(1), stopped(2), setting_up(3)), {}, (SET_UP, "medium", (1, 2)), [], (),
    ),
    "a circle through the GIL and one without it, as sure and as large": (
        (reducing(0), both_locks(1), locked(2), reducing(3)), {}, ("gil-deadlock", "high", (1,)),
        [("locks", "high", (2,))], (2,),
    ),
    "a circle in memory and the GIL as frames show it": (
        (reducing(0), gil(1), locked(2), reducing(3)), {}, (DEADLOCK, "high", (2,)), [("gil", "medium", (1,))], (1,),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "fields", "said", "beside", "unexplained"),
    [
        pytest.param(*row, id=f"{why}: {name}")
        for why, rows in {
            "it explains more": EXPLAINS_MORE,
            "it is surer": SURER,
            "it was seen": SEEN,
            "a circle never ends": NEVER_ENDS,
            "stacks before others": STACKS,
            "both": BOTH,
        }.items()
        for name, row in rows.items()
    ],
)
def test_rivals(ranks, fields, said, beside, unexplained):
    found = verdict(*ranks, **fields)
    assert answer(found) == said, found.summary
    assert others(found) == beside
    assert found.unexplained == unexplained


# --- progress ---


@pytest.mark.parametrize(
    ("ranks", "fields", "said"),
    [
        pytest.param((going(0), locked(1), going(2)), {}, (DEADLOCK, "high", (1,)), id="a circle in memory"),
        pytest.param((going(0), hurried(1), going(2)), {}, ("not-a-hang", "medium", ()), id="one that may end"),
        pytest.param((going(0), reads(1), going(2)), {}, ("not-a-hang", "medium", ()), id="elsewhere"),
        pytest.param((going(0), still(pinning(1)), going(2)), {}, ("not-a-hang", "medium", ()), id="allocation"),
        pytest.param((going(0), stopped(1), going(2)), {}, ("not-a-hang", "medium", ()), id="stopped"),
        pytest.param((going(0), going(1)), {"said": (MISMATCH,)}, ("not-a-hang", "high", ()), id="all against a line"),
        pytest.param(
            (going(0), still(syncing(1))), {"said": (MISMATCH,)}, (SIZES, "high", ()), id="one against a surer line"
        ),
        pytest.param(
            (going(0), still(syncing(1))), {"said": (XID,)}, ("not-a-hang", "medium", ()), id="one against a line"
        ),
    ],
)
def test_progress_and_what_says_that_the_job_hangs(ranks, fields, said):
    found = verdict(*ranks, apart=1.5, **fields)
    assert answer(found) == said, found.summary
    going_on = next(one for one in found.considered.hypotheses if one.source == "progress")
    proven = any(one.circle and one.weakest == "proven" for one in found.considered.hypotheses)
    assert bool(going_on.contradictions) == proven
    against = {one.row for one in found.considered.hypotheses if "progress was seen: goes-on" in one.contradictions}
    hangs = {one.row for one in found.considered.hypotheses if one.source != "progress"}
    assert against == (set() if said[0] != "not-a-hang" else hangs)


def test_a_gpu_that_failed_makes_progress_less_sure():
    found = verdict(going(0), going(1), apart=1.5, witnesses=witness("gpu-fault", 0))
    assert answer(found) == ("not-a-hang", "medium", ())
    assert [(one.by, one.before, one.after) for one in found.considered.regrades] == [("witnesses", "high", "medium")]


# --- a job that waits for work ---


@pytest.mark.parametrize(
    ("ranks", "fields", "said"),
    [
        ((idle(0), idle(1)), {}, ("not-a-hang", "high", ())),
        ((idle(0), idle(1), locked(2)), {}, (DEADLOCK, "high", (2,))),
        ((idle(0), idle(1)), {"witnesses": witness("gpu-fault", 1)}, ("gpu-fault", "high", (1,))),
        ((idle(0), idle(1)), {"said": (XID,)}, ("gpu-fault", "medium", ())),
        ((idle(0), idle(1), stopped(2)), {}, ("unknown", "low", ())),
        ((idle(0), gathers(1), reducing(2), reducing(3)), {}, (SIZES, "medium", (1,))),
    ],
    ids=["idle", "circle in memory", "failed GPU", "a line", "stopped", "different collectives"],
)
def test_a_job_that_waits_for_work(ranks, fields, said):
    found = verdict(*ranks, **fields)
    assert answer(found) == said
    assert others(found) == ([("idle-peer", "low", (0,))] if said[0] == SIZES else [])


# --- what counts say of an answer ---


@pytest.mark.parametrize(
    ("launched", "confidence"), [((4, 3, 4), "high"), ((4, 4, 4), "low"), ((3, 4, 4), "low"), ((3, 3, 4), "medium")]
)
def test_counts_prove_or_contradict_an_allocation_that_waits_for_the_device(launched, confidence):
    ranks = [counted(make(n), launched[n]) for n, make in enumerate((syncing, pinning, syncing))]
    assert answer(verdict(*ranks, apart=1.5)) == (IMPLICIT, confidence, (1,))


# --- a rival that is less sure stands alone, and blames nobody else ---


@pytest.mark.parametrize(
    ("less", "confidence"), [(hurried(1), "medium"), (perhaps_locked(1), "low")], ids=["with a time-out", "assumed"]
)
def test_a_circle_in_memory_makes_no_other_one_surer(less, confidence):
    found = verdict(reducing(0), less, locked(2), reducing(3))
    assert answer(found) == (DEADLOCK, "high", (2,))
    assert [(row, culprits) for row, _, culprits in others(found)] == [("locks", (1,))]
    assert found.unexplained == (1,)
    alone = verdict(reducing(0), less, reducing(2), reducing(3))
    assert answer(alone) == (DEADLOCK, confidence, (1,))


def test_a_gpu_that_failed_keeps_every_rank_that_waits_for_its_device():
    """What rank 1 allocates waits for a collective that cannot end without rank 0's GPU."""
    found = verdict(syncing(0), pinning(1), syncing(2), witnesses=witness("gpu-fault", 0))
    assert answer(found) == ("gpu-fault", "high", (0,))
    assert found.victims == (1, 2)
    assert others(found) == [("implicit", "medium", (1,))]


def test_a_launch_that_loads_its_kernel_and_a_rank_elsewhere():
    lazy = launching(1, CUDA_MODULE_LOADING="LAZY")
    assert answer(verdict(syncing(0), lazy, syncing(2)))[0] == "lazy-module-load-vs-collective"
    assert answer(verdict(syncing(0), launching(1), syncing(2)))[0] == "launch-serialisation"
    assert answer(verdict(syncing(0), lazy, reads(2), syncing(3))) == (MISSING, "medium", (2,))


def test_the_deepest_call_of_a_rank_in_the_driver():
    """Pages are pinned in the kernel: that is usual, and the collective that the device runs is why it lasts."""
    frames = (*DRIVER, "cudaMallocHost@libcudart.so.12", *ENGINE)
    pins = rank(1, stack(*frames, state="D", wchan="nvidia_ioctl"))
    found = verdict(syncing(0), pins, syncing(2))
    assert answer(found) == (IMPLICIT, "medium", (1,))
    assert others(found) == [("driver", "medium", (1,))]


@pytest.mark.parametrize(
    ("culprit", "row"),
    [(pinning(1), "implicit"), (launching(1), "launch"), (reads(1), "elsewhere"), (aborting(1), "teardown")],
    ids=["allocation", "launch", "elsewhere", "teardown"],
)
def test_a_line_that_names_the_cause_leaves_what_the_stacks_say_as_the_other_explanation(culprit, row):
    """It blames whom the stacks blame, and is not its own alternative."""
    found = verdict(syncing(0), culprit, syncing(2), said=(MISMATCH,))
    if row == "teardown":  # as sure as the line
        assert answer(found) == (TEARDOWN, "high", (1,))
        assert others(found) == [("told-by-log", "high", ())]
    else:
        assert answer(found) == (SIZES, "high", (1,))
        assert others(found) == [(row, "medium", (1,))]


def test_a_circle_is_as_sure_as_the_way_around_that_is_told():
    """That the watchdog would release something is only assumed, however sure a collective beside it is."""
    drops = stack(*DRIVER, "cudaFree@libcudart.so.12", "drop@a.py:1", id="1", lwp=1, gil=True)
    wants = ("pthread_cond_timedwait@libc.so.6", "take_gil@python3", "PyGILState_Ensure@python3")
    watchdog = stack(*wants, "c10d::ProcessGroupNCCL::ncclCommWatchdog@libtorch_cuda.so", id="2", lwp=2)
    found = verdict(rank(0, drops, watchdog), reducing(1), reducing(2))
    assert answer(found) == ("gil-deadlock", "low", (0,))
    assert "thread 2 waits for Python's GIL that thread 1 holds" in found.summary
    assert answer(verdict(rank(0, drops), reducing(1), reducing(2))) == (IMPLICIT, "high", (0,))


def test_a_call_whose_arguments_were_not_read_is_no_other_collective():
    half = inside(1, "ncclAllReduce@libnccl.so.2")
    assert answer(verdict(reducing(0), half, reducing(2)))[0] == "unknown"
    assert answer(verdict(reducing(0), half, gathers(2), reducing(3))) == (SIZES, "medium", (2,))
    assert answer(verdict(gathers(0), half, gathers(2))) == (SIZES, "medium", (1,))


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_an_answer_is_as_sure_as_its_least_sure_culprit(numbers):
    """Rank 2 may be the idle pool of an engine, in whatever order they come."""
    pool = ("pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6", "worker@engine pool.cc:3")
    away = {1: reads(numbers[0]), 2: rank(numbers[1], stack(*pool))}
    found = verdict(reducing(0), *sorted(away.values(), key=lambda one: one.rank), reducing(3), reducing(4))
    assert answer(found) == (MISSING, "medium", (1, 2))
    assert answer(verdict(reducing(0), reads(1), reducing(3), reducing(4))) == (MISSING, "high", (1,))
