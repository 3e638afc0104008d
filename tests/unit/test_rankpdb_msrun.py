"""Breakpoints under MindSpore's msrun: its scheduler runs the ranks' script, too, with RANK_ID=0.

Run by hand with mindspore 2.10 on CPU: two ranks, an all-reduce behind the breakpoint.
"""

import sys

import pytest

from gdbext.rankpdb.identity import rank_of
from tests.inferiors.pdb_job import PdbJob, Talker

MSRUN = {"MS_SCHED_HOST": "here", "MS_SCHED_PORT": "1"}
SLEEPER = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "meet").mkdir(mode=0o700)
    return tmp_path / "meet"


@pytest.mark.parametrize("role, rank", [("MS_SCHED", None), ("MS_PSERVER", None), ("MS_WORKER", 0)])
def test_only_workers_are_ranks(role, rank):
    assert rank_of({"MS_ROLE": role, "RANK_ID": "0", **MSRUN}) == rank


def test_the_scheduler_stops_nowhere(folder):
    with PdbJob(folder, mode="environment", ranks=2, MS_ROLE="MS_SCHED").start(0) as job:
        assert job[0].rest().endswith("done 0\n")
        assert not list(folder.iterdir())


def test_the_scheduler_is_not_taken_for_rank_0(folder):
    variables = {"MS_ROLE": "MS_SCHED", "RANK": "0", "MASTER_ADDR": "here", "MASTER_PORT": "1"}
    scheduler = Talker([sys.executable, "-c", SLEEPER], variables)
    try:
        scheduler.until("up")
        with PdbJob(folder, mode="environment", ranks=2, GDBEXT_PDB_TIMEOUT="0.2").start(1) as job:
            said = job[1].rest()
            assert "rank 0 did not come in time" in said
            assert str(scheduler.pid) not in said
    finally:
        scheduler.end()
