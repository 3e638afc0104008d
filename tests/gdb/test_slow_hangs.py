"""Jobs that are slow and hangs that look like them, from running processes to the verdict."""

import json

import pytest

from tests.conftest import gdbs
from tests.front_end import gdbext
from tests.gdb.gdbrun import gdb_batch
from tests.inferiors.slow_hangs import BY_NAME

pytestmark = pytest.mark.gdb

ROWS = [BY_NAME[name] for name in ("swap-slow", "compile-slow", "loading-slow", "blocked-read")]
"""Those that only a real kernel can show; `scripts/bench accuracy` runs the whole table."""


def diagnose(pids, *options, gdb=None):
    """(exit status, the answer)"""
    done = gdbext("diagnose", "--json", "--gdb", gdb or gdbs()[0], *options, *pids)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def answer_of(row, *options):
    with row.start() as job:
        return diagnose(job.pids.values(), *options)[1]


@pytest.fixture(scope="module")
def answers():
    return {row.name: answer_of(row) for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_slow_is_told_from_stuck(answers, row):
    verdict = answers[row.name]["verdict"]
    ranks = {process["index"]: process["rank"] for process in answers[row.name]["processes"]}
    assert verdict["cause"] in (row.cause, *row.also_causes), verdict["summary"]
    assert sorted(ranks[index] for index in verdict["culprits"]) == sorted(row.culprits)


def test_every_look_says_who_was_asked(answers):
    for answer in answers.values():
        assert [one["name"] for one in answer["witnesses"]] == [
            "RAS",
            "NVML",
            "flight recorder",
            "/dev/shm",
            "kernel log",
        ]
        assert all(one["state"] in ("present", "absent", "failed") for one in answer["witnesses"])


def test_gdb_knows_what_the_ranks_did_before_it_stopped_them(turn_gdb):
    """By the kernel's counters: of the ranks that it holds nothing moves any more."""
    with BY_NAME["compile-slow"].start() as job:
        pids = " ".join(map(str, job.pids.values()))
        answer = gdb_batch(turn_gdb, f"llm-attach-all {pids}", "llm-nccl-diagnose --json", "llm-nccl-diagnose -v")
    (document,) = answer.documents
    verdict = document["verdict"]
    assert verdict["cause"] == "not-a-hang", verdict["summary"]
    assert "ptxas" in verdict["summary"]
    assert all(thread["cpu"] is not None for process in document["processes"] for thread in process["threads"])


def test_looks_without_second_copies_are_compared_with_one_another():
    verdict = answer_of(BY_NAME["compile-slow"], "--once", "--samples", "2", "--interval", "0.5")["verdict"]
    assert verdict["cause"] == "not-a-hang", verdict["summary"]
    assert "ptxas" in verdict["summary"]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["steps-healthy", "checkpoint"])
def test_a_loop_that_goes_round_is_healthy(name, turn_gdb):
    """Seen wherever it is: in its collective, asleep between two, or writing a file."""
    with BY_NAME[name].start() as job:
        for _ in range(3):
            status, answer = diagnose(job.pids.values(), gdb=turn_gdb)
            assert (answer["verdict"]["cause"], status) == ("not-a-hang", 0), answer["verdict"]["summary"]
            assert answer["verdict"]["decided_by"] is None


@pytest.mark.torch
@pytest.mark.parametrize("name", ["spinning", "spinning-in-c", "spinning-before-a-store", "polling"])
def test_a_rank_that_runs_at_one_place_is_named_after_a_while(name, turn_gdb):
    with BY_NAME[name].start() as job:
        pids = list(job.pids.values())
        status, answer = diagnose(pids, "--samples", "1", gdb=turn_gdb)
        verdict = answer["verdict"]
        assert (verdict["cause"], verdict["culprits"], status) == ("unknown", [], 3), verdict["summary"]
        assert verdict["decided_by"].split() == [
            *["gdbext", "diagnose", "--samples", "3", "--interval", "10"],
            *map(str, pids),
        ]
        longer = ("--interval", "0.5", "--spinning-after", "2")  # looks as often as it takes
        status, answer = diagnose(pids, *longer, gdb=turn_gdb)
        verdict = answer["verdict"]
        assert (verdict["cause"], verdict["confidence"], status) == ("missing-rank", "low", 1), verdict["summary"]
        assert verdict["culprits"] == [1] and verdict["decided_by"] is None
        assert "a long computation" in verdict["summary"], "what else it could be"
