"""Processes that wait as idle ones do and have begun something, looked at once each, and their twins."""

import json

import pytest

from tests.conftest import gdbs
from tests.front_end import gdbext
from tests.inferiors.live.job import LiveJob

pytestmark = pytest.mark.gdb

BOTH = ("main", "worker")
HANGS = [
    ("slots-that-nobody-frees", ("main",), "waits in Condition.wait"),
    ("future-that-nobody-sets", ("main",), "for a future"),
    ("lock-beside-server", ("main",), "for something that the program itself must give"),
    ("result-beside-server", ("main",), "for something that the program itself must give"),
    ("request-that-waits", ("main",), "do_GET"),
    ("worker-failed", ("main",), "status 1) has ended"),
    ("both-spin", BOTH, "nothing shows that their calls return"),
]
TWINS = [
    ("consumers-without-work", ("main",)),
    ("orders-beside-server", ("main",)),
    ("client-that-stays", ("main",)),
    ("worker-done", ("main",)),
    ("both-compute", BOTH),
]


def look(name, roles, samples=1):
    with LiveJob("begun", name, roles, roles, "alone", True) as job:
        done = gdbext("diagnose", "--json", "-q", "--samples", samples, "--interval", 1, "--gdb", gdbs()[0], *job.asked)
    return done.returncode, json.loads(done.stdout)["verdict"]


@pytest.mark.parametrize(("name", "roles", "sign"), HANGS, ids=[name for name, *_ in HANGS])
def test_what_was_begun_is_said_and_not_called_healthy(name, roles, sign):
    status, verdict = look(name, roles)
    assert (status, verdict["cause"]) == (3, "unknown"), verdict["summary"]
    assert sign in verdict["summary"]


@pytest.mark.parametrize(("name", "roles"), TWINS, ids=[name for name, _ in TWINS])
def test_who_has_begun_nothing_is_healthy(name, roles):
    status, verdict = look(
        name, roles, 6 if name == "both-compute" else 1
    )  # beside others a look may be too quick to see it
    assert (status, verdict["cause"]) == (0, "not-a-hang"), verdict["summary"]


def test_who_was_left_at_the_prompt_of_a_debugger_is_named():
    status, verdict = look("left-at-prompt", BOTH)
    assert (status, verdict["cause"], verdict["culprits"]) == (1, "other", [1]), verdict["summary"]
