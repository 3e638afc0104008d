"""Model objects that the tests of gdbext.render show: jobs of 8 and of 1,024 ranks, healthy, empty and hostile ones."""

from __future__ import annotations

import dataclasses
import functools

from gdbext.model.codes import ReadState, Word
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import LANGUAGES, Frame, ThreadStack
from gdbext.model.stack_tree import StackTree, TreeNode
from gdbext.model.verdict import Diagnosis, Evidence, ProcessJudgement, Remedy, ThreadJudgement, Verdict, Wait

CUDA, CUDART, NCCL = "/usr/lib/libcuda.so.1", "/opt/engine/libcudart.so.12", "/opt/engine/libnccl.so.2"
ENGINE = "/opt/engine/lib/libth_transformer.so"

MAIN = Frame("main", ENGINE, file="/src/server/main.cc", line=41)
LOOP = Frame("rtp_llm::NormalEngine::loop", ENGINE, file="/src/engine/NormalEngine.cc", line=212)
GROW = Frame(
    "rtp_llm::BufferManager::allocate<std::map<std::string, std::vector<half>>>",
    ENGINE,
    file="/src/core/BufferManager.cc",
    line=88,
)
REDUCE = Frame("rtp_llm::CudaDevice::allReduce", ENGINE, file="/src/device/CudaDevice.cc", line=530)
HIDDEN = Frame(None, CUDA)

ALLOCATING = (HIDDEN, HIDDEN, HIDDEN, Frame("cudaMallocHost", CUDART), GROW, LOOP, MAIN)
REDUCING = (HIDDEN, HIDDEN, Frame("ncclAllReduce", NCCL), REDUCE, LOOP, MAIN)


def tree_of(frames, ranks, threads=None):
    """A chain of nodes from frames innermost first, as a list from the outermost (for `joined`)."""
    return [
        TreeNode(one.function, tuple(ranks), threads or len(ranks), one.module, one.file, one.line, one.language)
        for one in reversed(frames)
    ]


def joined(chain, children=()):
    """One branch: the nodes of `chain` below each other, `children` below the last."""
    for node in reversed(chain):
        children = (dataclasses.replace(node, children=tuple(children)),)
    return children[0]


def process(index, frames, kind, collective=None, engine_frame=4, name="engine-loop", **more):
    thread = ThreadStack(id="7", frames=frames, name=name, lwp=5000 + index)
    seen = RankSnapshot(
        index=index,
        threads=(thread, ThreadStack("8", (), name="cuda-EvtHandlr")),
        pid=4711 + index,
        rank=index,
        host="node17",
        engine="rtp-llm",
        title=f"rtp_llm_rank-{index}",
        **{"pause_ms": 3.5 + index / 10, **more},
    )
    judged = ProcessJudgement(
        index=index,
        wait=Wait(kind, thread="7", frame=engine_frame - 1, collective=collective, communicator="0x55d0c0ffee00"),
        threads=(
            ThreadJudgement(kind, frame=engine_frame - 1, engine_frame=engine_frame),
            ThreadJudgement("condvar-idle", helper="driver-event"),
        ),
    )
    return seen, judged


@functools.lru_cache(maxsize=None)
def hang(ranks, culprit):
    """The classic: one rank allocates pinned memory while the others are in a collective."""
    pairs = [
        process(index, ALLOCATING, "pinned-host-alloc")
        if index == culprit
        else process(index, REDUCING, "nccl-group-launch", "all_reduce", engine_frame=3)
        for index in range(ranks)
    ]
    victims = tuple(index for index in range(ranks) if index != culprit)
    everybody = tuple(range(ranks))
    fork = (
        joined(tree_of(REDUCING[:-2], victims)),
        joined(tree_of(ALLOCATING[:-2], (culprit,))),
    )
    return Diagnosis(
        snapshot=JobSnapshot(tuple(seen for seen, _ in pairs), taken_at=1792454400.25, engine="rtp-llm"),
        processes=tuple(judged for _, judged in pairs),
        verdict=Verdict(
            cause="implicit-sync-vs-collective",
            confidence="high",
            summary=(
                f"Rank {culprit} allocates page-locked memory: that call waits for its GPU, and {len(victims):,} ranks "
                f"are in an all_reduce that waits for rank {culprit}. Neither side can go on."
            ),
            culprits=(culprit,),
            victims=victims,
            decisive_process=culprit,
            decisive_thread="7",
            evidence=(
                Evidence(f"rank {culprit} is in cudaMallocHost, which waits for the device", culprit, "7", 3),
                Evidence(f"{len(victims)} ranks are in ncclAllReduce on 0x55d0c0ffee00", victims[0], "7", 2),
                Evidence(f"no thread of rank {culprit} is in this all_reduce", culprit),
            ),
            remedies=(
                Remedy(
                    "Allocate pinned buffers before the first collective, or from a pool.",
                    "An allocation then never meets a collective in flight.",
                ),
                Remedy(
                    "Keep cudaMallocHost off the thread that launches collectives.", "It waits for the whole device."
                ),
            ),
            missing=("NCCL operation counts: the library has no symbols",),
        ),
        tree=StackTree(
            roots=(joined(tree_of((LOOP, MAIN), everybody), fork),),
            folded={"nccl-proxy": 2 * ranks, "driver-event": ranks, "pool": 60 * ranks},
        ),
    )


def healthy(ranks=4):
    """All ranks wait for requests."""
    frames = (Frame("poll", "/lib/libc.so.6"), Frame("wait_for_requests", "loop.py", file="/srv/loop.py", line=12))
    pairs = [process(index, frames, "ipc-queue", engine_frame=1) for index in range(ranks)]
    return Diagnosis(
        snapshot=JobSnapshot(tuple(seen for seen, _ in pairs)),
        processes=tuple(judged for _, judged in pairs),
        verdict=Verdict(
            cause="not-a-hang",
            confidence="high",
            summary=f"All {ranks} ranks wait for requests. Nothing is stuck.",
        ),
    )


def empty():
    """Nothing could be read."""
    return Diagnosis(
        snapshot=JobSnapshot((), problems=("rank 0: ptrace refused",)),
        processes=(),
        verdict=Verdict(cause="unknown", confidence="low", summary="No process could be read."),
    )


HOSTILE = "\x1b[2J\x1b]0;owned\x07evil\r\n\t\u202egnp.exe\u2066\ud800\x9b31m\x00\u200b"


def poisoned(value):
    """`value` with every text in it followed by escape sequences and worse."""
    if isinstance(value, Word) or value in LANGUAGES:
        return value  # ours
    if isinstance(value, str):
        return value + HOSTILE
    if dataclasses.is_dataclass(value):
        changes = {field.name: poisoned(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(poisoned(item) for item in value)
    if isinstance(value, dict):
        return {poisoned(key): poisoned(item) for key, item in value.items()}
    return value


def python_frame(name, line, file="/srv/job.py"):
    return Frame(name, file=file, line=line, language="python")


MODULE = python_frame("<module>", 80)
SLEEPING = (
    Frame("clock_nanosleep", "/lib/libc.so.6"),
    Frame("time_sleep", "/usr/bin/python3.11"),
    python_frame("come_late", 44),
    MODULE,
)
GLOO = (
    Frame("epoll_wait", "/lib/libc.so.6"),
    Frame("gloo::transport::tcp::UnboundBuffer::waitRecv", "/venv/lib/libtorch_cpu.so"),
    python_frame("all_reduce", 2806, "/venv/lib/torch/distributed/distributed_c10d.py"),
    python_frame("step", 51),
    MODULE,
)


def never_came():
    """Python ranks: 1 sleeps, 3 has no process, 0 and 2 wait for both; rank 2 could be read in part only."""
    pairs = [
        process(0, GLOO, "gloo", "all_reduce", 3, "python3"),
        process(1, SLEEPING, "python-code", None, 2, "python3"),
        process(
            2, GLOO, "gloo", "all_reduce", 3, "python3", state=ReadState.PARTIAL, problems=("4 threads over budget",)
        ),
    ]
    return Diagnosis(
        snapshot=JobSnapshot(tuple(seen for seen, _ in pairs), world_size=4, absent=(3,)),
        processes=tuple(judged for _, judged in pairs),
        verdict=Verdict(
            cause="missing-rank",
            confidence="high",
            summary="Ranks 0 and 2 wait in all_reduce. Rank 1 sleeps in Python (job.py:44) and rank 3 has no process.",
            culprits=(1,),
            victims=(0, 2),
            absent=(3,),
            decisive_process=1,
            decisive_thread="7",
            evidence=(Evidence("rank 1 sleeps in come_late (job.py:44)", 1, "7", 2), Evidence("world size is 4")),
            remedies=(Remedy("Look at job.py:44, and at why rank 3 ended.", "Neither enters the collective."),),
        ),
        tree=StackTree(
            roots=(
                joined(
                    tree_of((MODULE,), (0, 1, 2)),
                    (joined(tree_of(GLOO[:-1], (0, 2))), joined(tree_of(SLEEPING[:-1], (1,)))),
                ),
            ),
            folded={"pool": 180},
        ),
    )


@functools.lru_cache(maxsize=None)
def scattered(ranks=1024):
    """The worst to show: every rank somewhere else, everything long, everything too many."""
    pairs, roots = [], []
    for index in range(ranks):
        frames = tuple(
            Frame(
                f"engine::Layer<int, std::vector<std::map<int, {index}>>>::method_{(index * 31 + level) % 97}",
                ENGINE,
                file=f"/src/layers/file{index % 50}.cc",
                line=index,
            )
            for level in range(30)
        )
        problems = (f"thread {index}: corrupt stack",)
        kind = ("gloo", "io", "mutex")[index % 3]
        pairs.append(process(index, frames, kind, state=("ok", "partial")[index % 2], problems=problems))
        roots.append(joined(tree_of(frames, (index,))))
    return Diagnosis(
        snapshot=JobSnapshot(tuple(seen for seen, _ in pairs), absent=tuple(range(ranks, ranks + 80, 2))),
        processes=tuple(judged for _, judged in pairs),
        verdict=Verdict(
            cause="unknown",
            confidence="low",
            summary="The ranks are in many places. " * 20,
            culprits=tuple(range(1, ranks, 5)),
            victims=tuple(range(0, ranks, 2)),
            evidence=tuple(
                Evidence("waits for something that takes long to say " * 5, n, "7", 2) for n in range(ranks)
            ),
            remedies=tuple(Remedy("Do this " * 40, "for that reason " * 40) for _ in range(30)),
            missing=("this or that " * 20,) * 50,
        ),
        tree=StackTree(tuple(roots), {f"kind-{number}": number for number in range(90)}),
    )
