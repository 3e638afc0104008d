"""Command lines, and the help that is made of the same declarations."""

import re

import pytest

from gdbext.commands.all_commands import IN_GDB
from gdbext.commands.argument_parser import HelpWanted, help_text, in_gdb, option_names
from gdbext.commands.gdb_arguments import parse
from gdbext.commands.split_command_line import words_of
from gdbext.commands.tensor_arguments import expression_and_index
from gdbext.model.errors import UsageError

BY_NAME = {command.gdb: command for command in IN_GDB}
each = pytest.mark.parametrize("command", IN_GDB, ids=lambda command: command.gdb)


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
    assert "usage: " + command.gdb in text
    assert all(len(line) <= 80 for line in text.splitlines())


@each
def test_every_argument_is_explained_and_json_is_there(command):
    for argument in in_gdb(command):
        assert argument.help
    assert {"--json", "--output", "--force"} <= set(option_names(command))


@each
def test_a_wrong_option_is_one_line(command):
    line = "--no-such-option 1 2" if command.tail is None else "--no-such-option 1 bt"
    with pytest.raises(UsageError) as refused:
        parse(command, line)
    assert "\n" not in str(refused.value)
    said = str(refused.value)
    assert said.startswith(f"{command.gdb}: unknown option '--no-such-option'")
    assert f"see `{command.gdb} -h`" in said or "Did you mean '--" in said


def test_names_are_ours_and_unique():
    names = [command.gdb for command in IN_GDB]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"llm-[a-z-]+( [a-z]+)?", name) for name in names)
    prefixes = {command.gdb for command in IN_GDB if command.prefix}
    assert {name.split()[0] for name in names if " " in name} <= prefixes


def test_selectors():
    args = parse(BY_NAME["llm-attach-all"], "12 34 --name 'VLLM::Worker .*' --pgid 5 --engine vllm --all")
    assert (args.pids, args.name, args.pgid, args.engine, args.all) == ([12, 34], "VLLM::Worker .*", 5, "vllm", True)
    assert parse(BY_NAME["llm-attach-all"], "").pids == []


@pytest.mark.parametrize("line", ["0", "-5", "abc", "1.5", "--pgid x", "'unfinished"])
def test_what_is_no_process_id_is_refused(line):
    with pytest.raises(UsageError):
        parse(BY_NAME["llm-attach-all"], line)


def output_of(line, name="llm-ranks"):
    args = parse(BY_NAME[name], line)
    return args.json, args.output, args.json_file, args.force


def test_json_takes_no_value():
    assert output_of("") == (False, None, None, False)
    assert output_of("--json") == (True, None, None, False)
    assert output_of("--json --output out.json --force") == (True, "out.json", None, True)
    args = parse(BY_NAME["llm-ranks"], "4711 --json 4712")
    assert (args.json, args.pids) == (True, [4711, 4712])
    assert parse(BY_NAME["llm-locks"], "--json 0-3").ranks == "0-3"
    assert parse(BY_NAME["llm-explain"], "--json gil").label == "gil"
    assert parse(BY_NAME["llm-break"], "--json gpt.cc:24").location == "gpt.cc:24"


@pytest.mark.parametrize("line", ["--json {}", "--json={}", "--json {} 4711"])
def test_a_file_behind_json_is_taken_for_one_more_release(line, tmp_path):
    args = parse(BY_NAME["llm-ranks"], line.format(tmp_path / "out.json"))
    assert (args.json, args.json_file) == (False, f"{tmp_path}/out.json")
    assert args.warning.startswith(f"--json takes no value any more: use --json --output {tmp_path}/out.json")
    (tmp_path / "out.json").write_text("precious")
    with pytest.raises(UsageError, match=r"out\.json exists, and --json takes no value any more"):
        parse(BY_NAME["llm-ranks"], line.format(tmp_path / "out.json"))


@pytest.mark.parametrize("line", ["--json -", "--json=-"])
def test_a_dash_behind_json_is_left_out(line):
    args = parse(BY_NAME["llm-ranks"], line)
    assert (args.json, args.json_file, args.warning) == (True, None, "--json takes no value any more: leave the - out")


def test_a_number_is_no_file_for_json():
    with pytest.raises(UsageError, match="--json takes no value, not 4711"):
        parse(BY_NAME["llm-ranks"], "--json=4711")


@pytest.mark.parametrize(
    "line, ranks, typed, json",
    [
        ("0-3 bt 5", "0-3", "bt 5", False),
        ('all  print  "a  b" \'c', "all", 'print  "a  b" \'c', False),
        ("--json all bt -5 --full", "all", "bt -5 --full", True),
        ("--json --output x.json 1,2 thread apply all -s bt -- x", "1,2", "thread apply all -s bt -- x", True),
    ],
)
def test_the_tail_is_as_it_was_typed(line, ranks, typed, json):
    args = parse(BY_NAME["llm-rank apply"], line)
    assert (args.ranks, args.command, args.json) == (ranks, typed, json)


@pytest.mark.parametrize("line", ["", "0-3", "all "])
def test_apply_needs_ranks_and_a_command(line):
    with pytest.raises(UsageError):
        parse(BY_NAME["llm-rank apply"], line)


VALUES = {"ranks": "0-1,3", "rank": "0-1,3", "strides": "-1,2", "shape": "2,3", "rtol": "-1e-3", "atol": "1e-5",
          "pgid": "7", "parent": "7", "count": "2", "wait": "1.5", "limit": "9s"}  # fmt: skip
WITH_NUMBERS = [
    (command, argument)
    for command in IN_GDB
    for argument in command.arguments
    if argument.option and not argument.flag and argument.name[2:] in VALUES
]


@pytest.mark.parametrize(
    "command, argument", WITH_NUMBERS, ids=[f"{one.gdb} {argument.name}" for one, argument in WITH_NUMBERS]
)
def test_a_number_or_a_list_stands_behind_a_blank_or_an_equals_sign(command, argument):
    name = argument.name[2:]
    value, tail = VALUES[name], " x" if command.tail or command.gdb == "llm-break" else ""
    seen = [vars(parse(command, f"{argument.name}{between}{value}{tail}")) for between in (" ", "=", "   ")]
    assert str(seen[0][name]).startswith(value[:-1]) and seen[0] == seen[1] == seen[2]


def test_options_of_tensors_stand_anywhere():
    command = BY_NAME["llm-tensor p"]
    for line in (
        "--dtype fp32 --shape 2,3 0x10[0, :4]",
        "0x10[0, :4] --shape=2,3 --dtype fp32",
        "--shape 2,3 0x10[0, :4] --dtype=fp32",
    ):
        args = parse(command, line)
        assert (args.expression, args.dtype, args.shape, args.json) == ("0x10[0, :4]", "fp32", "2,3", False)
    for line in ("--json x", "x --json", "x --json --output out.json --force"):
        assert (parse(command, line).expression, parse(command, line).json) == ("x", True)
    assert parse(command, "x --json out.json --ranks 0").json_file == "out.json"
    assert parse(command, "x --as 'at::Tensor'").expression == "x"
    assert getattr(parse(command, "x --as 'at::Tensor'"), "as") == "at::Tensor"
    typed = 'm["a --json b"] - f(x, y) [0, :]'
    assert parse(command, typed).expression == typed
    assert parse(BY_NAME["llm-error"], "-5").error == "-5" and parse(BY_NAME["llm-error"], "700 --json").json
    assert parse(BY_NAME["llm-error"], "don't know --json").error == "don't know"
    for line in ("x --no-such-option", "x --dtype", "--ranks"):
        with pytest.raises(UsageError):
            parse(command, line)


@pytest.mark.parametrize(
    "line, expression, index",
    [
        ("x", "x", ""),
        ("x [0, :]", "x", "[0, :]"),
        ("0x10[0,:4]", "0x10", "[0,:4]"),
        ("x[0]", "x[0]", ""),
        ("x[-1]", "x[-1]", ""),
        ("x[-1:]", "x", "[-1:]"),
        ("v[3][0,:4]", "v[3]", "[0,:4]"),
        ("v[3][0,:4][1]", "v[3]", "[0,:4][1]"),
        ("v[3][1:] [0]", "v[3]", "[1:][0]"),
        ('m["x"][:4]', 'm["x"]', "[:4]"),
        ('m["a:b, c"]', 'm["a:b, c"]', ""),
        ("m['x'] [...]", "m['x']", "[...]"),
        ("(a + b)[1, 2]", "(a + b)", "[1, 2]"),
        ("f(a[0, 1])", "f(a[0, 1])", ""),
        ("v[f(1, 2)]", "v[f(1, 2)]", ""),
        ("v[ns::first]", "v[ns::first]", ""),
        ("v[i ? 0 : 1]", "v[i ? 0 : 1]", ""),
        ("*(ns::T<2>*)0x10 [::2]", "*(ns::T<2>*)0x10", "[::2]"),
        ("x[]", "x", "[]"),
        ("[1:]", "[1:]", ""),
    ],
)
def test_what_is_expression_and_what_is_index(line, expression, index):
    assert expression_and_index(words_of(line)) == (expression, index)
