"""What each engine's tensor is said to be by gdb equals what the program says that it holds."""

import json
import os
import shutil
import subprocess
import sysconfig
import zlib
from pathlib import Path

import pytest

from tests.conftest import gdbs
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
    "tensorrt-llm, allocator as member": ("tensor_tensorrt_llm.cc", "-DERA=1"),
    "tensorrt-llm, allocator as base": ("tensor_tensorrt_llm.cc", "-DERA=2"),
    "tensorrt-llm, inline namespace": ("tensor_tensorrt_llm.cc", "-DERA=3"),
    "torch 2.1": ("tensor_torch.cc", "-DRELEASE=201"),
    "torch 2.4": ("tensor_torch.cc", "-DRELEASE=204"),
    "torch 2.6": ("tensor_torch.cc", "-DRELEASE=206"),
    "torch 2.13": ("tensor_torch.cc", "-DRELEASE=213"),
    "ggml": ("tensor_ggml.cc",),
    "mindspore": ("tensor_mindspore.cc",),
}


def run_gdb(gdb, *commands):
    """Run gdb on commands; what it printed."""
    words = [gdb, "-nx", "-nh", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"]
    for command in ["set width 0", "set confirm off", *commands]:
        words += ["-ex", command]
    environ = {**os.environ, "GDBEXT_TEST_ROOT": str(ROOT), "GDBEXT_TEST_SITE": sysconfig.get_path("purelib")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, env=environ)
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


@pytest.mark.parametrize("mimic", MIMICS)
def test_gdb_says_what_the_program_holds(mimic, tmp_path):
    """Both gdbs, and -O0 with a core file or -O2 in turns; GDBEXT_EVERY_GDB=1: both builds one after the other."""
    source, *flags = MIMICS[mimic]
    turn = zlib.crc32(mimic.encode()) % 2
    levels = ("-O0", "-O2") if os.environ.get("GDBEXT_EVERY_GDB") else (("-O0", "-O2")[turn],)
    built = {level: program(source, "-g", level, *flags) for level in levels}
    expected = {path: truth_of(path, tmp_path / path.name) for path in built.values()}
    live = {level: started(path, tmp_path / path.name) for level, path in built.items()}
    core = tmp_path / "core"  # of gdb 13, which writes ranges without access as readable zeros
    distribution, newest = gdbs()
    plain = [(built["-O0"], live["-O0"], f"generate-core-file {core}")] if "-O0" in built else []
    of_core = [(built["-O0"], [f"file {built['-O0']}", f"core-file {core}", "up"])] if plain else []
    optimised = [(built["-O2"], live["-O2"], "kill")] if "-O2" in built else []
    looks = ((distribution, *plain, *optimised), (newest, *optimised, *of_core))
    for gdb, *parts in looks:
        commands, answers = [f"source {PROBE}"], tmp_path / "answers"
        for number, (path, before, *after) in enumerate(parts):
            questions = tmp_path / f"questions{number}"
            questions.write_text("".join(json.dumps(row) + "\n" for row in expected[path]))
            commands += [*before, f"python probe('{questions}', '{answers}{number}')", *after]
        printed = run_gdb(gdb, *commands)
        for number, (path, *_) in enumerate(parts):
            written = Path(f"{answers}{number}")
            assert written.exists(), printed
            found = {answer["expression"]: answer for answer in lines(written)}
            written.unlink()
            for row in expected[path]:
                check(row, found[row["expression"]])


def truth_of(path, truth):
    """What a program says of its own tensors."""
    subprocess.run([path, truth], check=True, stdin=subprocess.DEVNULL)
    rows = lines(truth)
    assert len(rows) > 3
    return rows


NAMELESS = ("plain", "turned", "slice", "scalar", "seven", "empty", "expanded", "meta", "remote", "symbolic", "beyond")
"""What stands in the torch mimic's table of addresses, in its order."""
LAST_RELEASE = {"201": "2.1.2", "204": "2.4.1+cu121", "206": "2.12.1", "213": "2.15.0"}


@pytest.mark.parametrize("known", [True, False], ids=["release known", "release unknown"])
@pytest.mark.parametrize("release", LAST_RELEASE)
def test_torch_without_debug_information(release, known, tmp_path):
    """The program stands where torch's library does, so that gdbext finds the release beside it. One gdb each way."""
    library = tmp_path / "torch" / "lib" / "libc10.so"
    library.parent.mkdir(parents=True)
    shutil.copy(program("tensor_torch.cc", "-O1", "-DNAMELESS", f"-DRELEASE={release}"), library)
    if known:
        (tmp_path / "torch" / "version.py").write_text(f"__version__ = '{LAST_RELEASE[release]}'\n")
    truth = tmp_path / "truth"
    subprocess.run([library, truth], check=True, stdin=subprocess.DEVNULL)
    rows = [row for row in lines(truth) if row["expression"] in NAMELESS]
    for row in rows:
        row["expression"] = f"((unsigned long*)&impls)[{NAMELESS.index(row['expression'])}]"
        row["as"] = "torch"
    answers = ask(gdbs()[known], tmp_path, started(library, truth), rows)
    assert len(rows) == len(NAMELESS)
    for row in rows:
        if not known and row.get("says") == "symbolic":
            continue  # a shape that is no numbers cannot confirm the offsets
        check(row, answers[row["expression"]])
        said = answers[row["expression"]]["info"]["kind"]
        assert (f"torch {LAST_RELEASE[release]} by offsets" if known else "release of torch unknown") in said


def test_nothing_that_looks_like_a_tensor(turn_gdb, tmp_path):
    path = program("tensor_torch.cc", "-O1", "-DNAMELESS", "-DRELEASE=213")
    truth = tmp_path / "truth"
    rows = [{"expression": word, "as": "torch"} for word in ("&impls", "0", "16", "-1", "$sp", "&stop_here")]
    rows += [{"expression": word} for word in ("$sp", "nonsense", "1 +", "impls", "&impls")]
    rows += [{"expression": "&impls", "as": "pyobject"}, {"expression": "&impls", "as": "no::such"}]
    questions, answers = tmp_path / "questions", tmp_path / "answers"
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = run_gdb(turn_gdb, *started(path, truth), f"source {PROBE}", f"python probe('{questions}', '{answers}')")
    errors = [answer.get("error", "") for answer in lines(answers)[: len(rows)]]
    assert all(errors), printed
    assert not [error for error in errors if "\n" in error]
