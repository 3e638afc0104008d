"""Time and memory of judging and printing jobs of many ranks: synthetic snapshots, one process each size.

A rank has 200 threads: the worker at its wait, a few known helpers, and pools. Rank N/2 is in cudaMallocHost, the
others wait for the GPU. Every frame is an object of its own with its own address, as it is after a real look. Times are
seconds of CPU (one thread): `read` for the snapshot file, `judge` from there to verdict and merged tree, `render` for
the printed answer.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from tabulate import tabulate

from gdbext.analysis.judge import judge
from gdbext.analysis.merge import merge
from gdbext.model.codec import dump_snapshot, load_snapshot
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.render import Style, render
from tests.bench.accuracy import machine

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


def measure(path):
    """One size in this process: seconds and peak memory, as JSON on stdout."""
    begin = time.process_time()
    with open(path) as file:
        snapshot = load_snapshot(file.read())
    read = time.process_time()
    diagnosis = judge(snapshot)
    tree = merge(snapshot, diagnosis.processes)
    judged = time.process_time()
    lines = render(type(diagnosis)(diagnosis.snapshot, diagnosis.processes, diagnosis.verdict, tree), Style(width=120))
    rendered = time.process_time()
    print(json.dumps({
        "read": read - begin, "judge": judged - read, "render": rendered - judged, "lines": len(lines),
        "cause": diagnosis.verdict.cause, "culprits": diagnosis.verdict.culprits,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench scale", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[64, 256, 1024])
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--measure", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for ranks in options.ranks:
            path = os.path.join(folder, f"{ranks}.json")
            with open(path, "w") as file:
                file.write(dump_snapshot(job(ranks, options.threads)))
            argv = [sys.executable, "-m", "tests.bench.scale", "--measure", path]
            got = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
            assert (got["cause"], got["culprits"]) == ("implicit-sync-vs-collective", [ranks // 2]), got
            times = (got["read"], got["judge"], got["render"])
            rows.append([ranks, f"{ranks * options.threads:,}", f"{os.path.getsize(path) >> 20} MiB",
                         *(f"{seconds:.2f}" for seconds in times), f"{got['peak']} MiB", got["lines"]])  # fmt: skip
            print(rows[-1], file=sys.stderr)
    heads = ["ranks", "threads", "snapshot", "read s", "judge s", "render s", "peak memory", "lines printed"]
    print(machine(), "\n")
    print(tabulate(rows, heads, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
