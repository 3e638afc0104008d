"""A job of two ranks that died of a kernel: FasterTransformer-like code, its kernel built with -lineinfo, and the four
files that are left: a host core by gdb and a GPU core by the tests' writer, of each rank.

    make(folder)        writes core.PID and gpucores/gpucore.node7.PID.1732190000.nvcudmp of both

`python -m tests.inferiors.gpu_fault_job NVCC` makes gpu_fault/add_residual_kernels.ptx anew with an nvcc of CUDA 12 or
later (of PyPI: nvidia-cuda-nvcc with nvidia-nvvm, nvidia-cuda-crt and nvidia-cuda-runtime). It needs no GPU.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from gdbext.capture.gpu_code.cubin import Cubin
from tests.gdb.gdbrun import QUIET
from tests.inferiors import gpu_cubins
from tests.inferiors.gpu_core import core_of
from tests.polling import DEADLINE

HERE = Path(__file__).with_name("gpu_fault")
KERNELS, CODE = HERE / "add_residual_kernels.cu", HERE / "add_residual_kernels.ptx"
DECODER, RUNTIME = HERE / "ParallelGptContextDecoder.cc", HERE / "libcudart.c"
KERNEL = "_ZN17fastertransformer15addBiasResidualIfEEvPT_PKS1_S4_i"
BUILT_IN = "/src/fastertransformer"
ILLEGAL_ADDRESS = 14


def line_of(source, text):
    """The number of the first line with this text."""
    return next(number for number, line in enumerate(source.read_text().splitlines(), 1) if text in line)


def mark():
    """The first line of the PTX: of which source it was made."""
    return f"// Of {KERNELS.name}, sha256 {hashlib.sha256(KERNELS.read_bytes()).hexdigest()[:16]}"


def compiled(nvcc):
    """What nvcc makes of the kernel; the header of PTX that every CUDA 12 takes."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.ptx")
        subprocess.run([nvcc, "-lineinfo", "-arch=sm_80", "-ptx", str(KERNELS), "-o", str(made)], check=True)
        text = made.read_text().replace(str(KERNELS), f"{BUILT_IN}/kernels/{KERNELS.name}")
    return f"{mark()}\n{re.sub(r'(?m)^.version .*', '.version 8.0', text)}"


def program(folder):
    """The host's part, built as a release with debug information."""
    runtime, engine = folder / "libcudart.so.12", folder / "engine"
    subprocess.run(["gcc", "-O2", "-Wall", "-fPIC", "-shared", "-o", str(runtime), str(RUNTIME)], check=True)
    words = ["g++", "-g", "-O2", "-Wall", f"-ffile-prefix-map={HERE}={BUILT_IN}/models", str(DECODER), str(runtime)]
    subprocess.run([*words, "-o", str(engine)], check=True)
    return engine


def host_core(folder, engine, rank):
    """Of a rank that died of its check, or waits for the device; returns its pid. By gdb: the kernel's own core goes
    wherever the host sends it."""
    environ = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    save = "python pid = gdb.selected_inferior().pid; print('pid', pid)"
    write = f"python gdb.execute(f'generate-core-file {folder}/core.{{pid}}')"
    commands = ("set breakpoint pending on", *(["break poll"] if rank else []), "run", save, write, "kill")
    words = [word for one in commands for word in ("-ex", one)]
    with subprocess.Popen(
        ["gdb", *QUIET, "-batch", *words, str(engine)],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as gdb:
        try:
            said, _ = gdb.communicate(timeout=DEADLINE)
        finally:
            gdb.kill()
    found = re.search(r"^pid (\d+)$", said, re.MULTILINE)
    assert found, said
    return int(found[1])


def make(folder):
    """The files of both ranks in `folder`; returns their pids."""
    engine = program(folder)
    pids = [host_core(folder, engine, rank) for rank in (0, 1)]
    write_gpu_cores(folder, pids)
    return pids


def write_gpu_cores(folder, pids, lines=True):
    """Of rank 0 in its store, of rank 1 in NCCL's kernel, which has no lines: NCCL is not built with them."""
    text = CODE.read_text()
    line = line_of(KERNELS, "output[at] = value")
    image, entries = gpu_cubins.relocated(gpu_cubins.assembled(text))
    entry, code = entries[KERNEL], Cubin(image)
    at = next(pc for pc in range(entry, entry + 4096, 16) if code.frames_at(*code.locate(pc))[0].line == line)
    if not lines:
        image, _ = gpu_cubins.relocated(gpu_cubins.assembled(gpu_cubins.without_lines(text), lines=False))
    fault = {"entry": entry, "pc": at, "tid": pids[0], "fault": (ILLEGAL_ADDRESS, at, 0xFF)}
    fault.update(grid=(64, 1, 1), block=(64, 1, 1), warps=2, sms=[3, 4])
    nccl, entries = gpu_cubins.relocated(gpu_cubins.cubin(lines=False))
    spin = entries[gpu_cubins.SPIN]
    wait = {"entry": spin, "pc": spin + 48, "tid": pids[1], "grid": (24, 1, 1), "sms": range(24), "warps": 3}
    (folder / "gpucores").mkdir()
    for pid, core in zip(pids, (core_of(image, [fault]), core_of(nccl, [wait]))):
        (folder / "gpucores" / f"gpucore.node7.{pid}.1732190000.nvcudmp").write_bytes(core)


if __name__ == "__main__":
    CODE.write_text(compiled(sys.argv[1]))
