"""`gdbext comms`: what is said when memory cannot be read, and saved snapshots."""

import json
import os

import pytest

from gdbext.analysis.communicators.joined_communicators import communicator_table, why_nothing
from gdbext.cli import comms, main
from gdbext.cli.terminal import Progress
from gdbext.model.job import Job, RankProcess
from gdbext.model.snapshot_files.codec import dump_snapshot
from tests.unit.stacks import job, rank
from tests.unit.test_analysis_communicators import comm

OURSELVES = Job("a test", None, (RankProcess(os.getpid(), "rank", rank=0),))


def test_a_process_whose_memory_is_not_ours_to_read(monkeypatch):
    monkeypatch.setattr(comms.ProcessMemory, "read", lambda *arguments: None)
    (seen,) = comms.look(OURSELVES, False, Progress(True)).processes
    assert seen.state == "lost"
    assert seen.problems[0].startswith("its memory cannot be read: ")


def test_a_process_that_is_gone():
    gone = Job("a test", None, (RankProcess(2**22 + 1, "rank", rank=0),))
    processes = comms.look(gone, False, Progress(True)).processes
    assert "cannot be read" in why_nothing(processes)
    assert "ranks`" in why_nothing(processes)


def test_a_process_without_nccl():
    (seen,) = comms.look(OURSELVES, True, Progress(True)).processes
    assert (seen.state, seen.communicators, seen.communicator_notes) == ("ok", (), ())


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "look.json"
    ranks = [rank(number, communicators=(comm(number, 3 + number, size=2),)) for number in range(2)]
    path.write_text(dump_snapshot(job(*ranks)))
    return str(path)


def test_a_saved_look_is_shown_again(saved, capsys):
    assert main.main(["comms", saved, "--json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["communicators"]
    assert one["uneven"] == [{"kind": "all_reduce", "counts": {"0": 3, "1": 4}}]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["one.json", "two.json"], 2, "one snapshot at a time"),
        (["4711", "one.json"], 2, "one snapshot at a time"),
        (["gone.json"], 4, "cannot read gone.json: No such file"),
        (["core.1"], 4, "core.1 is not a snapshot; write one: gdbext diagnose --save FILE PID|TEXT"),
        (["empty"], 4, "empty is not a snapshot"),
    ],
)
def test_bad_input_is_one_line(words, status, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "core.1").write_bytes(b"\x7fELF" + bytes(100))
    (tmp_path / "empty").touch()
    assert main.main(["comms", *words]) == status
    printed = capsys.readouterr()
    assert said in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("options", "note", "said"),
    [
        ([], "9 MiB scanned in 4.0 s, then stopped: limit of 4 s", True),
        ([], "9 MiB scanned in 0.1 s", False),
        (["--scan"], "9 MiB scanned in 10.0 s, then stopped: limit of 10 s", False),
    ],
)
def test_a_scan_that_was_cut_short_says_what_looks_further(options, note, said, monkeypatch, capsys):
    seen = job(
        rank(0, communicators=(comm(0, size=2),)), rank(1, communicator_notes=(note,), search_cut="stopped" in note)
    )
    monkeypatch.setattr(comms, "chosen_job", lambda *given: OURSELVES)
    monkeypatch.setattr(comms, "look", lambda *given: seen)
    monkeypatch.setenv("COLUMNS", "120")
    main.main(["comms", *options])
    printed = capsys.readouterr().out
    assert "1 of 2 not seen" in printed
    assert (comms.FURTHER in printed) is said


def test_a_look_without_communicators(tmp_path, capsys):
    path = tmp_path / "look.json"
    path.write_text(dump_snapshot(job(rank(0))))
    assert main.main(["comms", str(path)]) == 4
    assert capsys.readouterr().err == "gdbext: no NCCL communicator was found\n"
    assert not communicator_table(()).groups
