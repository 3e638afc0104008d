"""Command lines, and the help that is made of the same declarations."""

import re

import pytest

from gdbext.commands.catalogue import COMMANDS
from gdbext.commands.parsing import HelpWanted, help_text, option_names, parse
from gdbext.model.errors import UsageError

BY_NAME = {command.name: command for command in COMMANDS}
each = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


@each
def test_help_is_the_same_everywhere(command):
    with pytest.raises(HelpWanted) as shown:
        parse(command, "-h")
    text = help_text(command)
    first = text.splitlines()[0]
    assert first == f"{command.summary}."
    assert len(first) <= 80 and not command.summary.endswith(".")
    for name in option_names(command):
        assert name in text and name in str(shown.value)
    assert "usage: " + command.name in text
    assert all(len(line) <= 80 for line in text.splitlines())


@each
def test_every_argument_is_explained_and_json_is_there(command):
    for argument in command.arguments:
        assert argument.help
    assert "--json" in option_names(command)


@each
def test_a_wrong_option_is_one_line(command):
    line = "--no-such-option 1 2" if command.tail is None else "--no-such-option 1 bt"
    with pytest.raises(UsageError) as refused:
        parse(command, line)
    assert "\n" not in str(refused.value)
    assert f"{command.name} -h shows how" in str(refused.value)


def test_names_are_ours_and_unique():
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"llm-[a-z-]+( [a-z]+)?", name) for name in names)
    prefixes = {command.name for command in COMMANDS if command.prefix}
    assert {name.split()[0] for name in names if " " in name} <= prefixes


def test_selectors():
    args = parse(BY_NAME["llm-attach-all"], "12 34 --name 'VLLM::Worker .*' --pgid 5 --engine vllm --all")
    assert (args.pids, args.name, args.pgid, args.engine, args.all) == ([12, 34], "VLLM::Worker .*", 5, "vllm", True)
    assert parse(BY_NAME["llm-attach-all"], "").pids == []


@pytest.mark.parametrize("line", ["0", "-5", "abc", "1.5", "--pgid x", "'unfinished"])
def test_what_is_no_process_id_is_refused(line):
    with pytest.raises(UsageError):
        parse(BY_NAME["llm-attach-all"], line)


def test_json_with_and_without_a_file():
    command = BY_NAME["llm-ranks"]
    assert parse(command, "").json is None
    assert parse(command, "--json").json == "-"
    assert parse(command, "--json out.json").json == "out.json"
    assert parse(command, "--json=out.json").json == "out.json"


@pytest.mark.parametrize(
    "line, ranks, typed, json",
    [
        ("0-3 bt 5", "0-3", "bt 5", None),
        ('all  print  "a  b" \'c', "all", 'print  "a  b" \'c', None),
        ("--json all bt -5 --full", "all", "bt -5 --full", "-"),
        ("--json=file 1,2 thread apply all -s bt -- x", "1,2", "thread apply all -s bt -- x", "file"),
    ],
)
def test_the_tail_is_as_it_was_typed(line, ranks, typed, json):
    args = parse(BY_NAME["llm-rank apply"], line)
    assert (args.ranks, args.command, args.json) == (ranks, typed, json)


@pytest.mark.parametrize("line", ["", "0-3", "all "])
def test_apply_needs_ranks_and_a_command(line):
    with pytest.raises(UsageError):
        parse(BY_NAME["llm-rank apply"], line)
