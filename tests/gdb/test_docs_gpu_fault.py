"""The README's example of a kernel that failed: FasterTransformer-like code built with -lineinfo, its host and GPU
cores, the command as it stands there, and an answer that ends at the kernel's line and the engine's frame."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.docs_examples import WIDTH, all_examples
from tests.docs_gdb import alike
from tests.inferiors import gpu_fault_job as job

pytestmark = pytest.mark.gdb
COMMAND = "gdbext diagnose -q --brief core.* gpucores/*.nvcudmp"


@pytest.fixture(scope="module")
def cores(tmp_path_factory):
    """A folder with the four files, and how to type `gdbext` there."""
    folder = tmp_path_factory.mktemp("cores")
    pids = job.make(folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "gdbext").write_text(f'#!/bin/sh\nexec {sys.executable} -m gdbext "$@"\n')
    (folder / "bin" / "gdbext").chmod(0o755)
    return folder, pids


def typed(folder, command):
    """As a shell runs it there."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": os.getcwd(), "COLUMNS": str(WIDTH)}
    return subprocess.run(["sh", "-c", command], cwd=folder, env=environ, capture_output=True, text=True)


def words(lines):
    """In one line, whatever the pids make of its breaks."""
    return " ".join(" ".join(alike(lines)).split())


def test_the_example_of_the_readme(cores):
    (example,) = (one for one in all_examples() if one.page.name == "README.md" and one.command == COMMAND)
    done = typed(cores[0], example.command)
    assert done.returncode == 1, done.stderr
    parts = (re.escape(part.strip()) for part in words(example.output).split(" ..."))
    assert re.fullmatch(".*".join(parts), words(done.stdout.splitlines())), done.stdout
    shown = words(example.output)
    assert f"at {job.KERNELS.name}:{job.line_of(job.KERNELS, 'output[at] = value')}, kernel" in shown
    assert f"::forward ({job.DECODER.name}:{job.line_of(job.DECODER, '    sync_check_cuda_error();')})" in shown


def test_what_the_answer_rests_on(cores):
    folder, pids = cores
    done = typed(folder, "gdbext diagnose -q --json core.* gpucores/*.nvcudmp")
    answer = json.loads(done.stdout)
    verdict = answer["verdict"]
    assert (verdict["cause"], verdict["confidence"], verdict["culprits"], verdict["victims"]) == (
        "gpu-fault",
        "high",
        [0],
        [1],
    )
    assert [one["pid"] for one in answer["processes"]] == pids
    assert [one["kernels"][0]["name"].split("_Sum")[0] for one in answer["processes"]] == [
        "fastertransformer::addBiasResidual<…>",
        "ncclDevKernel_AllReduce",
    ]
    (error,) = answer["gpu_errors"]
    assert error["engine_frame"]["function"] == "fastertransformer::ParallelGptContextDecoder<float>::forward"
    assert error["engine_frame"]["file"] == f"{job.BUILT_IN}/models/{job.DECODER.name}"
    assert error["places"][0]["file"] == f"{job.BUILT_IN}/kernels/{job.KERNELS.name}"


def test_without_line_info_the_kernel_is_named_and_no_line_is_claimed(cores, tmp_path):
    folder, pids = cores
    for path in folder.glob("core.*"):
        shutil.copy(path, tmp_path)
    job.write_gpu_cores(tmp_path, pids, lines=False)
    done = typed(folder, f"gdbext diagnose -q --brief {tmp_path}/core.* {tmp_path}/gpucores/*.nvcudmp")
    said = words(done.stdout.splitlines())
    assert "WARP_ILLEGAL_ADDRESS in fastertransformer::addBiasResidual<…>, launched by thread" in said
    assert job.KERNELS.name not in said


def test_the_code_is_what_nvcc_made_of_the_kernel():
    assert job.CODE.read_text().splitlines()[0] == job.mark(), "tests/inferiors/gpu_fault_job.py makes it anew"
