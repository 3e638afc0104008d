"""llm-break on a running job: the ranks stop where they should, and always run on afterwards."""

import re

import pytest

from tests.gdb.gdbrun import INIT, Terminal, gdb_batch
from tests.inferiors.demo import DemoJob, state_of

pytestmark = pytest.mark.gdb
PLACE = "fastertransformer::ParallelGpt<float>::synchronize"
ROUNDS = 50


def attach(job):
    return "llm-attach-all " + " ".join(map(str, job.pids.values()))


def assert_free(job):
    for rank, pid in job.pids.items():
        assert state_of(pid)[1] == 0
        assert job.steps_progress(rank)


def test_hit_and_continue_leaves_no_rank_behind(any_gdb):
    with DemoJob("healthy-busy", wait="poll") as job:
        done = gdb_batch(
            any_gdb,
            attach(job),
            f"llm-break '{PLACE}' --rank 1 --json",
            "llm-break no_such_place --rank 0 --json",
            *["llm-continue"] * ROUNDS,
            "llm-break list --json",
            "llm-break",
            "llm-break delete --json",
            f"llm-break '{PLACE}' --if '$_llm_rank() == 2' --count 3",
            "llm-continue",
            "llm-break list --json",
            "llm-break delete 99",
            "llm-detach-all",
        )
        assert_free(job)
    first, pending, listed, deleted, conditional = (one for one in done.documents if "breakpoints" in one)
    assert not first["breakpoints"][0]["pending"] and "SIGTRAP" in first["notes"][0]
    assert pending["breakpoints"][0]["pending"]
    assert done.err.count(f"rank 1 is at {PLACE}") == ROUNDS, done.text[-2000:]
    assert listed["breakpoints"][0]["passed"] == {"rank 1": ROUNDS}
    assert [one["rank"] for one in listed["ranks"] if one["hit"]] == [1]
    assert "synchronize" in next(one["function"] for one in listed["ranks"] if one["hit"])
    assert not deleted["breakpoints"]
    assert conditional["breakpoints"][0]["passed"] == {"rank 2": 3}
    assert [one["rank"] for one in conditional["ranks"] if one["hit"]] == [2]
    assert "no breakpoint 99 of llm-break" in done.err
    assert "Traceback" not in done.text


def test_dead_man_releases_every_rank(any_gdb):
    with DemoJob("healthy-busy", wait="poll") as job, Terminal(any_gdb, f"source {INIT}", attach(job)) as terminal:
        terminal.expect(re.escape(Terminal.PROMPT) + r"\Z")
        terminal.command(f"llm-break '{PLACE}' --rank 1 --limit 1")
        terminal.command("llm-continue")
        terminal.expect("no command for 1 s: every rank is released")
        assert_free(job)
        assert "no process is attached" in terminal.command("llm-detach-all")
