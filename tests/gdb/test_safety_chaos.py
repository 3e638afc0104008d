"""The chaos campaign in short: some rounds of scripts/chaos, and that a round would notice harm."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.chaos import job as chaos_job
from tests.chaos.job import ChaosJob
from tests.chaos.plan import BEHAVIOURS, PLACES, SIGNALS, Plan, draw
from tests.gdb.gdbrun import ROOT, build

pytestmark = pytest.mark.gdb

SEED = 7
# Signals to the front end and to both kinds of gdb, a rank that is stopped, one that execs, full and missing folders.
HALTS = (1, 7, 172)
ROUNDS = (26, 109, 112, 116, 142, 147, 152)


def test_some_rounds_harm_nobody():
    words = [sys.executable, "-m", "tests.chaos.campaign", "--seed", str(SEED), "--only", *map(str, ROUNDS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(rf"^{len(ROUNDS)} rounds, \d+ targets, \d+ signals that hit, 0 rounds failed$", done.stdout, re.M)


def test_a_gdbext_that_is_stopped_in_a_stop_holds_nobody():
    """Alone, and one of the processes of --together."""
    words = [sys.executable, "-m", "tests.chaos.campaign", "--halts", "--only", *map(str, HALTS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = re.search(rf"^{len(HALTS)} rounds, \d+ targets, (\d+) signals that hit, 0", done.stdout, re.M)
    assert found and int(found[1]) > 0, done.stdout  # where nobody runs, --together has nobody to hold


def test_a_plan_follows_from_seed_and_number_alone():
    plans = [draw(SEED, number) for number in range(1, 501)]
    assert plans == [draw(SEED, number) for number in range(1, 501)]
    assert plans[:20] != [draw(SEED + 1, number) for number in range(1, 21)]
    faults = {fault for plan in plans for fault in plan.faults}
    assert {f"{what} to {who}" for what in SIGNALS for who in ("front", "gdb")} <= faults
    assert {f"rank that has {behaviour}" for behaviour in BEHAVIOURS} <= faults
    assert {f"place {place}" for place in PLACES} <= faults
    assert {"a second gdbext", "clock jumps", "limit AS", "limit NOFILE", "KILL to a rank", "STOP to a rank"} <= faults


@pytest.fixture
def ranks(tmp_path, monkeypatch):
    monkeypatch.setattr(chaos_job, "PATIENCE", 60.0)
    plan = Plan(1, ((), (), ()), 1, "diagnose", "pids", False, None, True, "distribution")
    job = ChaosJob(plan, build("chaos_rank.c", "-g", "-O1"), tmp_path, "chaos-test")
    try:
        job.wait_ready()
        yield job
    finally:
        job.close()


def test_harm_is_noticed(ranks, monkeypatch):
    assert ranks.harm() == []
    monkeypatch.setattr(chaos_job, "PATIENCE", 1.5)
    os.kill(ranks.pids[0], signal.SIGSTOP)
    ranks.processes[1].kill()
    ranks.processes[1].wait()
    ranks.marks[ranks.pids[2]] = ([], [])
    assert ranks.harm() == [
        "rank 0 does not go on, its state is T",
        "rank 1 ended with -9",
        "rank 2 has other threads or files than before",
    ]
    os.kill(ranks.pids[0], signal.SIGCONT)
