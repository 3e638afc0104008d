"""What a second copy of the same look proves."""

from dataclasses import replace

import pytest
from stacks import gloo_reducing, job, rank, stack

from gdbext.analysis.verdict.judge import judge

SYNC = ("sched_yield@libc.so.6", "??@libcuda.so.1", "cudaStreamSynchronize@libcudart.so.12")
ENGINE = ("fastertransformer::ParallelGpt<float>::forward@engine gpt.cc:7", "main@engine main.cc:9")
ALLOCATES = ("futex_wait@libc.so.6", "??@libcuda.so.1", "cudaMallocHost@libcudart.so.12")


def look(*threads, **fields):
    return judge(job(*(rank(number, thread) for number, thread in enumerate(threads)), apart=1.5, **fields))


def waiting(still, switches=50, frames=SYNC):
    return stack(*frames, *ENGINE, still=still, switches=switches)


def test_callers_that_changed_are_progress():
    """The driver polls in frames 0 and 1; frame 4, main, changed: the step loop goes round."""
    found = look(waiting(5), waiting(5), waiting(5)).verdict
    assert (found.cause, found.confidence, found.finding) == ("not-a-hang", "high", False)


@pytest.mark.parametrize("still", [0, 1, 2, 3, 4])
def test_a_polling_wait_proves_nothing(still):
    assert look(waiting(still), waiting(still), waiting(still)).verdict.cause == "unknown"


def test_one_waiting_rank_that_went_on_is_enough():
    found = look(waiting(2, frames=ALLOCATES), waiting(5), waiting(2)).verdict
    assert (found.cause, found.confidence) == ("not-a-hang", "medium")


def test_progress_of_another_job_clears_nobody():
    """Pids of two jobs in one question: rank 0 is there twice, and the one that goes on is not the one that waits."""
    other = rank(0, waiting(5))
    ranks = (rank(0, waiting(2)), rank(1, waiting(2, frames=ALLOCATES)), replace(other, index=2, pid=999))
    found = judge(job(*ranks, apart=1.5)).verdict
    assert (found.cause, found.culprits) == ("implicit-sync-vs-collective", (1,))


def test_a_culprit_that_moves_does_not_clear_it():
    away = stack("clock_nanosleep@libc.so.6", "reload@engine x.cc:1", "main@engine", still=3, switches=9)
    found = look(waiting(2), away, waiting(2)).verdict
    assert (found.cause, found.culprits) == ("missing-rank", (1,))


def test_standing_still_is_evidence():
    found = look(waiting(0, 0, ALLOCATES), waiting(2), waiting(2)).verdict
    assert found.cause == "implicit-sync-vs-collective"
    (said,) = [item for item in found.evidence if "did not run" in item.text]
    assert said.text == "the waiting thread of rank 0 did not run in the 1.5 s between two copies"
    assert (said.process, said.thread) == (0, "1")


def test_who_used_the_processor_did_not_stand_still():
    """One write call that lasts: the same registers and no switch, and a second of processor time."""
    writes = ("write@libc.so.6", "save@torch/serialization.py:9", "main@train.py:1")
    ranks = [
        rank(0, stack(*writes, still=0, switches=0, cpu=1.0, state="R")),
        rank(1, waiting(0, 0)),
        rank(2, waiting(2)),
    ]
    found = judge(job(*ranks, apart=1.5)).verdict
    assert [item.process for item in found.evidence if "did not run" in item.text] == [1]


REDUCES = (
    "__futex_abstimed_wait_common64@libc.so.6",
    "c10d::Work::wait@libtorch_cpu.so",
    "pybind11::cpp_function::dispatcher@libtorch_python.so",
    "all_reduce@torch/distributed/distributed_c10d.py:3252",
    "train@loop.py:12",
    "<module>@loop.py:34",
)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"still": 0, "left": 0, "switches": 0}, "unknown"),
        ({"still": 0, "left": 0, "switches": 40}, "unknown"),  # stopped by others: its stack is as it was
        ({"still": 1, "left": 0, "switches": 4, "cpu": 0.001}, "not-a-hang"),  # woken, and in the next collective
        ({"still": 4, "left": 2, "switches": 4, "cpu": 0.001}, "not-a-hang"),  # the call is over
    ],
    ids=["asleep", "stopped by others", "woken", "over"],
)
def test_a_collective_that_sleeps_until_it_is_done(fields, cause):
    working = stack("gloo::allreduce@libtorch_cpu.so", "c10d::ProcessGroupGloo::runLoop@libtorch_cpu.so", id="2")
    assert judge(job(*(rank(n, stack(*REDUCES, **fields), working) for n in (0, 1)), apart=1.5)).verdict.cause == cause


def test_a_rank_that_lives_but_could_not_be_read_is_not_called_dead():
    unread = rank(1, state="lost", alive=True)
    dead = rank(1, state="lost", alive=False)
    others = rank(0, waiting(2)), rank(2, waiting(2))
    assert judge(job(others[0], unread, others[1])).verdict.cause == "unknown"
    assert judge(job(others[0], dead, others[1])).verdict.cause == "missing-rank"


def reducing(number, **fields):
    """A rank of DDP that waits for its gradients: the stack names no collective."""
    one = gloo_reducing(number)
    frames = (
        "pthread_cond_wait@libc.so.6",
        "std::condition_variable::wait@libstdc++.so.6",
        "c10d::Work::wait@libtorch_cpu.so",
        "c10d::Reducer::finalize_backward@libtorch_cpu.so",
        "torch::autograd::Engine::execute@libtorch_cpu.so",
        "backward@torch/_tensor.py:525",
        "step@train.py:43",
        "<module>@train.py:60",
    )
    return replace(one, threads=(stack(*frames, state="S", **fields), *one.threads[1:]))


def loading(**fields):
    frames = (
        "poll@libc.so.6",
        "_poll@multiprocessing/connection.py:440",
        "_try_get_data@torch/utils/data/dataloader.py:1291",
        "train@train.py:179",
        "<module>@train.py:60",
    )
    return rank(1, stack(*frames, state="S", **fields))


@pytest.mark.parametrize(
    "still, switches, causes",
    [
        (6, 71, ("not-a-hang",)),  # who called the wait went on: another step waits now
        (0, 0, ("missing-rank",)),
    ],
)
def test_ranks_that_wait_for_gradients_again_and_again_are_not_stuck(still, switches, causes):
    """A healthy job with a slow loader was called a missing rank, with high confidence."""
    ranks = [reducing(number, still=still, switches=switches) for number in (0, 2)]
    found = judge(job(ranks[0], loading(still=still and 2, switches=switches), ranks[1], apart=1.5))
    assert found.verdict.cause in causes, found.verdict.summary


@pytest.mark.parametrize(
    ("main_switches", "others_still", "cause"),
    [(0, 0, "unknown"), (3, 0, "not-a-hang"), (0, 2, "not-a-hang")],
    ids=["the main threads stand", "its main thread was woken", "another rank's was"],
)
def test_a_side_thread_that_talks_to_other_ranks_in_turns_is_no_progress(main_switches, others_still, cause):
    waits = ("sem_wait@libc.so.6", "Condition.wait@threading.py:327", "allreduce@program.py:5", "main@python3")
    talks = ("opal_progress@libopen-pal.so.40", "PMPI_Bcast@libmpi.so.40", "run_once@program.py:9", "clone@libc.so.6")

    def one(number, side, **fields):
        main = replace(stack(*waits, **fields), id=str(100 + number), lwp=100 + number)
        return rank(number, main, *side, pid=100 + number)

    side = replace(stack(*talks, switches=300, still=4, left=3, state="S"), id="901", lwp=901)
    standing = {"switches": 0, "still": others_still, "state": "S"}
    others = [one(number, (), **standing) for number in (0, 2)]
    main = {"switches": main_switches, "still": 0, "state": "S"}
    found = judge(job(others[0], one(1, (side,), **main), others[1], apart=1.2)).verdict
    assert found.cause == cause
