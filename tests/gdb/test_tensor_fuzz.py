"""Tensor objects overwritten with random bytes: an answer each time, never an exception, never a hang."""

import json
import os

import pytest

from tests.conftest import gdbs
from tests.gdb.test_tensor_layouts import MIMICS, PROBE, run_gdb, started
from tests.inferiors.tensor_build import program

pytestmark = [pytest.mark.gdb, pytest.mark.slow]

ROUNDS = int(os.environ.get("GDBEXT_FUZZ_ROUNDS", "20"))  # for each object of a program; a whole campaign has 1000


@pytest.mark.parametrize("mimic", MIMICS)
def test_any_bytes_have_an_answer(mimic, tmp_path):
    """Both gdbs by turns: what is read is decided by bytes, not by gdb."""
    gdb = gdbs()[[*MIMICS].index(mimic) % 2]
    source, *flags = MIMICS[mimic]
    path = program(source, "-g", "-O0", *flags)
    answers = tmp_path / "answers"
    fuzz = f"python fuzz({ROUNDS}, {mimic!r}, '{answers}')"
    printed = run_gdb(gdb, *started(path, tmp_path / "truth"), f"source {PROBE}", fuzz)
    assert answers.exists(), printed
    done = json.loads(answers.read_text())
    assert done["rounds"] == ROUNDS * done["objects"] > 0
