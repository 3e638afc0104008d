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
