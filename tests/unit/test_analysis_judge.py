"""Verdicts over whole jobs: each cause found where it is, and silence where the evidence is thin."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.knowledge.labels import CAUSES, CONFIDENCE
from gdbext.model.job import JobSnapshot, RankSnapshot
from tests.unit.stacks import (
    DRIVER,
    ENGINE,
    ENTRY,
    frame,
    gloo_reducing,
    inside,
    job,
    nameless,
    rank,
    reducing,
    sleeping,
    stack,
    syncing,
)

C10D = "torch/distributed/distributed_c10d.py"


def verdict(snapshot, earlier=None):
    found = judge(snapshot, earlier).verdict
    assert found.cause in CAUSES
    assert found.confidence in CONFIDENCE
    assert found.summary.endswith(".")
    return found


def blamed(found):
    return found.culprits, found.victims


IMPLICIT = [
    ("cudaMallocHost@libcudart.so.12", "implicit-sync-vs-collective"),
    ("cudaFreeHost@libcudart.so.12", "implicit-sync-vs-collective"),
    ("cudaFree@libcudart.so.12", "implicit-sync-vs-collective"),
    ("cudaMalloc@libcudart.so.12", "implicit-sync-vs-collective"),
    ("cublasGemmStridedBatchedEx@libcublas.so.12", "implicit-sync-vs-collective"),
    ("cudaFuncSetAttribute@libcudart.so.12", "lazy-module-load-vs-collective"),
    ("cuLibraryLoadData@libcuda.so.1", "lazy-module-load-vs-collective"),
]


@pytest.mark.parametrize(("call", "cause"), IMPLICIT)
def test_a_call_that_waits_for_the_device_against_peers(call, cause):
    found = verdict(job(syncing(0), inside(1, call), syncing(2)))
    assert (found.cause, blamed(found)) == (cause, ((1,), (0, 2)))
    assert found.decisive_process == 1
    assert found.confidence == "medium", "no stack names the collective"
    assert any(one.process == 1 and one.frame is not None for one in found.evidence)
    assert found.remedies


@pytest.mark.parametrize("call", ["cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy", "cudaStreamQuery"])
def test_victims_may_wait_in_any_way(call):
    victim = f"{call}@libcudart.so.12"
    found = verdict(job(inside(0, victim), inside(1, "cudaMallocHost@libcudart.so.12"), inside(2, victim)))
    assert (found.cause, blamed(found)) == ("implicit-sync-vs-collective", ((1,), (0, 2)))


def test_high_confidence_needs_the_collective_and_all_ranks():
    ranks = [reducing(0), inside(1, "cudaMallocHost@libcudart.so.12"), reducing(2)]
    assert verdict(job(*ranks)).confidence == "high"
    assert verdict(job(*ranks, world_size=8)).confidence == "medium"
    assert verdict(JobSnapshot(tuple(ranks))).confidence == "medium"


def test_one_victim_alone_proves_nothing():
    for call in ("cudaStreamSynchronize", "cudaFree", "cudaMallocHost", "ncclAllReduce"):
        found = verdict(nameless(stack(*DRIVER, f"{call}@libcudart.so.12", *ENGINE)))
        assert found.cause == "unknown", call
        assert any("one process" in line for line in found.missing)


def test_all_ranks_alike_prove_nothing():
    found = verdict(job(*(syncing(number) for number in range(4))))
    assert (found.cause, found.culprits) == ("unknown", ())


def test_threads_that_are_ranks():
    threads = [stack(*DRIVER, "cudaStreamSynchronize@libcudart.so.12", *ENGINE, id=str(n)) for n in range(1, 4)]
    culprit = stack(*DRIVER, "cuMemFreeHost@libcuda.so.1", *ENGINE, id="4")
    found = verdict(nameless(*threads, culprit))
    assert (found.cause, found.confidence) == ("implicit-sync-vs-collective", "medium")
    assert (found.decisive_process, found.decisive_thread) == (0, "4")


def test_a_python_rank_that_never_came():
    found = verdict(job(gloo_reducing(0), sleeping(1), gloo_reducing(2), gloo_reducing(3)))
    assert (found.cause, found.confidence, blamed(found)) == ("missing-rank", "high", ((1,), (0, 2, 3)))
    assert "Ranks 0,2-3 wait in all_reduce" in found.summary
    assert "wait_for_weights (serve.py:41)" in found.summary


AWAY = [
    ("io", ["read@libc.so.6"]),
    ("condvar-idle", ["clock_nanosleep@libc.so.6", "nanosleep@libc.so.6"]),
    ("mutex", ["__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6"]),
]


@pytest.mark.parametrize(("kind", "frames"), AWAY)
def test_a_rank_outside_of_any_communication(kind, frames):
    diagnosis = judge(job(syncing(0), rank(1, stack(*frames, *ENGINE)), syncing(2)))
    assert (diagnosis.verdict.cause, blamed(diagnosis.verdict)) == ("missing-rank", ((1,), (0, 2)))
    assert diagnosis.processes[1].wait.kind == kind
    assert diagnosis.verdict.confidence == "medium"


def test_absent_dead_and_stopped_ranks():
    absent = verdict(job(reducing(0), reducing(2), world_size=3, absent=(1,)))
    assert (absent.cause, absent.absent, absent.confidence) == ("missing-rank", (1,), "high")
    lost = verdict(job(reducing(0), RankSnapshot(1, (), rank=1, state="lost"), reducing(2)))
    assert (lost.cause, blamed(lost)) == ("missing-rank", ((1,), (0, 2)))
    stopped = verdict(job(reducing(0), rank(1, stack(*ENGINE, state="T")), reducing(2)))
    assert (stopped.cause, stopped.culprits) == ("missing-rank", (1,))
    assert "stopped" in stopped.summary
    zombie = verdict(job(syncing(0), rank(1, stack(state="Z"))))
    assert (zombie.cause, zombie.culprits, zombie.confidence) == ("missing-rank", (1,), "medium")


def test_a_busy_rank_is_slow_until_shown_otherwise():
    busy = rank(1, stack(*ENGINE, cpu=1.0, state="R"))
    found = verdict(job(reducing(0), busy, reducing(2)))
    assert (found.cause, found.confidence, found.culprits) == ("not-a-hang", "low", ())
    assert not found.finding


def test_two_looks():
    def at(step):
        line = frame("fastertransformer::ParallelGpt<float>::decode@engine parallel_gpt.cc:66", step=step)
        return job(*(inside(number, "cudaStreamSynchronize@libcudart.so.12", line) for number in range(3)))

    assert verdict(at(7)).cause == "unknown"
    assert verdict(at(7), earlier=at(7)).cause == "unknown"
    found = verdict(at(8), earlier=at(7))
    assert (found.cause, found.confidence) == ("not-a-hang", "high")


def test_one_rank_is_not_the_whole_job():
    """What one rank shows is sure for that one only: its peers may hang, and front ends say nothing of them."""
    queue = "dequeue@/v/vllm/distributed/device_communicators/shm_broadcast.py:510"
    idle = judge(job(rank(0, stack(queue)), replace(rank(1, stack(queue)), rank=None))).verdict
    assert (idle.cause, idle.confidence) == ("not-a-hang", "medium")

    def at(step, size):
        line = frame("fastertransformer::ParallelGpt<float>::decode@engine parallel_gpt.cc:66", step=step)
        return replace(job(inside(0, "cudaStreamSynchronize@libcudart.so.12", line)), world_size=size)

    for size, sure in ((None, "medium"), (8, "medium"), (1, "high")):
        found = verdict(at(8, size), earlier=at(7, size))
        assert (found.cause, found.confidence) == ("not-a-hang", sure)


def test_different_collectives_and_sizes():
    different = job(reducing(0), reducing(1, name="all_gather"), reducing(2))
    other = verdict(different)
    assert (other.cause, other.confidence, blamed(other)) == ("collective-mismatch", "medium", ((1,), (0, 2)))
    assert verdict(different, earlier=different).confidence == "high", "nobody moved"
    same_operation = job(reducing(0, operations=9), reducing(1, name="all_gather", operations=9))
    assert verdict(same_operation).confidence == "high"
    one_ahead = job(reducing(0, operations=9), reducing(1, name="all_gather", operations=10))
    assert verdict(one_ahead).confidence == "medium"
    size = verdict(job(reducing(0), reducing(1), reducing(2, count=7)))
    assert (size.cause, size.culprits) == ("collective-mismatch", (2,))
    assert "of 7 elements" in size.summary
    unsure = verdict(
        job(*(inside(n, f"{call}@libnccl.so.2") for n, call in enumerate(["ncclAllReduce", "ncclBroadcast"])))
    )
    assert (unsure.cause, unsure.confidence) == ("collective-mismatch", "medium")


def test_send_and_receive_are_a_pair():
    found = verdict(job(inside(0, "ncclSend@libnccl.so.2"), inside(1, "ncclRecv@libnccl.so.2")))
    assert found.cause == "unknown"


def test_two_communicators_in_opposite_order():
    found = verdict(job(reducing(0, members=3), reducing(1, comm_hash=0xDEF, members=3), reducing(2, members=3)))
    assert (found.cause, found.confidence, blamed(found)) == ("multi-comm-ordering", "medium", ((1,), (0, 2)))
    apart = verdict(job(reducing(0, members=1), reducing(1, comm_hash=0xDEF, members=1)))
    assert apart.confidence == "low", "groups that share no rank may well be in different collectives"


def test_two_threads_of_a_process_in_different_nccl_calls():
    found = verdict(
        nameless(
            stack(*DRIVER, "cudaLaunchKernel@libcudart.so.12", "ncclRecv@libnccl.so.2", *ENGINE, id="1"),
            stack("pthread_rwlock_wrlock@libc.so.6", "??@libcuda.so.1", "ncclAllReduce@libnccl.so.2", *ENGINE, id="2"),
        )
    )
    assert (found.cause, found.confidence) == ("multi-comm-ordering", "low")


INIT = ["poll@libc.so.6", "bootstrapAllGather@libnccl.so.2", "ncclCommInitRank@libnccl.so.2", *ENGINE]


def test_a_communicator_that_is_not_complete():
    absent = verdict(job(rank(0, stack(*INIT)), rank(2, stack(*INIT)), world_size=3, absent=(1,)))
    assert (absent.cause, absent.absent) == ("init-rendezvous", (1,))
    late = verdict(job(rank(0, stack(*INIT)), rank(1, stack("read@libc.so.6", *ENGINE)), rank(2, stack(*INIT))))
    assert (late.cause, late.culprits, late.confidence) == ("init-rendezvous", (1,), "medium")
    call = frame("ncclCommInitRank@libnccl.so.2", nranks=2)
    member = verdict(job(rank(0, stack("poll@libc.so.6", call)), rank(1, stack("read@libc.so.6", *ENGINE))))
    assert member.confidence == "high", "the communicator has more members than ranks in its set-up"
    alone = verdict(nameless(stack(*INIT)))
    assert (alone.cause, alone.confidence, alone.culprits) == ("init-rendezvous", "low", ())
    opaque = verdict(nameless(stack("usleep@libc.so.6", "??@libnccl.so.2", "ncclCommInitRank@libnccl.so.2")))
    assert opaque.cause == "unknown"


def test_launches():
    full = verdict(job(syncing(0), inside(1, "cudaLaunchKernel@libcudart.so.12"), syncing(2)))
    assert (full.cause, blamed(full)) == ("launch-serialisation", ((1,), (0, 2)))
    launch = stack(*DRIVER, "cudaLaunchKernel@libcudart.so.12", *ENGINE)
    lazy = job(syncing(0), rank(1, launch, environment={"CUDA_MODULE_LOADING": "LAZY"}))
    assert verdict(lazy).cause == "lazy-module-load-vs-collective"
    nccl = [*DRIVER, "cudaLaunchKernel@libcudart.so.12", "ncclLaunchKernel@libnccl.so.2", "ncclGroupEnd@libnccl.so.2"]
    everyone = job(*(rank(n, stack(*nccl), environment={"CUDA_LAUNCH_BLOCKING": "1"}) for n in range(2)))
    found = verdict(everyone)
    assert (found.cause, found.confidence) == ("launch-serialisation", "medium")
    assert any("Unset CUDA_LAUNCH_BLOCKING" in one.action for one in found.remedies)
    assert verdict(nameless(stack(*nccl))).confidence == "low"
    assert verdict(nameless(stack(*DRIVER, "cudaLaunchKernel@libcudart.so.12", *ENGINE))).cause == "unknown"


def test_gil_deadlocks():
    owner = stack(
        "futex_wait@libc.so.6", "pthread_mutex_lock@libc.so.6", "dl_iterate_phdr@libc.so.6", "f@a.py:1", id="1"
    )
    waiter = stack(
        "pthread_cond_timedwait@libc.so.6", "PyEval_RestoreThread@python3", "dl_iterate_phdr@libc.so.6", id="2"
    )
    loader = verdict(nameless(owner, waiter))
    assert (loader.cause, loader.confidence, loader.decisive_thread) == ("gil-deadlock", "high", "1")
    freeing = stack(*DRIVER, "cudaFree@libcudart.so.12", "drop@a.py:1", id="1", gil=True)
    callback = stack(
        "pthread_cond_timedwait@libc.so.6",
        "take_gil@python3",
        "PyGILState_Ensure@python3",
        "hook@ext.so",
        "??@libcuda.so.1",
        id="2",
    )
    assert (verdict(nameless(freeing, callback)).cause, verdict(nameless(freeing, callback)).confidence) == (
        "gil-deadlock",
        "high",
    )


def test_waiting_for_the_gil_is_normal_while_its_owner_works():
    working = stack("matmul@libblas.so", "f@a.py:1", id="1", state="R", gil=True)
    waiter = stack("pthread_cond_timedwait@libc.so.6", "take_gil@python3", id="2")
    assert verdict(nameless(working, waiter)).cause == "unknown"


def test_a_hook_of_the_driver_that_wants_a_lock():
    found = verdict(
        nameless(
            stack(
                "__lll_lock_wait@libc.so.6",
                "pthread_mutex_lock@libc.so.6",
                "cache_notify@libfabric.so.1",
                "??@libcuda.so.1",
            )
        )
    )
    assert found.cause == "lock-order-deadlock"


def test_teardown():
    join = [
        "futex@libc.so.6",
        "__pthread_clockjoin_ex@libc.so.6",
        "??@libnccl.so.2",
        "ncclCommAbort@libnccl.so.2",
        *ENGINE,
    ]
    found = verdict(job(syncing(0), rank(1, stack(*join)), syncing(2)))
    assert (found.cause, found.confidence, blamed(found)) == ("destructor-or-teardown", "high", ((1,), (0, 2)))
    assert verdict(nameless(stack(*join))).confidence == "medium"
    leaving = stack(
        *DRIVER, "cudaFree@libcudart.so.12", "Pool::~Pool@engine", "__run_exit_handlers@libc.so.6", "exit@libc.so.6"
    )
    assert verdict(nameless(leaving)).cause == "destructor-or-teardown"


def test_faults():
    bus = stack("<signal handler called>", "__memset_avx2@libc.so.6", "ncclShmOpen@libnccl.so.2", *ENGINE)
    found = verdict(job(rank(0, stack(*INIT)), rank(1, bus)))
    assert (found.cause, found.confidence, blamed(found)) == ("shm-too-small", "medium", ((1,), (0,)))
    throw = stack("__cxa_throw@libstdc++.so.6", "fastertransformer::check<int>@engine", *ENGINE)
    assert verdict(job(syncing(0), rank(1, throw))).cause == "gpu-fault"


def test_idle_and_busy_jobs_are_fine():
    follower = stack("read@libc.so.6", "rtp_llm::CpuTpBroadcaster::broadcast@engine", *ENGINE)
    leader = stack("poll@libc.so.6", "rtp_llm::HttpServer::wait@engine", *ENGINE)
    idle = verdict(job(rank(0, leader), rank(1, follower), rank(2, follower)))
    assert (idle.cause, idle.finding) == ("not-a-hang", False)
    busy = verdict(job(*(rank(n, stack(*ENGINE, cpu=0.9, state="R")) for n in range(3))))
    assert (busy.cause, busy.confidence) == ("not-a-hang", "medium")


def test_ranks_wait_on_purpose_for_the_first():
    found = verdict(
        nameless(stack(f"barrier@{C10D}:1", "main_process_first@transformers/training_args.py:9", "main@t.py:1"))
    )
    assert (found.cause, found.confidence) == ("missing-rank", "low")


def test_a_front_end_is_no_missing_rank():
    front = RankSnapshot(2, (stack("epoll_wait@libc.so.6", "serve@api.py:3"),), title="vllm serve")
    found = verdict(job(reducing(0), reducing(1), front, world_size=2))
    assert found.cause == "unknown"


def test_processes_of_a_file_are_numbered_anew():
    found = verdict(JobSnapshot((reducing(4), sleeping(9), reducing(7))))
    assert (found.cause, blamed(found)) == ("missing-rank", ((1,), (0, 2)))


def test_nothing_at_all():
    assert verdict(JobSnapshot(())).cause == "unknown"
    empty = judge(job(rank(0, stack()), rank(1)))
    assert empty.verdict.cause == "unknown"
    assert empty.processes[0].wait.kind == "unknown"


def test_advice_fits_the_job():
    ranks = [syncing(0), inside(1, "cudaFuncSetAttribute@libcudart.so.12")]
    actions = [one.action for one in verdict(job(*ranks)).remedies]
    assert "Set CUDA_MODULE_LOADING=EAGER" in actions
    assert not any("NCCL_LAUNCH_MODE" in action for action in actions)
    eager = RankSnapshot(1, ranks[1].threads, rank=1, environment={"CUDA_MODULE_LOADING": "EAGER"})
    assert "Set CUDA_MODULE_LOADING=EAGER" not in [one.action for one in verdict(job(ranks[0], eager)).remedies]


def test_group_mode_is_advice_for_old_nccl_with_ranks_as_threads():
    threads = [
        stack(*DRIVER, f"{call}@libcudart.so.12", *ENGINE, id=call) for call in ("cudaStreamSynchronize", "cudaFree")
    ]

    def actions(library):
        process = RankSnapshot(0, tuple(threads), libraries=(library,))
        return [one.action for one in verdict(JobSnapshot((process,))).remedies]

    assert any("NCCL_LAUNCH_MODE=GROUP" in action for action in actions("/usr/lib/libnccl.so.2.10.3"))
    assert not any("NCCL_LAUNCH_MODE" in action for action in actions("/usr/lib/libnccl.so.2.27.5"))


def test_a_thread_in_the_middle_of_many_helpers_decides():
    helpers = [stack("poll@libc.so.6", "??@libcuda.so.1", *ENTRY, id=str(number)) for number in range(2, 60)]
    diagnosis = judge(job(rank(0, *helpers, stack(*DRIVER, "cudaFree@libcudart.so.12", id="99")), syncing(1)))
    assert (diagnosis.processes[0].wait.thread, diagnosis.processes[0].wait.kind) == ("99", "device-free")
