"""The tiers of the tests: what is pure starts no process, and nobody sleeps where an event can be waited for."""

import ast
import subprocess
import sys

import pytest

from tests import conftest

TESTS = conftest.HERE
SOURCES = sorted([*TESTS.glob("unit/*.py"), *TESTS.glob("gdb/*.py"), TESTS / "tmux.py", TESTS / "front_end.py"])


@pytest.mark.process
def test_a_pure_test_that_starts_a_process_fails():
    subprocess.run([sys.executable, "-c", ""], check=True)
    with pytest.raises(pytest.fail.Exception, match="mark it `process`"):
        conftest._none_was_started(_Pure)


class _Pure:
    @staticmethod
    def get_closest_marker(name):
        return name == "pure"


def sleeps(path):
    """Lines of statements that only sleep; a stand-in that is slow may."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.While):
            for inner in node.body:
                if isinstance(inner, ast.Expr) and ast.unparse(inner).startswith("time.sleep("):
                    yield f"{path.name}:{inner.lineno}"


def test_no_loop_of_a_test_sleeps():
    """`tests/polling.py` is the one that does."""
    assert [line for path in SOURCES for line in sleeps(path)] == []
    assert len(SOURCES) > 200
