"""Tensors of engines in builds without debug information: what gdbext finds equals what the program says it holds."""

import json
import re

import pytest

from tests.conftest import gdbs
from tests.gdb.gdbrun import ROOT, gdb_batch
from tests.gdb.test_tensor_layouts import run_gdb
from tests.inferiors.tensor_build import program

pytestmark = pytest.mark.gdb
PROBE = ROOT / "tests" / "gdb" / "release_probe.py"

TENSOR, MAP = "fastertransformer::Tensor", "fastertransformer::TensorMap"
ENGINES = {
    50: "FasterTransformer 5.0",
    51: "FasterTransformer 5.1 to main",
    73: "TurboMind 0.0.14 to 0.7.3",
    80: "TurboMind 0.8.0 to main",
    13: "RTP-LLM 0.1.4 to 0.1.13",
    20: "RTP-LLM 2025-05 to 0.2.0",
    60: "Triton back ends",
}
BUILDS = {"-O2": ("-O2",), "-O2 stripped": ("-O2", "-rdynamic", "-s"), "-O0": ("-O0",)}
LOOKS = [
    *((engine, "-O2") for engine in ENGINES),
    (51, "-O2 stripped"),
    (80, "-O2 stripped"),
    (60, "-O2 stripped"),
    (20, "-O0"),
]


def built(engine, *flags):
    return program("release_frames.cc", *flags, f"-DENGINE={engine}")


def seen_and_said(gdb, path, tmp_path):
    """By stop: what each frame's list has, and what the program says that its functions hold."""
    truth, answers = tmp_path / "truth", tmp_path / "answers"
    printed = run_gdb(
        gdb, f"file {path}", "break stop_here", f"run {truth} > /dev/null", f"source {PROBE}",
        f"python frames('{answers}')",
    )  # fmt: skip
    assert answers.exists(), printed
    said = [json.loads(line) for line in truth.read_text().splitlines()]
    seen = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(said) == len(seen) >= 3, printed
    return list(zip(seen, said))


def key(row):
    return row["dtype"], tuple(row["shape"]), row["where"], row["address"]


def function_of(name):
    found = re.search(r"(\w+)(?:<float>)?\(", name) or re.search(r"(\w+)\Z", name)
    return found.group(1)


@pytest.mark.parametrize("engine, build", LOOKS)
def test_what_frames_hold(engine, build, tmp_path):
    """All of it in nearly every frame, and never what is not there."""
    path = built(engine, *BUILDS[build])
    whole = frames = 0
    lacking = []
    for seen, said in seen_and_said(gdbs()[engine % 2], path, tmp_path):
        known = {key(row) for row in said}
        for name, answer in seen.items():
            listed = {key(row) for row in answer.get("tensors", ())}
            assert listed <= known, (name, listed - known)
            assert all(ENGINES[engine] in row["kind"] for row in answer.get("tensors", ())), answer
            held = {key(row) for row in said if row["function"] == function_of(name)}
            frames += bool(held)
            whole += bool(held) and held <= listed
            lacking += [(name, held - listed, answer.get("problems"))] if held - listed else []
            assert "no debug information" in answer.get("place", answer.get("error", ""))
    assert frames >= 4
    assert whole >= 0.8 * frames, lacking


def asked(path, tmp_path, *commands, frame="frame function main"):
    """What the commands print at the first stop, with the extension loaded."""
    before = (f"file {path}", "break stop_here", f"run {tmp_path / 'truth'} > /dev/null", frame)
    return gdb_batch(gdbs()[0], *before, *commands)


def test_the_tensors_of_a_core_file(tmp_path):
    core = tmp_path / "core"
    commands = ("llm-tensor list", 'llm-tensor p arg2["hidden"] [0, :2]', f"generate-core-file {core}", "kill")
    path = built(51, "-O2")
    live = asked(path, tmp_path, *commands[:3], frame="frame 2")
    dead = gdb_batch(gdbs()[1], f"file {path}", f"core-file {core}", "frame 2", *commands[:2])
    table = re.compile(r"^(?:arg\d|\$|\*|0x)\S.*$", re.MULTILINE)
    assert len(table.findall(live.out)) >= 4
    assert table.findall(dead.out) == table.findall(live.out)
    assert "-> [2]" in dead.out


def test_parameters_by_registers_at_the_entry(tmp_path):
    path = built(51, "-O2")
    stop = "break *'fastertransformer::Attention<float>::softmax(fastertransformer::Tensor const&, float, int)'"
    answer = gdb_batch(
        gdbs()[0], f"file {path}", stop, f"run {tmp_path / 'truth'} > /dev/null", "llm-tensor list",
        f"llm-tensor info $rsi --as {TENSOR}", "llm-tensor info arg1", "llm-tensor info arg2", "up",
        'llm-tensor info arg1["output"]',
    )  # fmt: skip
    assert "parameter at the function's entry" in answer.out
    assert re.search(r"^\$rsi: fp32 \[2, 5\] on cpu", answer.out, re.MULTILINE)
    assert re.search(r"^arg1: fp32 \[2, 5\] on cpu", answer.out, re.MULTILINE)
    assert re.search(r'^arg1\["output"\]: fp16 \[2, 3, 4\] on pinned', answer.out, re.MULTILINE)
    assert "arg2: no such tensor of fastertransformer::Attention<float>::softmax" in answer.err


REFUSED = (
    (f"$sp --as {TENSOR}", "by the offsets of FasterTransformer 5.1 to main"),
    (f"0 --as {TENSOR}", "null pointer"),
    (f"16 --as {MAP}", "unreadable memory at 0x"),
    (f"&stop_here --as {MAP}", "no fastertransformer::TensorMap at 0x"),
    (
        "$sp --as turbomind::core::Tensor",
        "known of TurboMind 0.8.0 to main; the libraries here are of Faster",
    ),
    ("$sp --as no::Tensor", "no::Tensor"),
    ("arg1", "no such tensor of main"),
)


def test_what_is_no_tensor_is_refused_in_one_line(tmp_path):
    """The program is a fork that has kept the names and moved the members: nothing of it is shown by their table."""
    commands = [f"llm-tensor p {words}" for words, _ in REFUSED]
    answer = asked(built(99, "-O2"), tmp_path, *commands, "frame 1", "llm-tensor list")
    lines = answer.err.strip().splitlines()
    assert len(lines) == len(REFUSED), answer.err
    for (_, says), line in zip(REFUSED, lines):
        assert says in line
    assert re.search(
        r"^0 tensors in frame 1 .*, no debug information: by offsets of FasterTransformer 5.1", answer.out, re.M
    )


def test_a_program_without_an_engine(tmp_path):
    answer = asked(program("tensor_mindspore.cc", "-O1"), tmp_path, "llm-tensor list", frame="up")
    assert "no debug information in frame 1" in answer.err and "`frame N`" not in answer.err
    assert "TurboMind 0.8.0 to main" in answer.err


def test_an_engine_whose_offsets_nobody_knows(tmp_path):
    """TensorRT-LLM's classes, by a parameter and by a name: why not, and what to do."""
    path, interface = program("tensor_tensorrt_llm.cc", "-O2"), "tensorrt_llm::runtime::ITensor"
    commands = ("llm-tensor list", f"llm-tensor p $rdi --as {interface}", "llm-tensor p arg2", "llm-tensor p arg1")
    lines = asked(path, tmp_path, *commands, frame="up").err.strip().splitlines()
    says = f"no debug information about {interface}, and offsets are known of none of its releases"
    todo = "`gdbext doctor --how tensorrt-llm` says how to build with it; "
    todo += "give the address of its values, --dtype and --shape"
    assert lines[:3] == [
        f"frame 1 of thread 1, forward: {says}; {todo}",
        f"$rdi: {says}; {todo}",
        f"arg2: {says}; {todo}",
    ]
    assert lines[3].startswith("arg1: no such tensor of forward")
