"""Jobs that are slow and hangs that look like them, from running processes to the verdict; two looked at at a time."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import gdbs
from tests.inferiors.slow_hangs import BY_NAME

pytestmark = pytest.mark.gdb

ROWS = [BY_NAME[name] for name in ("swap-slow", "compile-slow", "loading-slow", "blocked-read")]
"""Those that only a real kernel can show; `scripts/bench accuracy` runs the whole table."""


def answer_of(row, *options):
    with row.start() as job:
        argv = [sys.executable, "-m", "gdbext", "diagnose", "--json", "-", "--gdb", gdbs()[0], *options]
        done = subprocess.run([*argv, *map(str, job.pids.values())], capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answers():
    with ThreadPoolExecutor(2) as pool:
        return dict(zip([row.name for row in ROWS], pool.map(answer_of, ROWS)))


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


def test_looks_without_second_copies_are_compared_with_one_another():
    verdict = answer_of(BY_NAME["compile-slow"], "--once", "--samples", "2", "--interval", "0.5")["verdict"]
    assert verdict["cause"] == "not-a-hang", verdict["summary"]
    assert "ptxas" in verdict["summary"]
