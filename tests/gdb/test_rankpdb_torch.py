"""`breakpoint_()` in ranks of torchrun: the others wait longer than their collectives would, and all go on rightly."""

import signal
import sys
import time

import pytest

from tests.inferiors.pdb_job import HERE, Talker

pytestmark = [pytest.mark.torch, pytest.mark.slow]
TIMEOUT = 2.0  # seconds that a collective waits for its ranks
RANKS = 4


@pytest.fixture
def job(tmp_path):
    (tmp_path / "meet").mkdir(mode=0o700)
    environment = {"GDBEXT_PDB_DIR": str(tmp_path / "meet"), "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    started = []

    def terminal():
        started.append(Talker([sys.executable, "-m", "gdbext", "pdb"], environment))
        started[-1].until("(Pdb) ")
        return started[-1]

    started.append(Talker([*torchrun, str(HERE / "torch_steps.py"), str(TIMEOUT), "4"], environment))
    yield started[0], terminal
    for talker in started:
        talker.end()


def all_did(launcher, step):
    for rank in range(RANKS):
        launcher.has_said(f"rank {rank} step {step} right")


def test_held_longer_than_the_timeout_then_left_in_every_way(job):
    launcher, terminal = job
    first = terminal()
    begun = time.monotonic()
    while time.monotonic() < begun + 1.5 * TIMEOUT:  # nothing tells of a timeout that does not happen
        first.type("p rank")
        first.until("2")
        time.sleep(0.2)
    assert "step 0" not in launcher.drained()
    first.type("c")
    all_did(launcher, 0)
    first.until("(Pdb) ")
    first.type("release")
    first.type("n")  # over the collective: the others are in it, too
    first.until("-> wanted")
    first.type("q")
    all_did(launcher, 1)
    second = terminal()
    second.hang_up()
    all_did(launcher, 2)
    third = terminal()
    third.signal(signal.SIGKILL)
    all_did(launcher, 3)
    launcher.rest()
    assert launcher.process.returncode == 0
    assert "wrong" not in launcher.seen
