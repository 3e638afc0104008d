"""scripts/prove-gpu where no GPU is: its steps with the sanitizer, with stand-ins for the tool and for the driver."""

import subprocess

import pytest

from tests import prove_gpu, sanitizer_mimic
from tests.gpu_reports import Fault, report

pytestmark = pytest.mark.process
CALLS = (
    "cuInit cuDeviceGet cuDevicePrimaryCtxRetain cuCtxSetCurrent cuModuleLoadDataEx cuModuleGetFunction cuMemAlloc_v2"
    " cuMemsetD32_v2 cuLaunchKernel cuCtxSynchronize"
)


@pytest.fixture
def proof(tmp_path, monkeypatch):
    """Makes a proof on a host whose sanitizer reports this fault."""
    folder = sanitizer_mimic.installed(tmp_path / "bin")
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in CALLS.split())
    words = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(words, input=source, text=True, check=True)

    def proof(fault=None):
        more = {}
        if fault is not None:
            (tmp_path / "report").write_text("\n".join(report(fault, "D")))
            more = {"MIMIC_REPORT": str(tmp_path / "report")}
        for name, value in sanitizer_mimic.environment(folder, **more).items():
            monkeypatch.setenv(name, value)
        return prove_gpu.Proof(tmp_path)

    return proof


@pytest.mark.parametrize("step", ["sanitizer", "sanitizer_stopped"])
@pytest.mark.parametrize(("line", "state"), [(41, "proven"), (42, "failed")])
def test_the_fault_must_be_at_its_line(proof, step, line, state):
    row = prove_gpu._step(proof(Fault(file="/build/src/engine.cu", line=line)), step)
    assert row["state"] == state, row
    assert state == "failed" or f"engine.cu:{line}" in row["found"]["said"]


def test_each_tool_is_tried_and_timed(proof):
    row = prove_gpu._step(proof(), "sanitizer_tools")
    assert row["state"] == "proven", row
    assert list(row["found"]["seconds"]) == ["alone", "memcheck", "initcheck", "synccheck", "racecheck"]


def test_a_tool_that_reports_what_is_not_there_is_no_proof(proof):
    row = prove_gpu._step(proof(Fault()), "sanitizer_tools")
    assert (row["state"], "status 1" in row["why"]) == ("failed", True)
