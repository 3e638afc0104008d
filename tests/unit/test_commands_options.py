"""The rows that gdb's commands and the shell's are made of: they name their bodies and load none of them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.cli.command_line import parser
from gdbext.commands import all_commands, argument_parser, declared
from gdbext.commands.all_commands import COMMANDS, IN_GDB, IN_SHELL
from gdbext.commands.argument_parser import in_gdb, in_shell, takes
from gdbext.commands.argument_types import OTHERS
from gdbext.commands.completion_words import files_at, words_for
from gdbext.commands.declaration import GDB, SHELL, Command, loaded

FOLDER = Path(declared.__file__).parent
TOLD_WHILE_IT_RUNS = ("rank", "ranks", "pid", "file", "place", "command", "expression")
NOUNS = sorted(path.stem for path in FOLDER.glob("[a-z]*.py") if path.stem != "shared_arguments")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.gdb or command.gdbext)
def test_bodies_are_where_the_row_says(command):
    assert command.gdb or command.gdbext
    assert bool(command.gdb) == bool(command.body or command.prefix) and bool(command.gdbext) == bool(command.run)
    if command.body:
        assert callable(loaded(command.body))
    if command.gdbext:
        assert callable(loaded(command.run).run)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.gdb or command.gdbext)
def test_no_argument_is_declared_for_nobody(command):
    assert all(command.gdb for one in command.arguments if one.where == GDB)
    assert all(command.gdbext for one in command.arguments if one.where == SHELL and one.help)
    for arguments in (in_gdb(command) if command.gdb else (), in_shell(command) if command.gdbext else ()):
        names = [one.name for one in arguments]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("noun", NOUNS)
def test_a_file_of_rows_is_in_the_catalogue_and_loads_rows_alone(noun):
    assert noun in vars(all_commands) and vars(all_commands)[noun] in all_commands._NOUNS
    may = ("__future__", "typing", "gdbext.commands.argument_types", "gdbext.commands.declaration")
    for node in ast.walk(ast.parse((FOLDER / f"{noun}.py").read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.module in may or node.module.startswith("gdbext.commands.declared."), node.module
        assert not isinstance(node, ast.Import)


@pytest.mark.process
def test_declarations_load_no_body_and_nothing_slow():
    script = (
        "import sys; before = set(sys.modules); import gdbext.commands.all_commands, gdbext.commands.argument_parser\n"
    )
    script += "print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    ours = [name for name in names if name.startswith("gdbext.") and not name.startswith("gdbext.commands.declared")]
    assert sorted(ours) == [
        "gdbext.commands",
        "gdbext.commands.all_commands",
        "gdbext.commands.argument_parser",
        "gdbext.commands.argument_types",
        "gdbext.commands.declaration",
        "gdbext.knowledge",
        "gdbext.knowledge.spinning",
        "gdbext.model",
        "gdbext.model.errors",
        "gdbext.model.text",
        "gdbext.model.text.digits",
        "gdbext.model.text.nearest",
    ]
    assert not {"dataclasses", "inspect", "shutil", "pathlib", "json", "subprocess", "ctypes"} & set(names)


@pytest.mark.parametrize("name", IN_SHELL)
def test_the_shells_help_has_every_argument(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "400")  # nothing is wrapped
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    command = IN_SHELL[name]
    assert f"\n{command.summary}.\n" in text
    for one in in_shell(command):
        assert one.help in text
        assert (one.name in text) == bool(one.help) or not one.option
        assert not one.group or f"\n{one.group}:\n" in text
    assert ("--json" in text) == (command.answers or name == "watch")


def test_one_row_may_say_what_only_one_of_them_has():
    both = {command.gdbext: command.gdb for command in COMMANDS if command.gdb and command.gdbext}
    assert both == {
        "diagnose": "llm-nccl-diagnose",
        "stacks": "llm-stacks",
        "locks": "llm-locks",
        "doctor": "llm-doctor",
        "explain": "llm-explain",
        "comms": "llm-nccl-comms",
        "error": "llm-error",
    }
    diagnose = IN_SHELL["diagnose"]
    assert {one.name for one in in_gdb(diagnose)} - {one.name for one in in_shell(diagnose)} == {"pids", "--let-run"}
    assert {"inputs", "--bundle", "--samples"} <= {one.name for one in in_shell(diagnose)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [*dict.fromkeys(("diagnose", "stacks", "locks", "comms"), "files").items(), ("ranks", "pids"), ("pdb", "pids")]
    + [("doctor", "pids"), ("explain", "text"), ("error", "text")],
)
def test_what_may_stand_behind_json_in_the_shell(name, kind):
    assert takes(in_shell(IN_SHELL[name])) == kind


def test_prefixes_come_before_what_is_below_them():
    names = [command.gdb for command in IN_GDB]
    for at, name in enumerate(names):
        above = name.rpartition(" ")[0]
        assert not above or above in names[:at]


def test_a_command_of_the_shell_alone_is_one_row():
    row = Command("Say hello", gdbext="hello", run="gdbext.cli.gdbinit", answers=False)
    one = argument_parser.Parser(prog="gdbext hello")
    argument_parser.add_arguments(one, in_shell(row), SHELL)
    assert vars(one.parse_args([])) == {}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.gdb or command.gdbext)
def test_what_is_offered_is_taken(command):
    for one in (*command.arguments, *((command.tail,) if command.tail else ())):
        words = words_for(one)
        assert words or one.offers in ("", *TOLD_WHILE_IT_RUNS), one
        assert all(one.type(word) in (word, OTHERS.get(word)) for word in words)
        assert not one.choices or words == one.choices


def test_files_are_offered_as_they_were_typed(tmp_path, monkeypatch):
    (tmp_path / "core.folder").mkdir()
    for name in ("core.1", "core.2", ".core", "other"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert files_at("core") == ["core.1", "core.2", "core.folder/"]
    assert files_at(f"{tmp_path}/core.1") == [f"{tmp_path}/core.1"]
    assert files_at("./o") == ["./other"] and files_at("") == ["core.1", "core.2", "core.folder/", "other"]
    assert files_at("absent/") == files_at("\0") == []
