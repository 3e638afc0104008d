"""Breakpoints under MindSpore's msrun: its scheduler runs the ranks' script, too, with RANK_ID=0.

Run by hand with mindspore 2.10 on CPU: two ranks, an all-reduce behind the breakpoint.
"""

import sys

import pytest

from gdbext.rankpdb.identity import rank_of
from tests.inferiors.pdb_job import HERE, PORT, PdbJob, Talker

MSRUN = {"MS_SCHED_HOST": "here", "MS_SCHED_PORT": PORT}
LAUNCHER = "import subprocess, sys; subprocess.run(sys.argv[sys.argv.index('--') + 1 :])"
SLEEPER = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "meet").mkdir(mode=0o700)
    return tmp_path / "meet"


@pytest.mark.parametrize("role, rank", [("MS_SCHED", None), ("MS_PSERVER", None), ("MS_WORKER", 0)])
def test_only_workers_are_ranks(role, rank):
    assert rank_of({"MS_ROLE": role, "RANK_ID": "0", **MSRUN}) == rank


@pytest.mark.process
def test_the_scheduler_stops_nowhere(folder):
    with PdbJob(folder, mode="environment", ranks=2, MS_ROLE="MS_SCHED").start(0) as job:
        assert job[0].rest().endswith("done 0\n")
        assert not list(folder.iterdir())


@pytest.mark.process
def test_the_scheduler_is_not_taken_for_rank_0(folder):
    variables = {"MS_ROLE": "MS_SCHED", "RANK": "0", "MASTER_ADDR": "here", "MASTER_PORT": PORT}
    scheduler = Talker([sys.executable, "-c", SLEEPER], variables)
    try:
        scheduler.until("up")
        with PdbJob(folder, mode="environment", ranks=2, GDBEXT_PDB_TIMEOUT="0.2").start(1) as job:
            said = job[1].rest()
            assert "rank 0 did not arrive in time" in said
            assert str(scheduler.pid) not in said
    finally:
        scheduler.end()


@pytest.mark.process
@pytest.mark.parametrize("option", [["--local_worker_num=1"], ["--local_worker_num", "1"]])
def test_ranks_of_two_hosts_wait_through_the_shared_folder(folder, tmp_path, option):
    """Each "host" has an msrun of its own. No variable of a rank tells how many ranks are here; msrun's option does."""
    (tmp_path / "msrun").write_text(LAUNCHER)
    common = {
        **MSRUN,
        "MS_ROLE": "MS_WORKER",
        "MS_WORKER_NUM": "2",
        "DEVICE_ID": "0",
        "GDBEXT_PDB_SHARED": str(tmp_path),
    }
    program = [sys.executable, str(HERE / "pdb_rank.py"), "step", "1"]
    ranks = []
    try:
        for rank in "01":
            place = tmp_path / f"host{rank}"
            place.mkdir(mode=0o700)
            own = {"RANK": rank, "GDBEXT_PDB_DIR": str(place), "HOME": str(place)}
            words = [sys.executable, str(tmp_path / "msrun"), "--worker_num=2", *option, "--", *program]
            ranks.append(Talker(words, {**common, **own}))
        ranks[0].until("for rank 1")
        ranks.append(Talker([sys.executable, "-m", "gdbext", "pdb"], own))
        ranks[2].until("(Pdb) ")
        ranks[2].type("c")
        assert "reported by the folder GDBEXT_PDB_SHARED" in ranks[0].rest()
        assert "done 101" in ranks[1].rest()
        assert not list(tmp_path.glob("gdbext-*"))
    finally:
        for talker in ranks:
            talker.end()
