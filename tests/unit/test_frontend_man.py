"""The manual page: every command and argument, and no complaint of groff."""

import re
import subprocess

import pytest

from gdbext.cli.command_line import parser
from gdbext.cli.man import page
from gdbext.commands.all_commands import IN_GDB, IN_SHELL
from gdbext.commands.argument_parser import in_gdb, in_shell


@pytest.mark.process
def test_man_shows_it_without_a_warning():
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-rLL=100n", "-P-c"],
        input="\n".join(page()) + "\n",
        capture_output=True,
        text=True,
    )
    assert shown.stderr == ""
    plain = re.sub(".\b", "", shown.stdout)  # bold is a letter printed twice
    text = " ".join(re.sub("\N{HYPHEN}\n *", "", plain).split())
    assert "NAME gdbext - debug multi" in text
    for line in (
        "gdbext diagnose",
        "llm-rank apply 0-3,7 bt 5",
        "--explain-verdict",
        "source <(gdbext completion bash)",
    ):
        assert line in text


def test_every_command_and_argument_is_there():
    text = "\n".join(page()).replace("\\-", "-").replace("\\(aq", "'").replace("\\`", "`").replace("\\(ti", "~")
    for name, command in IN_SHELL.items():
        assert f".SS gdbext {name}\n{command.summary}." in text
        shown = [one for one in in_shell(command) if one.help]
        assert all(one.help in text and (one.name in text or not one.option) for one in shown)
    for command in IN_GDB:
        assert f".SS {', '.join((command.gdb, *command.aliases))}\n{command.summary}." in text
        assert all(one.help in text for one in in_gdb(command))


def test_no_text_is_read_as_a_macro():
    known = {"TH", "SH", "SS", "PP", "TP", "RS", "RE", "B", "I", "BR", "br", "nf", "fi"}
    assert {line[1:].split()[0] for line in page() if line.startswith((".", "'"))} <= known


def test_help_says_how_to_read_it(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["man", "--help"])
    assert "gdbext man | man -l -" in capsys.readouterr().out


def test_each_command_of_the_shell_says_what_its_exit_status_means():
    sections = "\n".join(page()).replace("\\-", "-").replace("\\(aq", "'").split("\n.SS gdbext ")[1:]
    assert len(sections) == len(IN_SHELL)
    for section, (name, command) in zip(sections, IN_SHELL.items()):
        assert section.startswith(name)
        assert f"Exit status: {command.statuses or 'see EXIT STATUS'}." in section
    assert IN_SHELL["comms"].statuses.startswith("0 communicators agree") and not IN_SHELL["diagnose"].statuses
