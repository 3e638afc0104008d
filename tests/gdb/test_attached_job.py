"""The walk-through of the README inside gdb: attach to a hung job, diagnose, release."""

import json

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
