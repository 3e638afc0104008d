"""Where the answer goes, and what is said when it cannot go there."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gdbext
from gdbext.cli.terminal import Progress, erase_line, style_for, write_lines

ROOT = Path(gdbext.__file__).parents[1]
STACK = "Thread 1 (LWP 7):\n#0  0x1 in poll () from /lib/libc.so.6\n#1  0x2 in serve () from /opt/engine\n"


def run(tail, *arguments, cwd):
    """`gdbext diagnose` on a pasted stack; `tail` is what the shell appends to the command."""
    pasted = cwd / "stack.txt"
    pasted.write_text(STACK)
    command = [
        "sh",
        "-c",
        f'exec "$0" "$@" {tail}',
        sys.executable,
        "-m",
        "gdbext",
        "diagnose",
        str(pasted),
        *arguments,
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environ, cwd=cwd)


@pytest.mark.process
@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (">&-", "gdbext: stdout is closed, so the answer is lost; use --output FILE\n"),
        (">/dev/full", "gdbext: cannot write the answer to stdout: No space left on device\n"),
    ],
)
def test_an_answer_that_cannot_be_printed_is_one_line(tail, said, tmp_path):
    done = run(tail, "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (4, said)


@pytest.mark.process
def test_without_a_stderr_the_answer_is_the_same(tmp_path):
    whole, without = run("", cwd=tmp_path), run("2>&-", cwd=tmp_path)
    assert whole.stdout == without.stdout != ""
    assert whole.returncode == without.returncode


@pytest.mark.parametrize(
    ("environ", "color"),
    [
        ({}, False),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": ""}, True),  # no-color.org: "when present and not an empty string"
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "0"}, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, False),
    ],
)
def test_when_there_is_colour(environ, color):
    assert style_for(io.StringIO(), environ).color is color


@pytest.mark.process
@pytest.mark.parametrize("option", ["--save", "--output"])
def test_a_file_in_a_wrong_folder_is_said_before_the_look(option, tmp_path):
    done = run("", option, "missing/hang.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "gdbext: cannot write missing/hang.json: missing is not a folder\n"


@pytest.mark.process
def test_gdb_is_not_started_for_a_process_that_is_not_there(tmp_path):
    command = [sys.executable, "-m", "gdbext", "attach", "999999999"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 4
    assert done.stderr.startswith("gdbext: no process 999999999 is running")


def test_names_of_a_target_in_progress_control_no_terminal():
    stream = io.StringIO()
    Progress(stream=stream).say("torchrun, run id \x1b]0;owned\x07x\u202e\n  the second line é \udcff")
    assert stream.getvalue() == "gdbext: torchrun, run id ]0;ownedx\n  the second line é \N{REPLACEMENT CHARACTER}\n"


class Terminal(io.StringIO):
    """What a person sees."""

    def isatty(self):
        return True

    def shown(self):
        """The lines, each as its last writer left it."""
        return [line.rpartition("\r")[2].replace("\x1b[K", "") for line in self.getvalue().split("\n")]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


def test_steps_take_one_line_and_leave_none(terminal):
    progress = Progress(stream=terminal, one_line=True)
    progress.say("4 ranks found")
    progress.say("reading symbols")
    assert terminal.shown() == ["gdbext: reading symbols"]
    write_lines(["the table", "the answer"], terminal)
    progress.say("done in 0.1 s")
    progress.note("snapshot written to a.json")
    progress.say("the end")
    erase_line()
    assert terminal.shown() == ["the table", "the answer", "gdbext: snapshot written to a.json", ""]


def test_a_step_never_takes_a_second_line(terminal):
    progress = Progress(stream=terminal, one_line=True)
    progress.say("rank 0: \x1b[2J\n\r" + "日本x" * 100)
    (line,) = terminal.shown()
    assert len(line) == 59 and line.isascii() and line.isprintable()
    erase_line()


def test_a_warning_stays_also_where_nobody_wants_progress(terminal):
    progress = Progress(True, terminal, one_line=True)
    progress.say("4 ranks found")
    progress.note("snapshot written")
    progress.warn("rank 1 is stopped")
    assert terminal.getvalue() == "gdbext: rank 1 is stopped\n"


@pytest.mark.parametrize("term", ["dumb", None])
def test_a_line_stays_where_none_can_be_written_anew(term, terminal, monkeypatch):
    monkeypatch.setenv("TERM", term) if term else monkeypatch.delenv("TERM")
    for stream in (terminal, io.StringIO()):
        progress = Progress(stream=stream, one_line=True)
        progress.say("one")
        progress.say("two")
    assert terminal.getvalue() == stream.getvalue() == "gdbext: one\ngdbext: two\n"
