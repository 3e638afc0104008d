"""`gdbext pdb --inject` on ranks that run on, of which nothing was prepared."""

import pytest

from gdbext.collect.gdb_runs.batch_runs import run_batch
from tests.conftest import NEWEST
from tests.inferiors.pdb_job import PdbJob
from tests.unit.test_rankpdb_planted import LINE, is_free

pytestmark = pytest.mark.gdb


@pytest.fixture
def job(tmp_path):
    (tmp_path / "meet").mkdir(mode=0o700)
    with PdbJob(tmp_path / "meet", program="pdb_loop.py", ranks=2, LOCAL_WORLD_SIZE="2") as job:
        for talker in job.start().others():
            talker.until("runs")
        yield job


def inject(job, gdb, *words):
    return job.terminal(str(job[0].pid), "--inject", f"pdb_loop.py:{LINE}", "--rank", "1", "--gdb", gdb, *words)


@pytest.mark.calls
def test_a_line_of_running_ranks(job, any_gdb):
    terminal = inject(job, any_gdb)
    said = terminal.until("(Pdb) ")
    for rank in (0, 1):
        assert f"calls Py_AddPendingCall in rank {rank}" in said
        assert f"rank {rank} (pid {job[rank].pid}): breakpoint at pdb_loop.py:{LINE} in step" in said
    job[0].until("for rank 1")
    terminal.type("p mine % 10, number > 0")
    assert "(0, True)" in terminal.until("(Pdb) ")
    terminal.type("c")
    terminal.rest()
    assert terminal.process.returncode == 0
    for rank in (0, 1):
        is_free(job, rank)
        job[rank].type("end")
        job[rank].rest()
        assert job[rank].process.returncode == 0
    assert not job.sockets()


def test_a_rank_that_is_in_c(job):
    """Its main thread is at no safe point: the text waits, and does nothing when its time is over."""
    job[1].type("block")
    job[1].until("blocked")
    terminal = inject(job, str(NEWEST), "--deadline", "1")
    assert "no breakpoint in rank 1" in terminal.rest()
    assert "its main thread executed no Python code in time" in terminal.seen
    assert terminal.process.returncode == 4
    is_free(job, 0, "1")
    job[1].type("go")
    job[1].until("woke")
    is_free(job, 1, "1")
    assert not job.sockets()
    assert "gdbext" not in job[0].seen + job[1].seen


def test_a_pid_that_became_another_process_gets_no_text(job, tmp_path):
    rank = {"pid": job[0].pid, "start": 1, "rank": 0, "text": "raise SystemExit('not mine')"}
    record = run_batch(str(NEWEST), {"schema": 1, "ranks": [rank]}, tmp_path, 60.0, module="pending")
    problem = "it has ended, and its pid is another process now"
    assert record["ranks"] == [{"pid": job[0].pid, "problem": problem}]
    is_free(job, 0, "1")


def test_only_one_line_says_what_is_wrong(job):
    for words, said, status in (
        (("--inject", "pdb_loop.py"), "pdb_loop.py is not FILE:LINE; for example", 2),
        (("--inject", "pdb_loop.py:1", "--rank", "7"), "no rank 7 on this host; there are: 0, 1", 2),
        (("--inject", "pdb_loop.py:1", "--gdb", "/no/gdb"), "no gdb found (/no/gdb)", 4),
    ):
        terminal = job.terminal(str(job[0].pid), *words)
        assert said in terminal.rest() and "Traceback" not in terminal.seen
        assert terminal.process.returncode == status, terminal.seen
