"""Some programs of each family of the live matrix, looked at once; `scripts/bench accuracy` plays all."""

import importlib.util
import os

import pytest

from tests.bench.accuracy import look, programs
from tests.conftest import gdbs
from tests.front_end import gdbext
from tests.inferiors.live.table import LIVE

pytestmark = [pytest.mark.gdb, pytest.mark.torch, pytest.mark.mpi]

_FAMILIES = {row.family for row in LIVE}
_EVERY = {"torch_collectives": 5, "torch_training": 5, "mpi": 4}
"""Three ranks that import torch, or spin, cost four times as much as the other programs, of which every third is
played. GDBEXT_EVERY_LIVE=1 plays all."""


def _chosen():
    for family in sorted(_FAMILIES):
        of_family = [program for program in programs() if program.table == family]
        # Ray is large: only the benchmark installs it.
        there = [program for program in of_family if not program.needs or importlib.util.find_spec(program.needs)]
        yield from there[:: 1 if os.environ.get("GDBEXT_EVERY_LIVE") else _EVERY.get(family, 3)]


PLAYED = list(_chosen())

OPEN = {"nested-rpc", "split-crossed", "wait-for-debugger", "handler-takes-lock", "ask-each-other"}
"""Hangs whose cause is left open today: one look does not show it."""


def name(program):
    return f"{program.table}/{program.name}"


@pytest.mark.parametrize("number", range(len(PLAYED)), ids=[name(program) for program in PLAYED])
def test_cause_and_alarm(number):
    """Status 3 asks for a longer look. A finding where nothing hangs is an error, and so is the reverse."""
    program = PLAYED[number]
    with program.start() as started:
        one = look(program, gdbs()[number % 2], started, gdbext=gdbext)
    said = f"{one.cause} ({one.confidence}), status {one.status}: {one.summary}"
    if program.healthy:
        assert one.status in (0, 3), said
        assert one.cause in ("not-a-hang", "unknown"), said
    else:
        assert one.status in (1, 3), said
        assert one.cause in program.causes or (program.name in OPEN and one.cause == "unknown"), said


def test_hangs_and_healthy_programs_of_every_family_are_played():
    assert {program.table for program in PLAYED} >= _FAMILIES - {"ray_actors"}
    assert sum(program.healthy for program in PLAYED) >= 10
    assert sum(not program.healthy for program in PLAYED) >= 20
