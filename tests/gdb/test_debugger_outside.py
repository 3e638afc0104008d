"""With nothing attached a `gdbext diagnose` of its own looks at the ranks; gdb only shows what it found."""

import os
import re

import pytest

from gdbext.model.snapshot_files.codec import load_snapshot
from tests.gdb.gdbrun import INIT, Target, Terminal, gdb_batch
from tests.inferiors.demo import DemoJob

pytestmark = pytest.mark.gdb


def test_a_look_without_attaching(any_gdb, tmp_path):
    file = tmp_path / "snapshot.json"
    with Target("threads", 2) as one, Target("plain") as two:
        pids = f"{one.pid} {two.pid}"
        answer = gdb_batch(any_gdb, f"llm-nccl-diagnose {pids} --json --save {file}", "info inferiors")
        one.assert_free()
        two.assert_free()
    (document,) = answer.documents
    assert sorted(process["pid"] for process in document["processes"]) == sorted([one.pid, two.pid])
    assert 0 < document["pause_ms"]["max"] < 20_000
    assert "verdict" in document
    (threads,) = [one.threads for one in load_snapshot(file.read_text()).processes if one.pid == two.pid]
    assert [frame.function for frame in threads[0].frames[-3:]] == ["answer", "ncclAllReduce", "main"]
    assert "copied" in answer.err and "snapshot written" not in answer.err  # its progress, not its own files
    assert len(re.findall("<null>", answer.out)) == 1


def test_its_error_is_ours(turn_gdb):
    with Target("plain") as gone:
        gone.kill()
        answer = gdb_batch(turn_gdb, f"llm-stacks {gone.pid}")
    assert answer.out == ""
    assert f"no process {gone.pid}" in answer.err.splitlines()[-1]
    assert answer.err.count(f"no process {gone.pid}") == 1
    assert "Traceback" not in answer.err


def test_an_error_of_several_lines_is_said_once_and_whole(turn_gdb):
    """Two jobs on the host: the list of them belongs to the error."""
    commands = ("llm-stacks", "llm-locks", "llm-nccl-comms")
    with DemoJob("pinned-alloc", ranks=2, wait="poll") as one, DemoJob("pinned-alloc", ranks=2, wait="poll") as other:
        answer = gdb_batch(turn_gdb, *commands)
    assert answer.out == ""
    lines = answer.err.splitlines()
    heads = [line for line in lines if re.match(r"\d+ jobs are on this host: choose one", line)]
    assert len(heads) == len(commands) and heads[0] == lines[0], "jobs of other tests come and go between them"
    for pid in (one.pids[0], other.pids[0]):
        assert len([line for line in lines if re.match(rf"  .* pids {pid}\b", line)]) == len(commands)
        for line in (f"    llm-stacks {pid}", f"    shell gdbext locks {pid}", f"    shell gdbext comms {pid}"):
            assert lines.count(line) == 1, "to be pasted at this prompt"


def test_several_jobs_below_one_pid_are_listed(turn_gdb):
    """Those of one shell were taken for one job, with one verdict over all of them."""
    with DemoJob("pinned-alloc", ranks=2, wait="poll") as one, DemoJob("pinned-alloc", ranks=2, wait="poll") as other:
        me = os.getpid()
        answer = gdb_batch(turn_gdb, f"llm-attach-all {me}", f"llm-nccl-diagnose {me} --json", f"llm-ranks {me}")
    lines = answer.err.splitlines()
    for pid in (one.pids[0], other.pids[0]):
        assert f"    llm-attach-all {pid}" in lines and f"    llm-nccl-diagnose {pid}" in lines
        assert f"llm-attach-all {pid}" in " ".join(answer.out.split()), "a note of llm-ranks"
    (document,) = answer.documents
    assert document["error"].startswith(f"2 jobs match {me}: choose one") and document["exit"] == 2
    assert "2 jobs are here" in answer.out


def test_the_last_words_of_a_look_that_went_well_are_said(turn_gdb):
    with Target("plain") as one:
        answer = gdb_batch(turn_gdb, f"llm-nccl-diagnose {one.pid}")
    assert len(re.findall(r"^gdbext: done in", answer.err, re.MULTILINE)) == 1


def test_ctrl_c_ends_it_and_frees_everything(any_gdb):
    with Target("threads", 2) as one, Terminal(any_gdb, f"source {INIT}") as terminal:
        terminal.expect(re.escape(Terminal.PROMPT))
        terminal.send(f"llm-nccl-diagnose {one.pid}\n")
        terminal.expect("copied")
        terminal.interrupt()
        text = terminal.expect(re.escape(Terminal.PROMPT) + r"\Z")
        one.assert_free()
        assert "Traceback" not in text and "Verdict" not in text
        assert "Quit" in text


def test_nothing_of_the_present_folder_is_run(turn_gdb, tmp_path):
    """It may be the rank's: Python would import from there before all else, and a PATH may name it."""
    for name in ("json", "argparse", "tabulate", "gdbext"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)")
    for name in ("gdb", "python3"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/ran\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f".:{os.environ['PATH']}"}
    hide = "python import sys; sys.path[:] = [place for place in sys.path if '-packages' not in place]"
    with Target("plain") as one:
        answer = gdb_batch(turn_gdb, hide, f"llm-stacks {one.pid}", cwd=tmp_path, env=environment)
    assert "answer" in answer.out
    assert not (tmp_path / "ran").exists()
