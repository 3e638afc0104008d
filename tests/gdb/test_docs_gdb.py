"""The examples inside gdb that the docs show with their output: typed again; addresses and pids may differ."""

import pytest

from tests import docs_gdb
from tests.docs_examples import GDB, all_examples, gdb_scene, shows

pytestmark = pytest.mark.gdb


@pytest.mark.parametrize("name", GDB)
def test_an_example_is_what_gdb_prints(name, turn_gdb):
    answers = docs_gdb.printed(name, turn_gdb)
    shown = [example for example in all_examples() if gdb_scene(example) == name]
    assert {example.command for example in shown} == set(GDB[name][1])
    for example in shown:
        lines = answers[example.command]
        assert shows(docs_gdb.alike(example.output), docs_gdb.alike(lines)), "\n".join(
            ["python -m tests.docs_gdb writes what is printed today", *lines]
        )
