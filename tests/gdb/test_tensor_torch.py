"""The torch of the wheel, without debug information: gdb shows what torch itself says inside the process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gdbext.knowledge.dtypes import DTYPES, dtype_named
from tests.gdb.test_tensor_layouts import PROBE, ask, check, lines, run_gdb, started
from tests.inferiors.tensor_build import SOURCES, program

pytestmark = [pytest.mark.gdb, pytest.mark.torch]


EXECUTABLE = Path(sys.executable).resolve()


@pytest.fixture(scope="module")
def holder():
    """A Python process with tensors, and what it says about them."""
    command = [sys.executable, str(SOURCES / "torch_tensors.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        rows = []
        for line in process.stdout:
            if line == "ready\n":
                break
            rows.append(json.loads(line))
        yield process.pid, rows
        process.stdin.close()
        process.wait(300)


@pytest.fixture(scope="module")
def core(holder, tmp_path_factory):
    """A core file of the process with its anonymous memory alone: that is where tensors lie."""
    pid, _ = holder
    path = tmp_path_factory.mktemp("torch") / "core"
    Path(f"/proc/{pid}/coredump_filter").write_text("0x1")
    run_gdb("gdb", "set auto-solib-add off", f"attach {pid}", f"generate-core-file {path}", "detach")
    yield path
    path.unlink()


def asked(gdb, tmp_path, target, questions):
    """What the probe answers about a process (a number) or a core file (a path)."""
    path, answers = tmp_path / "questions", tmp_path / "answers"
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
    opened = [f"attach {target}"] if isinstance(target, int) else [f"file {EXECUTABLE}", f"core-file {target}"]
    before = ["set auto-solib-add off", *opened, f"source {PROBE}"]
    printed = run_gdb(gdb, *before, f"python probe('{path}', '{answers}')")
    assert answers.exists(), printed
    return lines(answers)[: len(questions)]


@pytest.mark.parametrize("how", ["impl", "object", "core"])
def test_values_are_those_of_tolist(turn_gdb, holder, how, tmp_path, request):
    target, rows = holder
    if how == "core":
        how, target = "object", request.getfixturevalue("core")
    rows = [row for row in rows if "impl" in row]
    kind = {"impl": "torch", "object": "pyobject"}[how]
    questions = [{"expression": hex(row[how]), "as": kind} for row in rows]
    compared = 0
    for row, answer in zip(rows, asked(turn_gdb, tmp_path, target, questions)):
        info = answer["info"]
        assert "torch 2." in info["kind"] and "by offsets" in info["kind"]
        if "float4" in row["dtype"]:
            assert info["shape"] == [*row["shape"][:-1], 2 * row["shape"][-1]]
            continue
        assert info["shape"] == row["shape"], row["name"]
        contiguous = row["name"] not in ("transposed", "sliced", "column", "expanded")
        assert info.get("strides") == (None if contiguous else row["strides"]), row["name"]
        assert info.get("offset", 0) == row["offset"]
        assert not info.get("problems"), row["name"]
        if row["name"] == "meta":
            assert info["unreadable"] == "a meta tensor has no values"
            continue
        dtype = dtype_named(row["dtype"])
        assert info["dtype"] in DTYPES and (dtype is None or info["dtype"].split("_byte")[0] == dtype.name), row
        if row["values"] is None or row["name"] == "large":
            continue
        assert [str(one) for one in answer["elements"]] == [str(one) for one in expected(row)], row["name"]
        compared += 1
    assert compared > 30


def expected(row):
    """tolist() as the probe's answer has it."""
    if "complex" in row["dtype"]:
        return [complex(*pair) for pair in row["values"]]
    return [float(value) if isinstance(value, str) else value for value in row["values"]]


def test_the_undefined_tensor(turn_gdb, holder, tmp_path):
    pid, _ = holder
    commands = ["set auto-solib-add off", f"attach {pid}", "sharedlibrary libc10.so", f"source {PROBE}"]
    show = "python print(described(\"(long)&'c10::UndefinedTensorImpl::_singleton'\", type_name='torch'))"
    printed = run_gdb(turn_gdb, *commands, show, "detach")
    assert "undefined tensor" in printed


@pytest.fixture(scope="module")
def with_torch():
    """A program of the wheel's torch, with debug information of its own (15 s to compile)."""
    folder = Path(torch.__file__).parent
    headers = [f"-isystem{folder / 'include'}", f"-isystem{folder / 'include/torch/csrc/api/include'}"]
    libraries = [f"-L{folder / 'lib'}", "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{folder / 'lib'}"]
    return program("torch_program.cc", "-g", "-O0", *headers, libraries=libraries, compiler=("g++", "-std=c++20"))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["live", "core"])
def test_a_program_with_debug_information(any_gdb, with_torch, how, tmp_path):
    truth, core = tmp_path / "truth", tmp_path / "core"
    before = ["set auto-solib-add off", *started(with_torch, truth)]
    if how == "core":
        run_gdb("gdb", *before, f"generate-core-file {core}")
        before = ["set auto-solib-add off", f"file {with_torch}", f"core-file {core}", "up"]
    else:
        subprocess.run([with_torch, truth], check=True, stdin=subprocess.DEVNULL)
    rows = lines(truth)
    answers = ask(any_gdb, tmp_path, before, rows)
    assert len(rows) > 12
    for row in rows:
        if row["expression"] == "undefined":
            continue  # its symbol is in libc10, which is not loaded here
        check(row, answers[row["expression"]])
