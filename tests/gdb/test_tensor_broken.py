"""Tensors that are broken, each in its way: a line that says how, the next command works, the JSON is JSON."""

import json
import re
import resource
import signal

import pytest

from tests.gdb.test_tensor_commands import INIT
from tests.gdb.test_tensor_layouts import run_gdb
from tests.inferiors.tensor_build import program

pytestmark = pytest.mark.gdb

ERROR = ""  # a line on the error output, and none on the other
SAYS = {
    "p unmapped": "no memory is mapped there",
    "stats unmapped": ERROR,
    "p null_data": "address unknown: null pointer",
    "stats null_data": ERROR,
    "p zero": "zero: fp32 [0, 3] on cpu at",
    "p scalar": "rank 0 means no elements here",
    "p astronomic": "not initialised or overwritten",
    "stats astronomic": ERROR,
    "p wild": "dtype unknown: 77 is not a value of its type here",
    "p backwards": "end lies before its begin",
    "p endless": "137,438,953,472 dimensions: not a tensor",
    "p uneven": "shape unknown: a corrupt vector",
    "p nowhere": "unreadable memory at 0x10",
    "p freed": "freed: ",
    "p circle": "null pointer",
    "p negative": "a dimension is negative: -3",
    "p strange": ERROR,
    "p &strange": ERROR,
    "p holed": "12 of 18 elements read, the others are unreadable",
    "p holed [1, :2]": "0 of 2 elements read",
    "stats holed": "1,024 of 3,072 elements are unreadable",
    "hash holed": "so there is no digest",
    "p cut": "6 of 12 elements read",
    "p holed [3]": ERROR,
    "list": "tensors in frame 2",
}
ONE_LINE = ("unmapped", "null_data", "astronomic", "wild", "backwards", "endless", "uneven", "nowhere", "freed")
ERRORS = (
    "null_data: no address to read from (null pointer)",
    "astronomic: shape unknown (out of any range: the object is not initialised or overwritten); say --dtype, --shape",
    "no layout of a tensor is known for the type Strange; give its address with --dtype, --shape",
    "&strange is an address of something unknown; describe its contents: --dtype and --shape",
    "index 3 is out of bounds for dimension 0 with size 3",
)
JSON = ("special --dtype fp32 --shape 4", "complex --dtype complex64 --shape 2", "holed", "wild", "null_data")
MOST_LINES = 12


def test_each_says_how_and_gdb_goes_on(turn_gdb, tmp_path):
    before = [f"source {INIT}", f"file {program('tensor_broken.cc', '-g', '-O2')}", "break stop_here", "run", "up"]
    asked = [f"{one}" for command in SAYS for one in (f"echo \\n<{command}>\\n", f"llm-tensor {command}")]
    documents = [f"llm-tensor {verb} {one} --json" for one in JSON for verb in ("p", "info")]
    printed = run_gdb(
        turn_gdb,
        *before,
        *("echo \\n<lost>\\n", "llm-tensor p lost", "llm-tensor list", "up"),
        *asked,
        *("echo \\n<json>\\n", *documents, "echo \\n<end>\\n", "info locals", "p 6 * 7"),
    )
    parts = {part.split(">\n")[0]: part.split(">\n", 1)[1] for part in printed.split("\n<")[1:]}
    assert "lost: optimized out (fastertransformer::Tensor)" in parts["lost"]
    for command, says in SAYS.items():
        assert says in parts[command] and bool(says) == bool(parts[command].strip()), (command, parts[command])
        if command != "list" and not command.startswith("stats holed"):
            assert len(parts[command].strip().splitlines()) <= MOST_LINES, parts[command]
    assert [one for one in ONE_LINE if len(parts[f"p {one}"].strip().splitlines()) != 1] == []
    assert [words for words in ERRORS if f"\n{words}" not in parts["end"]] == []
    assert re.search("^unmapped: at 0x.*: no memory is mapped there$", printed, re.M)
    documents = [json.loads(line, parse_constant=pytest.fail) for line in parts["json"].splitlines() if line]
    assert len(documents) == 2 * len(JSON)
    assert documents[0]["elements"] == ["NaN", "Infinity", "-Infinity", 1.5]
    assert documents[2]["elements"] == [{"re": 1.0, "im": 2.0}, {"re": 0.0, "im": "Infinity"}]
    assert documents[6]["missing"]["dtype"] == "77 is not a value of its type here"
    assert "Python Exception" not in printed and " = 42" in printed


def test_a_file_that_cannot_grow(turn_gdb, tmp_path):
    """The limit on the size of files stands for a full disk: nothing is left behind, and gdb goes on."""
    saved = tmp_path / "holed.npy"
    before = [f"source {INIT}", f"file {program('tensor_broken.cc', '-g', '-O2')}", "break stop_here", "run", "up 2"]
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    before_signal = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        printed = run_gdb(turn_gdb, *before, f"llm-tensor save zeros {saved}", "p 6 * 7")
    finally:
        signal.signal(signal.SIGXFSZ, before_signal)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    assert f"cannot write {saved}: File too large" in printed
    assert " = 42" in printed
    assert list(tmp_path.iterdir()) == []
