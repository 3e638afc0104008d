"""What gdb loads when it sources the extension, and with the first command. Counted: times are the machine's."""

import os

import pytest

from tests.gdb.gdbrun import INIT, gdb_batch

pytestmark = pytest.mark.gdb
BEFORE = "python import sys; before = set(sys.modules)"
LOADED = "python print('loaded', *sorted(set(sys.modules) - before))"
MOST = 75
"""Modules, Python's own among them; all of the extension are some 580."""

HERE = {
    *(
        "commands",
        "commands.argument_parser",
        "commands.argument_types",
        "commands.all_commands",
        "commands.declaration",
    ),
    *("inside_gdb", "inside_gdb.base", "inside_gdb.base.alarm", "inside_gdb.base.compat", "inside_gdb.base.settings"),
    *("inside_gdb.typed_commands", "inside_gdb.typed_commands.command_registration"),
    *("inside_gdb.typed_commands.rank_functions", "inside_gdb.session", "inside_gdb.session.one_session"),
    *("knowledge", "knowledge.spinning"),
    *("model", "model.errors", "model.text", "model.text.digits", "model.text.nearest"),
    *("pretty_printers", "pretty_printers.by_type"),
}


def loaded(answer):
    """The lists of modules that were printed, one after the other."""
    return [set(line.split()[1:]) for line in answer.out.splitlines() if line.startswith("loaded")]


def test_source_loads_the_rows_and_no_body(any_gdb):
    (names,) = loaded(gdb_batch(any_gdb, BEFORE, f"source {INIT}", LOADED, source=None))
    assert len(names) <= MOST, sorted(names)
    ours = {name.partition(".")[2] for name in names if name.startswith("gdbext.")}
    assert {name for name in ours if not name.startswith("commands.declared")} == HERE
    assert not {"dataclasses", "inspect", "shutil", "pathlib", "json", "subprocess"} & names


def test_a_command_loads_its_body_and_an_attach_all_of_them(turn_gdb):
    load = (
        "python from gdbext.inside_gdb.typed_commands import execution; from gdbext.commands.all_commands import IN_GDB"
    )
    attach = "python execution.load_for(next(one for one in IN_GDB if one.gdb == 'llm-attach-all'))"
    first, every = loaded(
        gdb_batch(turn_gdb, BEFORE, f"source {INIT}", "llm-error 700", LOADED, load, attach, LOADED, source=None)
    )
    assert "gdbext.commands.error" in first and "gdbext.inside_gdb.session.gdb_session" in first
    assert not {"gdbext.commands.tensor", "gdbext.commands.explain", "gdbext.commands.diagnose"} & first
    bodies = {"gdbext.commands.tensor", "gdbext.commands.explain", "gdbext.commands.diagnose", "gdbext.commands.locks"}
    assert bodies <= every


def test_functions_and_settings_are_there_before_any_command(any_gdb):
    answer = gdb_batch(
        any_gdb, BEFORE, f"source {INIT}", "print $_llm_rank()", "show llm frames", "set llm frames 7", LOADED,
        source=None,
    )  # fmt: skip
    assert "$1 = -1" in answer.out and "llm frames: 256 (" in answer.out and answer.err == ""
    assert "gdbext.inside_gdb.session.gdb_session" not in loaded(answer)[0]


def test_printing_loads_the_reader_of_a_type_with_its_first_value(turn_gdb):
    number, group = loaded(
        gdb_batch(turn_gdb, BEFORE, f"source {INIT}", "print 1", LOADED, "info pretty-printer", LOADED, source=None)
    )
    assert not {"gdbext.pretty_printers.known_types", "gdbext.pretty_printers.tensor"} & number
    assert "gdbext.pretty_printers.known_types" in group and "gdbext.pretty_printers.tensor" not in group


INTERRUPTED = """
import os, signal, sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "gdbext.capture.memory.maps":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupted())
"""
FAILING = """
import sys
class Failing:
    def find_spec(self, name, *_):
        if name == "gdbext.capture.memory.maps":
            sys.meta_path.remove(self)
            raise OSError(24, "Too many open files")
sys.meta_path.insert(0, Failing())
"""


@pytest.mark.parametrize("code, said", [(INTERRUPTED, "Quit"), (FAILING, "llm-error could not be loaded")])
def test_a_load_that_ends_early_is_one_line_and_the_next_command_works(any_gdb, tmp_path, code, said):
    script = tmp_path / "early.py"
    script.write_text(code)
    answer = gdb_batch(any_gdb, f"source {script}", "llm-error 700", "llm-error 999", env={**os.environ, "LC_ALL": "C"})
    (line,) = answer.err.splitlines()
    assert said in line
    assert "cudaErrorUnknown" in answer.out and "cudaErrorIllegalAddress" not in answer.out
