"""Every hang of the demo engine, from running processes to the verdict, with each gdb."""

import json
import os

import pytest

from tests.conftest import gdbs
from tests.front_end import gdbext
from tests.inferiors.demo import DemoJob, state_of
from tests.inferiors.scenarios import SCENARIOS

pytestmark = pytest.mark.gdb


def diagnose(pids, gdb, *arguments):
    """(exit status, document, stderr)"""
    done = gdbext("diagnose", "--json", "--gdb", gdb, *pids, *arguments)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def some_gdbs(number):
    """The gdbs take turns over the hangs; GDBEXT_EVERY_GDB=1 tries each with all, as `scripts/bench accuracy` does."""
    return gdbs() if os.environ.get("GDBEXT_EVERY_GDB") else [gdbs()[number % 2]]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_cause_and_culprit(scenario):
    with DemoJob(scenario.name, wait="poll") as job:
        for gdb in some_gdbs(SCENARIOS.index(scenario)):
            is_right(scenario, job, gdb)


def is_right(scenario, job, gdb):
    status, answer, errors = diagnose(job.pids.values(), gdb)
    verdict = answer["verdict"]
    ranks = {process["index"]: process["rank"] for process in answer["processes"]}
    assert verdict["cause"] in (scenario.cause, *scenario.also_causes), verdict["summary"]
    if verdict["cause"] == scenario.cause:
        blamed = {ranks[index] for index in verdict["culprits"]} | set(verdict["absent"])
        assert blamed == set(scenario.culprits()), verdict["summary"]
    assert status == (0 if scenario.healthy else 1), errors
    for pid in job.pids.values():
        assert state_of(pid) != ("t", 0)
        assert state_of(pid)[1] == 0
        assert job.alive_progress(pid)


@pytest.mark.parametrize("wait", ["spin", "yield", "query"])
def test_however_the_driver_waits(wait):
    """Most tests let the ranks sleep in the driver (poll), to leave the CPU to gdb; here they really spin."""
    with DemoJob("pinned-alloc", wait=wait) as job:
        _, answer, _ = diagnose(job.pids.values(), gdbs()[0])
        assert (answer["verdict"]["cause"], answer["verdict"]["culprits"]) == ("implicit-sync-vs-collective", [1])


def test_under_mpirun(turn_gdb):
    """Ranks started by Open MPI: rank numbers from its variables, the launcher is no rank."""
    with DemoJob("pinned-alloc", wait="poll", launcher="mpirun") as job:
        launcher = job.processes[0].pid
        status, answer, errors = diagnose([launcher], turn_gdb)
        assert [process["pid"] for process in answer["processes"]] == [job.pids[rank] for rank in range(3)]
        assert [process["rank"] for process in answer["processes"]] == [0, 1, 2]
        assert answer["verdict"]["cause"] == "implicit-sync-vs-collective"
        assert answer["verdict"]["culprits"] == [1]
        assert status == 1, errors
        assert all(job.alive_progress(pid) for pid in job.pids.values())


def test_without_any_symbols(turn_gdb):
    """A stripped engine: the exported names of the libraries are enough for the verdict."""
    with DemoJob("pinned-alloc", wait="poll", stripped=True) as job:
        _, answer, _ = diagnose(job.pids.values(), turn_gdb)
        assert answer["verdict"]["cause"] == "implicit-sync-vs-collective", answer["verdict"]["summary"]
        assert answer["verdict"]["culprits"] == [1]
