"""Snapshots written by hand: `stack('poll@libc.so.6', '??@libcuda.so.1', 'cudaMallocHost@libcudart.so.12', ...)`."""

from __future__ import annotations

from dataclasses import replace

from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import Frame, ThreadStack

DRIVER = ("clock_gettime@libc.so.6", "??@libcuda.so.1", "??@libcuda.so.1", "??@libcudart.so.12")
ENGINE = ("fastertransformer::ParallelGpt<float>::decode@engine parallel_gpt.cc:66", "main@engine main.cc:9")
ENTRY = ("start_thread@libc.so.6", "clone3@libc.so.6")


def frame(text, **captures):
    """`name@library file:line`; `??` has no name; a Python frame is written `name@file.py:12` or `name@<string>:1`."""
    if text == "<signal handler called>":
        return Frame(text)
    called, _, source = text.partition(" ")
    name, _, library = called.partition("@")
    name = None if name == "??" else name
    language = "native"
    if ".py" in library or library.startswith("<"):
        library, source, language = "", library, "python"
    file, _, line = source.rpartition(":") if source else ("", "", "")
    return Frame(
        name, library or None, file=file or None, line=int(line) if line else None, language=language, captures=captures
    )


def stack(*frames, id="1", **fields):
    """One thread, frames innermost first; frames are texts or Frame objects."""
    made = tuple(one if isinstance(one, Frame) else frame(one) for one in frames)
    return ThreadStack(id, made, **fields)


def rank(number, *threads, **fields):
    """One process of the job; threads are stacks."""
    fields.setdefault("pid", 1000 + number)
    return RankSnapshot(number, tuple(threads), rank=number, **fields)


def job(*ranks, **fields):
    """A snapshot of these ranks; the job has no others unless `world_size` says so."""
    fields.setdefault("world_size", len(ranks))
    return JobSnapshot(tuple(replace(one, index=index) for index, one in enumerate(ranks)), **fields)


def nameless(*threads, source="text:gdb"):
    """A paste: one process of which nothing but stacks is known."""
    return JobSnapshot((RankSnapshot(0, tuple(threads), source=source),))


def syncing(number, *outer, **fields):
    """A rank that waits for its stream."""
    return rank(number, stack(*DRIVER, "cudaStreamSynchronize@libcudart.so.12", *(outer or ENGINE), **fields))


def inside(number, call, *outer, **fields):
    """A rank that is blocked by the driver inside one of its calls."""
    return rank(number, stack(*DRIVER, call, *(outer or ENGINE), **fields))


def reducing(number, count=1024, comm_hash=0xABC, name="all_reduce", members=None, operations=None):
    """A rank in the launch of a collective whose arguments were read."""
    exported = {"all_reduce": "ncclAllReduce", "all_gather": "ncclAllGather", "broadcast": "ncclBroadcast"}[name]
    captures = {"count": count, "comm": 0x7F00 + number, "comm->commHash": comm_hash}
    if members:
        captures["comm->nRanks"] = members
    if operations:
        captures["comm->opCount"] = operations
    call = frame(f"{exported}@libnccl.so.2 collectives.cc:20", **captures)
    return rank(number, stack("sched_yield@libc.so.6", "waitWorkFifoAvailable@libnccl.so.2", call, *ENGINE))


def gloo_reducing(number):
    """A torch rank in all_reduce over Gloo, Python frames in place."""
    return rank(
        number,
        stack(
            "__futex_abstimed_wait_common64@libc.so.6",
            "std::condition_variable::wait@libstdc++.so.6",
            "c10d::Work::wait@libtorch_cpu.so",
            "all_reduce@torch/distributed/distributed_c10d.py:3252",
            "forward@serve.py:20",
            "<module>@serve.py:60",
        ),
        stack(
            "pthread_cond_timedwait@libc.so.6",
            "gloo::transport::tcp::UnboundBuffer::waitRecv@libtorch_cpu.so",
            "c10d::AsyncAllreduceWork::allreduce@libtorch_cpu.so",
            "c10d::ProcessGroupGloo::runLoop@libtorch_cpu.so",
            *ENTRY,
            id="2",
            name="pt_gloo_runloop",
        ),
    )


def sleeping(number, **fields):
    """A Python rank that sleeps outside of any communication."""
    return rank(
        number,
        stack(
            "clock_nanosleep@libc.so.6",
            "time_sleep@libpython3.11.so.1.0",
            "wait_for_weights@serve.py:41",
            "<module>@serve.py:60",
            **fields,
        ),
    )
