"""Statistics and digests of a large tensor in another process, against numpy on the same bytes in this one.

The tensor lies in a child process; its bytes come through process_vm_readv, as they do in gdb for a live process. Three
workers: numpy in this interpreter, a helper interpreter with numpy (what gdb's Python uses), and plain Python on a
sixteenth of the data. Times are of this machine, the ratios are what travels.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from tabulate import tabulate

from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.comparing.difference import Source, difference
from gdbext.analysis.tensors.comparing.digest import digest
from gdbext.analysis.tensors.decoding.shown_values import read_values
from gdbext.analysis.tensors.read_blocks import Limits
from gdbext.analysis.tensors.whole_tensor import statistics
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.model.tensor import TensorInfo
from gdbext.render import Style, render

HOLDER = """
import sys, numpy as np
name, count = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(1)
whole = np.empty(count, name)
for start in range(0, count, 1 << 22):
    whole[start : start + (1 << 22)] = rng.standard_normal(min(1 << 22, count - start), np.float32)
print(whole.ctypes.data, flush=True)
sys.stdin.read()
"""
DTYPES = {"float16": "fp16", "float32": "fp32"}
BLOCK = 1 << 18  # elements at a time for numpy: it is fastest when its temporary arrays stay in the cache


class Tensor:
    """A tensor of `nbytes` in a process of its own."""

    def __init__(self, dtype, nbytes):
        self.dtype = np.dtype(dtype)
        self.count = nbytes // self.dtype.itemsize // 4096 * 4096
        argv = [sys.executable, "-c", HOLDER, dtype, str(self.count)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = int(self.process.stdout.readline())
        shape = (self.count // 4096, 4096)
        self.info = TensorInfo("bench", dtype=DTYPES[dtype], shape=shape, where="cpu", address=address)
        self.memory = ProcessMemory(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def bytes(self):
        """All of it, in this process."""
        whole = np.empty(self.count * self.dtype.itemsize, np.uint8)
        for start in range(0, len(whole), 8 << 20):
            piece = self.memory.read(self.info.address + start, min(8 << 20, len(whole) - start))
            whole[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
        return whole.view(self.dtype)


def numpy_statistics(whole):
    """The same numbers by numpy, in the way one writes it: in blocks of float32, which is faster than on float16."""
    nan = inf = zeros = subnormals = 0
    low, high, total, squares = np.inf, -np.inf, 0.0, 0.0
    limit = np.finfo(whole.dtype).smallest_normal
    for start in range(0, len(whole), BLOCK):
        block = whole[start : start + BLOCK].astype(np.float32)
        nan += np.isnan(block).sum()
        inf += np.isinf(block).sum()
        sizes = np.abs(block)
        zeros += (block == 0).sum()
        subnormals += ((sizes < limit) & (block != 0)).sum()
        sizes.argmax()
        low, high = min(low, block.min()), max(high, block.max())
        total += block.sum(dtype=np.float64)
        squares += np.square(block, dtype=np.float64).sum()
    counts = np.zeros(8, int)
    for start in range(0, len(whole), BLOCK):
        counts += np.histogram(whole[start : start + BLOCK].astype(np.float32), 8, (low, high))[0]
    mean = total / len(whole)
    return mean, np.sqrt(squares / len(whole) - mean**2), low, high, counts


def timed(call):
    """Seconds, and what came back."""
    started = time.perf_counter()
    answer = call()
    return time.perf_counter() - started, answer


def check(stats, expected):
    """Both speak of the same tensor."""
    mean, std, low, high, counts = expected
    assert np.isclose(stats.mean, mean, atol=1e-6) and np.isclose(stats.std, std, rtol=1e-4)
    assert (stats.minimum, stats.maximum) == (low, high) and sum(stats.histogram.counts) == counts.sum()


def measure(dtype, nbytes, rounds):
    rows = []
    helper = Calculator([sys.executable], numpy_here=False)
    with Tensor(dtype, nbytes) as tensor:
        info, read = tensor.info, tensor.memory.read
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        here, stats = min(timed(lambda: statistics(info, read, calculator=Calculator())) for _ in range(rounds))
        beside, other = min(timed(lambda: statistics(info, read, calculator=helper)) for _ in range(rounds))
        hashing, _ = min(timed(lambda: digest(info, read).digest) for _ in range(rounds))
        same, diff = timed(lambda: difference(Source(info, read), Source(info, read)))
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        part = TensorInfo("part", dtype=info.dtype, shape=(tensor.count // 16,), address=info.address)
        alone = Calculator(numpy_here=False)
        plain, _ = timed(lambda: statistics(part, read, calculator=alone, limits=Limits(3600)))
        corner, _ = min(
            timed(lambda: render(read_values(info, read, "[-5:, -5:]"), Style())) for _ in range(max(rounds, 3))
        )
        whole = tensor.bytes()
        ours, expected = min((timed(lambda: numpy_statistics(whole)) for _ in range(rounds)), key=lambda pair: pair[0])
        check(stats, expected)
        check(other, expected)
        assert diff.same
    size = f"{nbytes / (1 << 30):g} GiB {dtype}"
    rows.append([f"stats, {size}", "numpy here", here, here / ours])
    rows.append([f"stats, {size}", "helper (gdb's Python has no numpy)", beside, beside / ours])
    rows.append([f"stats, {size}", "plain Python, from 1/16", plain * 16, plain * 16 / ours])
    rows.append([f"stats, {size}", "numpy alone, bytes already here", ours, 1.0])
    rows.append([f"hash, {size}", "", hashing, hashing / ours])
    rows.append([f"diff with itself, {size}", "", same, same / ours])
    rows.append([f"a corner of {size}, read and laid out", "", corner, corner / ours])
    return rows, growth


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench tensor", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the tensor")
    parser.add_argument("--dtype", choices=DTYPES, action="append")
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = []
    for dtype in options.dtype or ["float16", "float32"]:
        more, growth = measure(dtype, options.mib << 20, options.rounds)
        rows += more
        print(f"{dtype}: our memory grew by {growth / 1024:.0f} MiB", file=sys.stderr)
    shown = [[what, who, f"{seconds:.3f}", f"{ratio:.3f}"] for what, who, seconds, ratio in rows]
    print(tabulate(shown, ["what", "by", "seconds", "of numpy's time"], tablefmt="github", disable_numparse=True))
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
