"""The ggml of somebody else's build in a forward pass: gdb shows the weights that gguf itself reads, by name.

libggml comes with the pywhispercpp package, without debug information; the model is written by the gguf package.
"""

import importlib.util
import subprocess
from pathlib import Path

import gguf
import numpy as np
import pytest

from tests.gdb.test_tensor_commands import answers
from tests.gdb.test_tensor_layouts import ask, check, lines, run_gdb
from tests.inferiors.tensor_build import program

pytestmark = pytest.mark.gdb

PLAIN = {"F32": "fp32", "F16": "fp16", "BF16": "bf16"}
BLOCKS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4", "Q2_K", "IQ4_NL")
OTHERS = ("IQ2_S", "IQ1_S")
"""Their values are not decoded, and gdbext says what they are."""
ROWS, WIDTH = 2, 256


def weights():
    """What stands in the model, by the name of the type: its bytes, and the values that gguf has for them."""
    numbers = np.random.default_rng(3)
    found = {}
    for kind in (*PLAIN, *BLOCKS, *OTHERS):
        values = numbers.uniform(-2, 2, (ROWS, WIDTH)).astype(np.float32)
        row = gguf.GGMLQuantizationType[kind]
        if kind in ("IQ4_NL", *OTHERS) or kind.endswith("_K"):
            # gguf reads these and does not write them: any bytes, a small scale
            size = gguf.GGML_QUANT_SIZES[row]
            data = numbers.integers(0, 60, (ROWS, WIDTH // size[0] * size[1]), dtype=np.uint8)
        else:
            data = gguf.quantize(values, row)
        found[kind] = data, gguf.dequantize(data, row)
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("ggml") / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    held = weights()
    for kind, (data, _) in held.items():
        plain = np.float16 if kind == "F16" else np.float32 if kind == "F32" else None
        kwargs = {} if plain else {"raw_dtype": gguf.GGMLQuantizationType[kind]}
        writer.add_tensor(f"blk.0.{kind}.weight", data, **kwargs)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, held


@pytest.fixture(scope="module")
def forward():
    """The program on the wheel's libraries."""
    package = Path(importlib.util.find_spec("pywhispercpp").origin)
    folder = package.parent.with_name("pywhispercpp.libs") if package.name == "__init__.py" else package.parent
    libraries = [str(next(folder.glob(f"{name}-*.so*"))) for name in ("libggml-base", "libggml-cpu")]
    return program("ggml_program.cc", "-g", "-O0", libraries=(*libraries, f"-Wl,-rpath,{folder}"))


def questions(held):
    """The name of each weight in the graph, and what gguf says it holds."""
    for kind, (_, values) in held.items():
        row = {"expression": f'graph["blk.0.{kind}.weight"]', "shape": [ROWS, WIDTH], "where": "cpu"}
        if kind in OTHERS:
            yield {"expression": row["expression"], "says": "gdbext does not dequantise"}
        else:
            yield {**row, "dtype": PLAIN.get(kind, kind.lower()), "values": values.reshape(-1).tolist()}


@pytest.mark.parametrize("how", ["live", "core"])
def test_weights_by_name_are_those_of_gguf(turn_gdb, forward, model, how, tmp_path):
    path, held = model
    truth, core = tmp_path / "truth", tmp_path / "core"
    before = [f"file {forward}", "break stop_here", f"run {truth} {path} > /dev/null", "up"]
    if how == "core":
        run_gdb("gdb", *before, f"generate-core-file {core}")
        before = [f"file {forward}", f"core-file {core}", "up"]
    else:
        subprocess.run([forward, truth, path], check=True)
    rows = [*(lines(truth) if truth.exists() else ()), *questions(held)]
    found = ask(turn_gdb, tmp_path, before, rows)
    assert len(rows) == 4 + len(held)
    for row in rows:
        check(row, found[row["expression"]])


def test_in_a_library_without_debug_information(turn_gdb, forward, model, tmp_path):
    """At the entry of ggml_graph_compute there are registers and nothing else."""
    path, held = model
    before = [f"file {forward}", "set breakpoint pending on", "break ggml_graph_compute"]
    before += [f"run {tmp_path}/truth {path} > /dev/null"]
    graph, weight, corner, missing, listed, wrong = answers(
        turn_gdb,
        tmp_path,
        before,
        "p $rdi --as ggml_cgraph",
        'p $rdi["blk.0.Q8_0.weight"] --as ggml_cgraph',
        'p $rdi["blk.0.Q4_K.weight"] [1, :4] --as ggml_cgraph',
        'p $rdi["blk.9.Q4_K.weight"] --as ggml_cgraph',
        "stats $rdi --as ggml_cgraph",
        "p $rip --as ggml_cgraph",
    )
    names = {entry["name"] for entry in graph["entries"]}
    assert names >= {*(f"blk.0.{kind}.weight" for kind in held), "input", "sum", "result", "node_0"}
    assert graph["total"] == len(graph["entries"]) == 3 * len(held) + 2
    assert weight["info"]["kind"] == "ggml_tensor"
    assert corner["elements"] == held["Q4_K"][1][1, :4].tolist()
    assert corner["info"].get("notes") is None  # its name stands before it
    assert "has no tensor" in missing["error"]
    assert "choose one of them" in listed["error"]
    assert "cannot be read" in wrong["problems"][0]


def test_what_a_frame_of_the_library_leads_to(turn_gdb, forward, model, tmp_path):
    """Found without a name: each of them is a tensor of the graph or of the program that has made it."""
    before = [f"file {forward}", "set breakpoint pending on", "break ggml_graph_compute"]
    before += [f"run {tmp_path}/truth {model[0]} > /dev/null", "set $graph = $rdi", "up"]
    graph, listed = answers(turn_gdb, tmp_path, before, "p $graph --as ggml_cgraph", "list")
    assert "no debug information: by offsets of ggml 0.13 to 0.25" in listed["place"]
    known = {(entry["dtype"], tuple(entry["shape"]), entry["address"]) for entry in graph["entries"]}
    found = {(entry["dtype"], tuple(entry["shape"]), entry["address"]) for entry in listed["tensors"]}
    assert found and found <= known
