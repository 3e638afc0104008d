"""What `gdbext diagnose` reads and writes, and its exit status."""

import importlib.util
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import gdbext
from gdbext.cli import main
from gdbext.cli.inputs import reading
from gdbext.cli.terminal import Progress
from gdbext.model.errors import FINDING, NOTHING, OK, USAGE
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.stack import Frame, ThreadStack

ROOT = Path(gdbext.__file__).parents[1]


def thread(*functions, **more):
    frames = tuple(Frame(*name.split("@")[:1], module=name.split("@")[1]) for name in functions)
    return ThreadStack("1", frames, **more)


def waiting(index, state="ok"):
    stack = thread("poll@libc.so.6", "cudaStreamSynchronize@libcudart.so.12", "serve@engine", "main@engine")
    return RankSnapshot(index, (stack,), pid=100 + index, rank=index, state=state)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "hang.json"
    path.write_text(dump_snapshot(JobSnapshot((waiting(0), waiting(1)), taken_at=1.0)))
    return path


def test_a_saved_snapshot_is_judged_again(saved, capsys):
    assert main.main(["diagnose", str(saved), "--json", "--quiet"]) == FINDING
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == 1
    assert [process["wait"]["kind"] for process in answer["processes"]] == ["stream-sync"] * 2


def test_a_look_is_never_saved_over_another_one(saved, tmp_path, capsys):
    target = tmp_path / "again.json"
    assert main.main(["diagnose", str(saved), "--save", str(target)]) == FINDING
    assert "snapshot written" in capsys.readouterr().err
    kept = target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600 and json.loads(kept)["snapshot"]
    assert main.main(["diagnose", str(saved), "--save", str(target)]) == USAGE
    printed = capsys.readouterr()
    assert printed.err == f"gdbext: {target} exists; choose another name; --force overwrites it\n"
    assert (printed.out, target.read_text()) == ("", kept)
    target.write_text("old")
    assert main.main(["diagnose", str(saved), "--save", str(target), "--force"]) == FINDING
    assert json.loads(target.read_text())["snapshot"]
    assert sorted(os.listdir(tmp_path)) == ["again.json", "hang.json"]


def test_what_cannot_be_saved_does_not_cost_the_answer(saved, capsys):
    assert main.main(["diagnose", str(saved), "--quiet", "--save", "/proc/self/fd/none"]) == NOTHING
    got = capsys.readouterr()
    assert "unknown: " in got.out
    assert "cannot write" in got.err


def test_progress_goes_to_stderr_only(saved, capsys):
    main.main(["diagnose", str(saved)])
    got = capsys.readouterr()
    assert "done in" in got.err
    assert "done in" not in got.out


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["diagnose", "/no/such/file"], 4, "cannot read /no/such/file: No such file"),
        (["diagnose", "--engine", "no-such-engine"], 2, "no-such-engine"),
        (["diagnose", "x.txt", "--pgid", "1"], 2, "cannot be diagnosed together"),
        (["diagnose", "--samples", "0"], 2, "must be positive"),
        (["diagnose", "--frames", "0"], 2, "must be positive"),
        (["diagnose", "--max-pause", "-1"], 2, "must be positive"),
        (["diagnose", "4194304"], 4, "4194304"),
        (
            ["diagnose", "--samples", "x"],
            2,
            "diagnose: argument --samples: invalid int value: 'x'; see `gdbext diagnose --help",
        ),
        (["diagnose", "--no-such-option"], 2, "diagnose: unknown option '--no-such-option'"),
        (["watch", "--pid", "1"], 2, "unknown option '--pid'; give the pid without an option: gdbext watch PID"),
        (["ranks", "1", "--quiet", "x"], 2, "argument PID: not a process id: x"),
        (["error"], 2, "error: missing ERROR"),
        (["diagnos"], 2, "unknown command 'diagnos'. Did you mean 'diagnose'?"),
        (["\x1b[2Jxyz"], 2, "unknown command 'xyz'; see `gdbext --help`"),
    ],
)
def test_errors_are_one_line_with_a_status(arguments, status, words, capsys):
    assert main.main(arguments) == status
    got = capsys.readouterr()
    lines = [line for line in got.err.splitlines() if line]
    assert len(lines) == 1, got.err
    assert words in lines[0]
    assert got.out == ""


@pytest.mark.parametrize("text", ["", "{", '{"snapshot": 3}', '{"schema": 1, "snapshot": {"processes": [{}]}}'])
def test_a_broken_snapshot_is_one_line(tmp_path, text, capsys):
    path = tmp_path / "broken.json"
    path.write_text(text)
    assert main.main(["diagnose", str(path)]) in (FINDING, NOTHING)
    assert "Traceback" not in capsys.readouterr().err


def test_gdbinit_prints_a_file_that_exists(capsys):
    assert main.main(["gdbinit"]) == OK
    assert os.path.isfile(capsys.readouterr().out.strip())


@pytest.mark.process
def test_no_rank_is_said_beside_the_document(capsys):
    assert main.main(["ranks", "--name", "no such process$", "--json"]) == NOTHING
    printed = capsys.readouterr()
    assert json.loads(printed.out)["jobs"] == []
    assert printed.err == "gdbext: no rank process was found on this host\n"


def test_no_command_is_usage(capsys):
    assert main.main([]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.process
def test_a_missing_package_is_one_line():
    """-S: no site-packages, as for a clone that nothing was installed for."""
    done = subprocess.run([sys.executable, "-S", "-m", "gdbext", "ranks"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == NOTHING
    assert "is missing; python3 -m pip install" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_debug_information_reader_is_missed_before_a_look(monkeypatch, capsys):
    """Only few looks need it, and these would tell of it when they are over."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "elftools" else found(name))
    assert main.main(["diagnose", str(ROOT / "tests/data/field/mangled-eu-stack.txt")]) == NOTHING
    said = "gdbext: the package elftools is missing; python3 -m pip install tabulate pygments pyelftools\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.process
def test_a_look_loads_what_it_needs():
    """Each of these takes a tenth of the start of a look, and few looks need it."""
    seldom = [
        "tabulate",
        "pygments",
        "elftools",
        "gdbext.collect.core_files",
        "gdbext.model.tensor",
        "gdbext.analysis.verdict.judge",
        "gdbext.parsers",
        "gdbext.render.json.document",
    ]
    code = f"import sys, gdbext.cli.diagnose; print([name for name in {seldom} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "[]\n"


def test_a_long_text_is_read_at_both_ends(tmp_path, monkeypatch):
    """The bound is made small for the test."""
    monkeypatch.setattr(reading, "HEAD", 1 << 20)
    monkeypatch.setattr(reading, "TAIL", 2 << 20)
    path = tmp_path / "long.txt"
    path.write_bytes(b"a" * (1 << 20) + b"b" * (5 << 20) + b"c" * (1 << 20))
    given = reading.read(str(path), Progress(quiet=True))
    read = given.data
    assert read.startswith(b"a" * (1 << 20))
    assert read.endswith(b"c" * (1 << 20))
    assert b"(4 MiB in the middle were not read)" in read
    assert len(read) < (3 << 20) + 100
    assert given.problems == (f"{path}: 4 MiB in the middle were not read",)
