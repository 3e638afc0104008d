"""The rows of timeouts: where each is from, and the numbers that the installed torch and NCCL hold."""

import importlib.util
import re
from pathlib import Path

import pytest

from gdbext.knowledge.causes.timeouts import TIMEOUTS

NAMES = [row.what for row in TIMEOUTS]


@pytest.mark.parametrize("row", TIMEOUTS, ids=NAMES)
def test_a_source_names_a_release_or_says_that_it_was_not_checked(row):
    assert re.search(r"\d+\.\d+", row.source) or "not checked" in row.source
    assert row.seconds is not None or row.variable


@pytest.mark.torch
@pytest.mark.parametrize("header, name", [("ProcessGroupNCCL", "NCCLDefault"), ("Backend", "BackendDefault")])
def test_torch_has_these_defaults(header, name):
    folder = Path(importlib.util.find_spec("torch").origin).parent  # not imported: that takes seconds
    text = (folder / "include/torch/csrc/distributed/c10d" / f"{header}.hpp").read_text()
    factors = re.search(rf"k\w*{name}Timeout\s*=\s*std::chrono::milliseconds\(([\d* ]+)\)", text)[1].split(" * ")
    minutes, *rest = map(int, factors)
    assert rest == [60, 1000]
    assert [row.seconds for row in TIMEOUTS if f"{header}.hpp" in row.source] == [minutes * 60]
