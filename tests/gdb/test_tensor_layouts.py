"""What each engine's tensor is said to be by gdb equals what the program says that it holds."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.inferiors.tensor_build import program

pytestmark = pytest.mark.gdb

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("tensor_probe.py")

MIMICS = {
    "fastertransformer 5.0": ("tensor_fastertransformer.cc", "-DRELEASE=50"),
    "fastertransformer 5.1": ("tensor_fastertransformer.cc", "-DRELEASE=51"),
    "fastertransformer 5.2": ("tensor_fastertransformer.cc", "-DRELEASE=52"),
    "fastertransformer 5.3": ("tensor_fastertransformer.cc", "-DRELEASE=53"),
    "rtp-llm 0.1.3": ("tensor_rtp_llm.cc", "-DERA=1"),
    "rtp-llm 2024-02": ("tensor_rtp_llm.cc", "-DERA=2"),
    "rtp-llm 2024-06": ("tensor_rtp_llm.cc", "-DERA=3"),
    "rtp-llm 0.2.0": ("tensor_rtp_llm.cc", "-DERA=4"),
    "turbomind 0.7.3": ("tensor_turbomind.cc", "-DERA=1"),
    "turbomind 0.8.0": ("tensor_turbomind.cc", "-DERA=2"),
}


def run_gdb(gdb, *commands):
    """Run gdb on commands; what it printed."""
    words = [gdb, "-nx", "-nh", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"]
    for command in ["set width 0", "set confirm off", *commands]:
        words += ["-ex", command]
    environ = {**os.environ, "GDBEXT_TEST_ROOT": str(ROOT), "GDBEXT_TEST_SITE": sysconfig.get_path("purelib")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, env=environ)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def started(path, truth):
    """Commands that run a program up to where its tensors are in the selected frame."""
    return [f"file {path}", "break stop_here", f"run {truth} > /dev/null", "up"]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def ask(gdb, tmp_path, before, rows):
    """The answers of the probe to `rows`, by expression."""
    questions, answers = tmp_path / "questions", tmp_path / "answers"
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = run_gdb(gdb, *before, f"source {PROBE}", f"python probe('{questions}', '{answers}')")
    assert answers.exists(), printed
    return {answer["expression"]: answer for answer in lines(answers)}


def missing(value):
    return isinstance(value, dict) and "missing" in value


def check(row, answer):
    """One line of truth against one answer."""
    info = answer.get("info", {})
    if "says" in row:
        assert row["says"] in json.dumps(answer), answer
    elif "keys" in row:
        assert answer["type"] == "TensorMapInfo", answer
        assert sorted(entry["name"] for entry in info["entries"]) == sorted(row["keys"])
    else:
        assert "error" not in answer, answer
        assert info["dtype"] == row["dtype"], info
        assert info["shape"] == row["shape"], info
        assert info["where"] == row["where"], info
        if "strides" in row:
            assert info.get("strides") == row["strides"], info
        assert [float(value) for value in answer["elements"]] == row["values"]
        assert not info.get("problems"), info


@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
@pytest.mark.parametrize("mimic", MIMICS)
def test_gdb_says_what_the_program_holds(any_gdb, mimic, optimise, tmp_path):
    source, *flags = MIMICS[mimic]
    path = program(source, "-g", optimise, *flags)
    truth = tmp_path / "truth"
    subprocess.run([path, truth], check=True, stdin=subprocess.DEVNULL)
    rows = lines(truth)
    answers = ask(any_gdb, tmp_path, started(path, truth), rows)
    assert len(rows) > 3
    for row in rows:
        check(row, answers[row["expression"]])
