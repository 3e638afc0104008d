"""One rank of a job that is slow, or blocked outside of any collective; the functions carry the field's file names.

`slow_rank.py ACTIVITY FOLDER` prints `ready` when it is at its place and stays until it is killed. What it does is
real (page faults, reads, a child that works); only the Python frames around it are named after the engines' own.
"""

import functools
import mmap
import os
import re
import subprocess
import sys
import time

PAGE = mmap.PAGESIZE

_PEERS = ("torch/distributed/distributed_c10d.py:all_reduce",)
_WORKER = "vllm/v1/worker/gpu_worker.py"
_RUNNER = "vllm/v1/worker/gpu_model_runner.py"


def say_ready():
    os.write(1, b"ready\n")


def wait_for_peers(folder):
    """What the others do: a collective that does not complete."""
    end, _kept_open = os.pipe()
    say_ready()
    os.read(end, 1)


def compile_kernels(folder):
    """A compiler works as a child process; its program has the name of a real one."""
    source = "import time\nwhile True:\n    end = time.monotonic() + .03\n    while time.monotonic() < end: pass\n"
    child = subprocess.Popen([f"{folder}/ptxas", "-I", "-S", "-c", source + "    time.sleep(.02)"])
    say_ready()
    child.wait()


def load_weights(folder):
    """Reads a file from its beginning to its end, again and again."""
    with open(f"{folder}/model.safetensors", "rb", buffering=0) as file:
        say_ready()
        while True:
            if not file.read(1 << 18):
                file.seek(0)
            time.sleep(0.002)  # leaves the machine to the others


def fault(folder):
    """Touches pages that are not in memory: each touch waits for the disk, as after swapping."""
    with open(f"{folder}/model.safetensors", "rb") as file:
        size = os.fstat(file.fileno()).st_size
        left = 100  # before it counts as swapping
        while True:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as pages:
                pages.madvise(mmap.MADV_RANDOM)
                for at in range(0, size, PAGE):
                    pages[at]
                    left -= 1
                    if left == 0:
                        say_ready()
                    if left % 8 == 0:
                        time.sleep(0.01)  # leaves the disk to the others


def blocked_read(folder):
    """A file that does not come: as on a network file system whose server is away."""
    with open(f"{folder}/fifo", "rb", buffering=0) as file:
        say_ready()
        file.read(1)


def tokenize(folder):
    text = "the quick brown fox jumps over the lazy dog " * 200
    say_ready()
    while True:
        re.sub(r"(\w+)o(\w*)", r"\2\1", text)


def capture(folder):
    """Warms up for one batch size after the other, with a pause for the device in each."""
    say_ready()
    while True:
        for size in range(200):
            CAPTURE["capture_begin"](functools.partial(sum, range(size * 20)))
            CAPTURE["capture_end"](os.sched_yield)


def nested(places, work):
    """`work` called from functions of these names in these files, outermost first."""
    for place in reversed(places):
        work = functools.partial(_function(place), work)
    return work


def _function(place):
    file, _, name = place.partition(":")
    found = {}
    exec(compile(f"def {name}(work):\n    return work()\n", f"/opt/site-packages/{file}", "exec"), found)
    return found[name]


CAPTURE = {name: _function(f"torch/cuda/graphs.py:{name}") for name in ("capture_begin", "capture_end")}

ACTIVITIES = {
    "peer": ((f"{_RUNNER}:execute_model", *_PEERS), wait_for_peers),
    "compile": (
        (
            f"{_WORKER}:compile_or_warm_up_model",
            "torch/_inductor/codecache.py:load",
            "triton/backends/nvidia/compiler.py:make_cubin",
        ),
        compile_kernels,
    ),
    "load": ((f"{_WORKER}:load_model", "safetensors/torch.py:load_file"), load_weights),
    "fault": ((f"{_RUNNER}:execute_model", "vllm/model_executor/models/llama.py:forward"), fault),
    "blocked": ((f"{_WORKER}:load_model", "safetensors/torch.py:load_file"), blocked_read),
    "tokenize": (
        ("vllm/v1/engine/processor.py:process_inputs", "transformers/tokenization_utils_base.py:batch_encode_plus"),
        tokenize,
    ),
    "capture": ((f"{_RUNNER}:capture_model",), capture),
}

if __name__ == "__main__":
    places, work = ACTIVITIES[sys.argv[1]]
    nested(places, functools.partial(work, sys.argv[2]))()
