"""Values of tensors on the device: copied by allowed calls out of the stand-in driver, or out of a GPU core."""

import re
from pathlib import Path

import pytest

from tests.gdb.gdbrun import gdb_batch
from tests.inferiors.device_build import DeviceTarget
from tests.inferiors.gpu_core import gpu_core

pytestmark = pytest.mark.gdb

TENSOR = "device --dtype fp32 --shape 4,6"
ALLOW = "set llm allow-calls on"
VALUES = [number / 2 for number in range(24)]


def maps(target):
    return Path(f"/proc/{target.pid}/maps").read_text()


def calls(answer):
    return re.findall(r"^gdbext: calls (\w+) in process \d+, thread \d+$", answer.err, re.MULTILINE)


@pytest.mark.calls
def test_values_and_that_nothing_is_left(any_gdb, tmp_path):
    with DeviceTarget() as target:
        before = maps(target)
        answer = gdb_batch(
            any_gdb, f"attach {target.pid}",
            f"llm-tensor p --json {TENSOR}", ALLOW, f"llm-tensor p --json {TENSOR}",
            f"llm-tensor p --json {TENSOR} [1:3, -2:]", f"llm-tensor p --json {TENSOR} --strides 1,4",
            f"llm-tensor stats --json {TENSOR}", "llm-tensor p device --dtype fp32 --shape 262145 [-1]",
            "llm-tensor stats device --dtype fp32 --shape 512,513", "p 1", "detach",
        )  # fmt: skip
        after, streams = maps(target), target.ask("streams")
        target.assert_free()
    refused, whole, part, turned, stats = answer.documents
    assert "set llm allow-calls on" in str(refused)
    assert whole["elements"] == VALUES
    assert part["elements"] == [5, 5.5, 8, 8.5]
    assert turned["elements"] == [(row + 4 * column) / 2 for row in range(4) for column in range(6)]
    assert stats["mean"] == 5.75
    assert "cannot be copied: cuMemcpyDtoHAsync_v2 says 1\n" in answer.err
    assert "calls copy at most 1 MiB of device memory for one command; give an index" in answer.err
    assert "$1 = 1" in answer.out
    assert after == before
    assert streams == 0
    assert calls(answer)[:10] == [
        "mmap", "cuCtxGetCurrent", "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode",
        "cuStreamCreate", "cuMemcpyDtoHAsync_v2", "cuStreamQuery", "cuStreamDestroy_v2", "munmap", "mmap",
    ]  # fmt: skip
    assert not [name for name in calls(answer) if name.startswith("cuda")]


REFUSALS = {
    "sticky": "the CUDA context has an earlier, sticky error (cuStreamIsCapturing: 700)",
    "capture": "a CUDA graph is being captured (cuStreamIsCapturing: 906)",
    "lonely": "without a CUDA context of its own",  # thread 1, or both
    "lock": "cuStreamIsCapturing did not return within 2 s and was interrupted",
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_copy_that_must_not_be_or_cannot(what, calling_gdb):
    """Whatever the device is in, the process is as it was, and lives."""
    arguments, fault = ([what], None) if what in ("lock", "lonely") else ([], what)
    with DeviceTarget(*arguments, fault=fault) as target:
        before = maps(target)
        answer = gdb_batch(calling_gdb, ALLOW, f"attach {target.pid}", f"llm-tensor p {TENSOR}", "thread", "detach")
        assert REFUSALS[what] in answer.err
        assert not set(calls(answer)) & {"cuMemcpyDtoHAsync_v2", "cuStreamCreate"}
        assert maps(target) == before
        assert "[Current thread is 1 " in answer.out
        target.assert_free()


@pytest.mark.parametrize(
    "fault, words", [("copy", "cuMemcpyDtoHAsync_v2 did not return within 2 s"), ("busy", "the device is busy")]
)
def test_a_copy_that_does_not_end(fault, words, calling_gdb):
    """What the copy may still write to stays, and is told; the process lives."""
    with DeviceTarget(fault=fault) as target:
        answer = gdb_batch(calling_gdb, ALLOW, f"attach {target.pid}", f"llm-tensor p {TENSOR}", "detach")
        left = re.search(r"8 KiB at (0x[0-9a-f]+) stay in the process", answer.err)
        assert words in answer.err and left, answer.err
        assert re.search(rf"^{left[1][2:]}-", maps(target), re.MULTILINE)
        assert target.ask("streams") == (fault == "copy")
        target.assert_free()


def test_a_process_that_never_used_its_device(calling_gdb):
    with DeviceTarget("none") as target:
        raw = "llm-tensor p 0x200000000 --dtype fp32 --shape 4 --where gpu"
        answer = gdb_batch(calling_gdb, ALLOW, f"attach {target.pid}", raw, "detach")
        target.assert_free()
    assert "the process has not initialised CUDA, and gdbext does not do that" in answer.err
    assert calls(answer) == []


def test_out_of_a_gpu_core(tmp_path):
    """Beside a live process and beside a core file, without a call; a wrong file is one line."""
    path, host = tmp_path / "gpu.nvcudmp", tmp_path / "core"
    (tmp_path / "text").write_text("no core")
    with DeviceTarget() as target:
        program = target.program
        first = gdb_batch("gdb", f"attach {target.pid}", "p/x (unsigned long)device", f"generate-core-file {host}")
        address = int(re.search(r"= (0x[0-9a-f]+)", first.out)[1], 16)
        numbers = b"".join(number.to_bytes(4, "little") for number in range(24))
        path.write_bytes(gpu_core({address: numbers}))
        raw = "llm-tensor p device --dtype int32 --shape 4,6 [-1]"
        shown = gdb_batch(
            "gdb", f"attach {target.pid}", f"{raw} --gpu-core {path}", f"{raw} --gpu-core {tmp_path}/text"
        )
        in_core = gdb_batch("gdb", f"file {program}", f"core-file {host}", ALLOW, f"{raw} --gpu-core {path}", raw)
    for answer in (shown, in_core):
        assert "[18 19 20 21 22 23]" in answer.out, answer.text
        assert calls(answer) == []
    assert f"{tmp_path}/text: not a GPU core: not a 64-bit ELF file" in shown.err
    assert "device memory" in in_core.out and "GPU core" in in_core.out
