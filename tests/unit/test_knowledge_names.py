"""Waits of libraries that no row knows: what the words of a name may say, and what they may not."""

import pytest

from gdbext.analysis.stacks.thread_kind import judge_thread
from gdbext.knowledge.frames import unknown_libraries
from tests.unit.stacks import stack

ENGINE = ["Engine::step@engine", "main@engine"]
KINDS = [
    ("mutex", ["nanosleep@libc.so.6", "vendor_spin_lock_slow@libvendor.so"]),
    ("mutex", ["futex_wait@libc.so.6", "vendor::AwareLock::Enter@libvendor.so"]),
    ("mutex", ["pool_mutex_down@libpool.so"]),
    ("stream-sync", ["poll@libc.so.6", "acme::CommandQueue::finish@libacme.so"]),
    ("stream-sync", ["engine::Executor::SynchronizeStream@engine"]),
    ("event-sync", ["ioctl@libc.so.6", "acme_gpu_fence_wait@libacme.so"]),
    ("device-sync", ["ioctl@libc.so.6", "acmeDeviceSynchronize@libvendorrt.so"]),
    ("mpi", ["acme_net_progress@libacmenet.so"]),
    ("condvar-idle", ["Acme::BlockUntilReady@libacme.so"]),
    ("condvar-idle", ["acme_queue_wait_for_space@libacme.so"]),
]


@pytest.mark.parametrize(("kind", "frames"), KINDS)
def test_a_name_says_what_is_waited_for(kind, frames):
    assert judge_thread(stack(*frames, *ENGINE)).kind == kind


@pytest.mark.parametrize(
    "name",
    [
        "unlock_mutex",
        "Mutex::unlock",
        "notify_waiters",
        "is_waiting",
        "get_wait_count",
        "std::ostream::flush",
        "Waiter::Waiter",
        "release_spin_lock",
        "join_strings",
        "PollutionModel::Step",
        "sleeper",
    ],
)
def test_names_that_only_resemble_a_wait(name):
    judged = judge_thread(stack(f"{name}@engine", *ENGINE))
    assert judged.rule is None or not judged.rule.startswith("named-")


def test_a_thread_that_runs_does_not_wait_by_name_alone():
    spins = judge_thread(stack("Reader::poll_all@engine", *ENGINE, cpu=0.99, state="R"))
    assert (spins.kind, spins.running) == ("native-compute", True)
    assert judge_thread(stack("Reader::poll_all@engine", *ENGINE, cpu=0.0, state="S")).kind == "condvar-idle"


def test_a_known_call_further_out_says_more():
    frames = ["acme_net_progress@libacmenet.so", "PMPI_Barrier@libmpi.so", *ENGINE]
    judged = judge_thread(stack(*frames))
    assert (judged.rule, judged.collective) == ("mpi-barrier", "barrier")


def test_fortran_and_one_sided_calls_of_mpi():
    assert judge_thread(stack("mpi_allreduce_@libmpifort.so", *ENGINE)).collective == "all_reduce"
    assert judge_thread(stack("poll@libc.so.6", "PMPI_Win_lock@libmpi.so", *ENGINE)).rule == "mpi-one-sided"


def test_every_row_has_its_source():
    assert all(rule.source for rule in unknown_libraries.RULES)
