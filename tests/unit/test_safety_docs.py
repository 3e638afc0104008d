"""docs/safety.md: each promise names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "safety.md").read_text("utf-8")
PROMISES = PAGE.split("\n## How gdbext keeps these promises\n")[0]  # later sections have other tables
ROWS = [line.strip("| ").split(" | ") for line in PROMISES.splitlines() if line.startswith("| ")]
ROWS = [row for row in ROWS if row[0] != "promise"]
NAMED = re.compile(r"`((?:unit|gdb)/test_\w+\.py)::(test_\w+)`")


def test_the_table_is_read():
    assert len(ROWS) > 15
    assert all(len(row) == 2 for row in ROWS)


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[row[0][:50] for row in ROWS])
def test_each_promise_names_tests_that_exist(promise, tests):
    named = NAMED.findall(tests)
    assert named and NAMED.sub("", tests).strip(" ,") == "", f"{promise}: only tests, each as `folder/file.py::test`"
    for file, function in named:
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{function}"
