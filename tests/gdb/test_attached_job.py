"""The walk-through of the README inside gdb: attach to a hung job, diagnose, release."""

import json
import re

import pytest

from tests.gdb.gdbrun import gdb_batch
from tests.inferiors.demo import DemoJob, state_of

pytestmark = pytest.mark.gdb


@pytest.mark.parametrize("stripped", [False, True])
def test_attach_diagnose_release(any_gdb, tmp_path, stripped):
    answer = tmp_path / "answer.json"
    with DemoJob("pinned-alloc", wait="poll", stripped=stripped) as job:
        pids = " ".join(str(pid) for pid in job.pids.values())
        done = gdb_batch(any_gdb, f"llm-attach-all {pids}", f"llm-nccl-diagnose --json {answer}", "llm-detach-all")
        verdict = json.loads(answer.read_text())["verdict"]
        assert (verdict["cause"], verdict["culprits"]) == ("implicit-sync-vs-collective", [1]), done.out
        for pid in job.pids.values():
            assert state_of(pid)[1] == 0
            assert job.alive_progress(pid)


def test_diagnose_with_nothing_attached_looks_from_outside(turn_gdb, tmp_path):
    answer = tmp_path / "answer.json"
    with DemoJob("missing-rank-io", wait="poll") as job:
        done = gdb_batch(turn_gdb, f"llm-nccl-diagnose {job.pids[0]} --json {answer}")
        document = json.loads(answer.read_text())
        assert (document["verdict"]["cause"], document["verdict"]["culprits"]) == ("missing-rank", [1]), done.out
        assert all(job.alive_progress(pid) for pid in job.pids.values())


def test_the_answer_is_last_and_as_short_or_long_as_asked(turn_gdb):
    """The same lines as in the shell; what to type next is a command of gdb."""
    with DemoJob("pinned-alloc", wait="poll") as job:
        pids = " ".join(str(pid) for pid in job.pids.values())
        marks = [f"echo == {number}\\n" for number in range(4)]
        lines = ["set width 100", f"llm-attach-all {pids}", marks[0], "llm-diagnose", marks[1], "llm-diagnose --brief"]
        lines += [marks[2], "llm-diagnose -v", marks[3], "llm-stacks --format collapsed", "llm-detach-all"]
        usual, brief, full, folded = re.split(r"== \d\n", gdb_batch(turn_gdb, *lines).out)[1:]
        usual, brief, full = (text.rstrip("\n").split("\n") for text in (usual, brief, full))
        assert re.match(r"implicit-sync-vs-collective \(\w+ confidence\): Rank 1 is in cudaMallocHost", brief[0])
        assert len(brief) <= 8 and brief[-1].startswith("  next     llm-nccl-diagnose -v (")
        assert any(line.startswith("  pause    held by this gdb for up to ") for line in brief)
        begin = len(usual) - len(brief)
        assert usual[begin - 1] == "" and usual[0].split()[:3] == ["rank", "pid", "waits"]
        assert [line[:11] for line in usual[begin:]] == [line[:11] for line in brief]
        assert "Evidence" in full and "What to do" in full
        assert full[-1] == "  next     llm-stacks; --html FILE for a page"
        assert "Evidence" not in usual and "Source lines of rank 1" in "\n".join(usual)
        assert re.search(
            r"^rank 1;engine;main \(main\.cc:\d+\);.*;cudaMallocHost \(libcudart\.so\.12\);.* 1$", folded, re.M
        )


def test_attached_ranks_run_for_a_longer_look_and_are_attached_again(any_gdb, tmp_path):
    """Each in its inferior, with the same rank and thread selected; breakpoints stay."""
    answer, again = tmp_path / "answer.json", tmp_path / "again.json"
    with DemoJob("pinned-alloc", wait="poll") as job:
        pids = " ".join(map(str, job.pids.values()))
        marks = [f"echo == {number}\\n" for number in range(4)]
        where = ["thread", "python print([(one.num, one.pid) for one in gdb.inferiors()])", "info breakpoints"]
        look = f"llm-nccl-diagnose --let-run --json {answer}"
        lines = [f"llm-attach-all {pids}", "break cudaFree", "llm-rank 1", marks[0], *where, marks[1], look, marks[2]]
        done = gdb_batch(any_gdb, *lines, *where, marks[3], f"llm-diagnose --json {again}", "llm-detach-all")
        _, before, _, after, _ = re.split(r"== \d\n", done.out)
        assert before == after and "<cudaFree> inf 3" in after, done.out + done.err
        document = json.loads(answer.read_text())
        verdict = document["verdict"]
        assert (verdict["cause"], verdict["confidence"]) == ("implicit-sync-vs-collective", "high")
        assert [one["after"] for one in document["processes"]] == ["held"] * 3
        held = json.loads(again.read_text())
        assert held["verdict"]["culprits"] == [1]
        assert "releasing 3 ranks for this look; they are attached again after it" in done.err
        for pid in job.pids.values():
            assert state_of(pid)[1] == 0
            assert job.alive_progress(pid)


def test_a_rank_that_ends_during_the_longer_look_is_named_and_the_others_are_attached_again(turn_gdb, tmp_path):
    with DemoJob("pinned-alloc", wait="poll") as job:
        ends = job.pids[2]
        kill = (
            "python import os; from gdbext.inside_gdb.stacks import other_ranks as o; look = o.look; "
            f"o.look = lambda *a, **k: (look(*a, **k), os.kill({ends}, 9))[0]"
        )
        pids = " ".join(map(str, job.pids.values()))
        lines = [f"llm-attach-all {pids}", kill, f"llm-diagnose --let-run --json {tmp_path / 'answer'}"]
        done = gdb_batch(turn_gdb, *lines, "info inferiors", "llm-detach-all")
        held = re.findall(r"^[* ] (\d) +process (\d+)", done.out, re.M)
        assert held == [("1", str(job.pids[0])), ("2", str(job.pids[1]))], done.out
        assert f"process {ends} is not attached again: " in done.err


def test_core_files_cannot_run_for_a_longer_look(turn_gdb, tmp_path):
    with DemoJob("pinned-alloc", wait="poll") as job:
        core = tmp_path / "core"
        gdb_batch(turn_gdb, f"attach {job.pids[0]}", f"gcore {core}")
    done = gdb_batch(turn_gdb, f"llm-attach-all --core {core}", "llm-nccl-diagnose --let-run")
    assert "no attached process can run on" in done.err
