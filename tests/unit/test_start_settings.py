"""`gdbext run --profile` and `--dump`: what an engine is started with."""

import json
import os
import subprocess
import sys

import pytest

from gdbext.cli.mindspore_dump import configuration
from gdbext.cli.run_settings import engine_of, settings_for
from gdbext.knowledge.dumps import mindspore_keys
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.launch import start_settings
from gdbext.model.errors import UsageError
from tests.unit.test_layers import ROOT

PURPOSES = (start_settings.PROFILE, start_settings.GRAPHS, start_settings.TENSORS, start_settings.SANITIZER)


def start(purpose, command, folder, **more):
    return settings_for(
        purpose, more.pop("engine", None), command.split(), more.pop("environment", {}), str(folder), **more
    )


@pytest.mark.parametrize("row", start_settings.SETTINGS, ids=lambda row: f"{row.purpose} {row.name}")
def test_rows(row):
    assert row.purpose in PURPOSES and row.source
    assert row.engine in ("", *(profile.name for profile in PROFILES))
    filled = row.value.format(dir="/d", file="/d/f", first="1", last="2")
    assert "{" not in filled or json.loads(filled)
    assert row.argument == row.name.startswith("--")


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("vllm serve model", "vllm"),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("python -m sglang.launch_server --tp 2", "sglang"),
        ("vllm-mindspore serve model", "vllm"),
        ("python3 -m vllm_mindspore.entrypoints vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("mpirun -n 8 trtllm-serve model", "tensorrt-llm"),
        ("env A=1 numactl -N 0 vllm serve model", "vllm"),
        ("torchrun train.py", None),
        ("bash start.sh", None),
    ],
)
def test_the_engine_of_a_command(command, engine):
    assert engine_of(command.split()) == engine


def test_a_profile_of_tensorrt_llm(tmp_path):
    made = start("profile", "trtllm-serve model", tmp_path / "p", steps="20-30")
    assert made.words == ["trtllm-serve", "model"]
    assert made.environment == {
        "TLLM_TORCH_PROFILE_TRACE": f"{tmp_path}/p/trace.json",
        "TLLM_PROFILE_START_STOP": "20-30",
        "TLLM_PROFILE_RECORD_GC": "1",
    }
    assert f"files: {tmp_path}/p/trace-rank-N.json" in made.said
    assert (tmp_path / "p").is_dir()


def test_a_profile_of_mindspore(tmp_path):
    made = start("profile", "msrun train.py", tmp_path, engine="mindspore")
    options = json.loads(made.environment["MS_PROFILER_OPTIONS"])
    assert options == {
        "start": True,
        "output_path": str(tmp_path),
        "activities": ["CPU", "NPU"],
        "profiler_level": "Level1",
    }


def test_an_engine_that_is_not_known_gets_the_settings_of_all(tmp_path):
    made = start("graphs", "bash start.sh", tmp_path)
    assert {"TORCH_COMPILE_DEBUG", "TORCH_TRACE", "VLLM_DEBUG_DUMP_PATH", "MS_DEV_SAVE_GRAPHS"} <= set(made.environment)


def test_what_is_set_already_stays_and_is_said(tmp_path):
    made = start("graphs", "vllm serve m", tmp_path, environment={"VLLM_DEBUG_DUMP_PATH": "/mine"})
    assert made.environment["VLLM_DEBUG_DUMP_PATH"] == "/mine"
    assert f"VLLM_DEBUG_DUMP_PATH=/mine is already set; gdbext would set it to {tmp_path}/vllm" in made.said


def test_an_option_is_put_behind_the_engines_own_command_alone(tmp_path):
    made = start("tensors", "python -m sglang.launch_server --tp 2", tmp_path)
    assert made.words[-2:] == ["--debug-tensor-dump-output-folder", f"{tmp_path}/sglang"]
    assert "note: tensors inside of CUDA graphs are not seen: start it with --disable-cuda-graph" in made.said
    assert start("tensors", "bash start.sh", tmp_path).words == ["bash", "start.sh"]


def test_what_no_setting_can_do_is_said(tmp_path):
    said = start("tensors", "trtllm-serve model", tmp_path).said
    assert any("its PP_ and TP_ are sizes" in line for line in said)
    assert "note: no setting of vLLM is known that writes tensors" in start("tensors", "vllm serve m", tmp_path).said
    with pytest.raises(UsageError, match=r"no such setting is known for llama.cpp"):
        start("tensors", "x", tmp_path, engine="llama.cpp")


@pytest.mark.parametrize("steps", ["5", "9-3", "a-b", "3-3"])
def test_steps_that_are_none(tmp_path, steps):
    with pytest.raises(UsageError, match="is not a range of steps; --steps 100-150"):
        start("profile", "trtllm-serve m", tmp_path, steps=steps)


@pytest.mark.process
def test_the_command_becomes_the_program(tmp_path):
    words = [
        sys.executable,
        "-m",
        "gdbext",
        "run",
        "--dump",
        "tensors",
        "--engine",
        "mindspore",
        "--dir",
        str(tmp_path / "d"),
    ]
    words += [
        "--set",
        "iteration=0|5-8",
        "--",
        sys.executable,
        "-c",
        "import os; print(open(os.environ['MINDSPORE_DUMP_CONFIG']).read())",
    ]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT.parent, check=True)
    document = json.loads(done.stdout)
    assert document["common_dump_settings"]["iteration"] == "0|5-8"
    assert os.path.isabs(document["common_dump_settings"]["path"])
    assert f"MINDSPORE_DUMP_CONFIG={tmp_path}/d/data_dump.json" in done.stderr
    assert f"files: {tmp_path}/d/mindspore/rank_N/NET/GRAPH/STEP" in done.stderr


@pytest.mark.process
def test_options_that_belong_to_a_purpose():
    words = [sys.executable, "-m", "gdbext", "run", "--steps", "1-2", "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT.parent)
    assert (done.returncode, done.stderr) == (2, "gdbext: --dir, --steps and --set need --profile or --dump\n")


DEFAULTS = {
    "common_dump_settings": {
        "path": "/d",
        "op_debug_mode": 0,
        "dump_mode": 0,
        "net_name": "net",
        "iteration": "0",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0, 1, 2, 3, 4, 5, 6, 7],
    },
    "e2e_dump_settings": {"enable": True, "trans_flag": True},
}


def test_the_defaults_of_mindspore():
    assert configuration("/d", ()) == DEFAULTS


VALID = {
    "op_debug_mode": ["3", "4"],
    "dump_mode": ["2"],
    "net_name": ["ResNet50"],
    "iteration": ["all", "0|5-8|100-120"],
    "saved_data": ["statistic", "full"],
    "input_output": ["1", "2"],
    "kernels": ["Default/Conv-op12,conv,name-regex(Default/.+)"],
    "support_device": ["0,3"],
    "statistic_category": ["max,l2norm", "negative zero count"],
    "overflow_number": ["10"],
    "initial_iteration": ["10"],
    "enable": ["false"],
    "trans_flag": ["false"],
    "stat_calc_mode": ["host", "device"],
    "device_stat_precision_mode": ["low"],
    "sample_mode": ["1"],
    "sample_num": ["50"],
    "save_kernel_args": ["true"],
}
WITH = {
    "kernels": ("dump_mode=1",),
    "statistic_category": ("saved_data=full",),
    "overflow_number": ("op_debug_mode=3",),
    "device_stat_precision_mode": ("stat_calc_mode=device",),
}


def test_each_documented_key_is_tried():
    assert set(VALID) == {row.name for row in mindspore_keys.KEYS}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in VALID.items() for value in values])
def test_each_documented_mode(name, value):
    made = configuration("/d", (f"{name}={value}", *WITH.get(name, ())))
    found = {**made["common_dump_settings"], **made["e2e_dump_settings"]}
    said = found[name]
    text = (
        ",".join(map(str, said))
        if isinstance(said, list)
        else str(said).lower()
        if isinstance(said, bool)
        else str(said)
    )
    assert text == value


def test_a_failing_operator_has_inputs_and_no_steps():
    made = configuration("/d", ("op_debug_mode=4",))["common_dump_settings"]
    assert made["input_output"] == 1
    assert "iteration" not in made


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("iterations=0", "no such setting; one of op_debug_mode, dump_mode"),
        ("iteration", "no such setting"),
        ("op_debug_mode=1", "op_debug_mode=1 is not allowed; 0, 3, 4"),
        ("dump_mode=true", "is not allowed"),
        ("enable=1", "enable=1 is not allowed; true, false"),
        ("iteration=5-", "is not allowed; steps"),
        ("net_name=../x", "is not allowed"),
        ("support_device=0,x", "is not allowed; devices"),
        ("statistic_category=maximum saved_data=full", "is not allowed; max, min"),
        ("kernels=conv", "kernels are chosen with dump_mode=1; --set dump_mode=1"),
        ("dump_mode=1", "needs to know which operators"),
        ("op_debug_mode=3 input_output=1", "--set op_debug_mode=3: overflowing operators are saved with inputs"),
        ("op_debug_mode=4 iteration=3", "op_debug_mode=4 takes no steps"),
        ("op_debug_mode=3 saved_data=full", "statistics are saved with op_debug_mode=0"),
        ("statistic_category=max", "--set saved_data=statistic or saved_data=full"),
        ("op_debug_mode=3 stat_calc_mode=device", "overflows are counted on the host"),
        ("saved_data=full stat_calc_mode=device statistic_category=md5", "the device does not compute all of these"),
        ("overflow_number=3", "overflows are saved with op_debug_mode=3"),
        ("sample_num=3 sample_mode=0", "slices are saved with sample_mode=1"),
        ("save_kernel_args=true enable=false", "arguments are saved with enable=true"),
    ],
)
def test_what_mindspore_would_refuse_or_ignore(settings, said):
    with pytest.raises(UsageError) as error:
        configuration("/d", settings.split())
    assert said in str(error.value)
