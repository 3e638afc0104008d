"""A step of `scripts/bench scale` with whatever gdbext is imported: FILE measures it, FILE RANKS THREADS makes it."""

import json
import os
import resource
import sys
import time

from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.render import Style, render

_CUDA = ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/local/cuda/lib64/libcudart.so.12")
_LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
_ENGINE = "/opt/engine/libengine.so"
_TORCH = "/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"
_DRIVER = [("clock_gettime", _LIBC), *[(None, _CUDA[0])] * 8, (None, _CUDA[1])]
_OUTER = [
    ("engine::ParallelModel<__half>::decode", _ENGINE),
    ("engine::ParallelModel<__half>::forward", _ENGINE),
    *[("_PyEval_EvalFrameDefault", "/usr/bin/python3.12")] * 12,
    ("main", "/usr/bin/python3.12"),
]
_ENTRY = [("start_thread", _LIBC), ("clone3", _LIBC)]
_WAITING = [*_DRIVER, ("cudaStreamSynchronize", _CUDA[1]), *_OUTER]
_STUCK = [*_DRIVER, ("cudaMallocHost", _CUDA[1]), *_OUTER]
_HELPERS = (
    [("poll", _LIBC), *[(None, _CUDA[0])] * 3, *_ENTRY],
    [("pthread_cond_wait", _LIBC), ("ncclProxyGetPostedOps", "/opt/libnccl.so.2"),
     ("ncclProxyProgress", "/opt/libnccl.so.2"), *_ENTRY],
    [("pthread_cond_timedwait", _LIBC), ("c10d::ProcessGroupNCCL::watchdogHandler", _TORCH), *_ENTRY],
    [("pthread_cond_wait", _LIBC), ("c10::TaskThreadPool::main_loop", _TORCH), *_ENTRY],
    [("futex_wait", _LIBC), ("gomp_thread_start", "/usr/lib/libgomp.so.1"), *_ENTRY],
    [("epoll_wait", _LIBC), ("engine::rpc::Server::loop", _ENGINE), *_ENTRY],
)  # fmt: skip


def thread(calls, lwp, **fields):
    frames = tuple(
        Frame(name, library, pc=0x7F0000000000 + (lwp << 12) + number) for number, (name, library) in enumerate(calls)
    )
    return ThreadStack(str(lwp), frames, lwp, state="S", cpu=0.0, **fields)


def job(ranks, threads):
    """A snapshot of a hang of the classic kind."""
    processes = []
    for rank in range(ranks):
        pid = 100_000 + rank * 1000
        first = thread(_STUCK if rank == ranks // 2 else _WAITING, pid, name="engine")
        rest = (thread(_HELPERS[number % len(_HELPERS)], pid + number) for number in range(1, threads))
        processes.append(RankSnapshot(rank, (first, *rest), pid, rank, world_size=ranks, host=f"node{rank // 8}"))
    return JobSnapshot(tuple(processes), world_size=ranks)


def make(path, ranks, threads):
    """A snapshot file as the gdbext of this process saves it."""
    with open(path, "w") as file:
        file.write(dump_snapshot(job(ranks, threads)))


def measure(path):
    """One size in this process: seconds and peak memory, as JSON on stdout."""
    begin, seconds, peaks = time.process_time(), [], []

    def done():
        seconds.append(time.process_time() - begin - sum(seconds))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)

    with open(path, "rb") as file:
        snapshot = load_snapshot(file.read())
    done()
    diagnosis = judge(snapshot)
    tree = merge(snapshot, diagnosis.processes)
    done()
    lines = render(type(diagnosis)(diagnosis.snapshot, diagnosis.processes, diagnosis.verdict, tree), Style(width=120))
    done()
    print(json.dumps({
        "seconds": seconds, "peaks": peaks, "lines": len(lines), "size": os.path.getsize(path) >> 20,
        "cause": diagnosis.verdict.cause, "culprits": diagnosis.verdict.culprits,
    }))  # fmt: skip


if __name__ == "__main__":
    make(sys.argv[1], *map(int, sys.argv[2:])) if sys.argv[2:] else measure(sys.argv[1])
