"""`breakpoint_()` in ranks of torchrun: the others wait longer than their collectives would, and all go on rightly."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from tests.inferiors.demo import state_of
from tests.inferiors.pdb_job import HERE, Talker
from tests.polling import wait_until

pytestmark = [pytest.mark.torch, pytest.mark.slow]
TIMEOUT = 3.0  # seconds that a collective waits for its ranks
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
    started[0].meet = tmp_path / "meet"
    yield started[0], terminal
    for talker in started:
        talker.end()


def all_did(launcher, step):
    for rank in range(RANKS):
        launcher.has_said(f"rank {rank} step {step} right")


def test_held_longer_than_the_timeout_then_left_in_every_way(job):
    launcher, terminal = job
    first = terminal()
    with pytest.raises(subprocess.TimeoutExpired):
        launcher.process.wait(1.5 * TIMEOUT)
    first.type("p rank")
    first.until("2")
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
    nothing_is_left(launcher)


def pids(launcher):
    return {int(rank): int(pid) for rank, pid in re.findall(r"^rank (\d) is pid (\d+)$", launcher.seen, re.MULTILINE)}


def nothing_is_left(launcher):
    """All of the output has been read, so the ranks have closed it; the last one may take a moment to go."""
    wait_until(lambda: all(state_of(pid)[0] in (None, "Z") for pid in pids(launcher).values()), "the end of all ranks")
    assert len(pids(launcher)) == RANKS
    assert not list(launcher.meet.iterdir())


def test_the_launcher_a_waiting_rank_and_the_debugged_rank_are_killed(job):
    launcher, terminal = job
    first = terminal()
    launcher.signal(signal.SIGKILL)
    launcher.process.wait()
    first.type("c")
    all_did(launcher, 0)
    first.until("(Pdb) ")
    ranks = pids(launcher)
    os.kill(ranks[0], signal.SIGKILL)
    os.kill(ranks[2], signal.SIGKILL)
    first.until("the rank has ended")
    for rank in (1, 3):
        launcher.has_said(f"rank {rank} resumes: rank 2 has ended")
    first.until("no rank of the job is left")
    launcher.rest()
    assert "step 1" not in launcher.seen  # the collective failed at once, as it does without us
    nothing_is_left(launcher)


def test_ranks_of_two_hosts_meet_in_the_store(tmp_path):
    """Two "hosts": folders of their own, and a launcher that says there is one rank on each."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    common = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    common.update(MASTER_PORT=port, OMP_NUM_THREADS="1", HOME=str(tmp_path))
    started = []
    try:
        for rank in (0, 1):
            folder = tmp_path / f"host{rank}"
            folder.mkdir(mode=0o700)
            here = {**common, "RANK": str(rank), "GDBEXT_PDB_DIR": str(folder)}
            started.append(Talker([sys.executable, str(HERE / "torch_hosts.py"), str(TIMEOUT), "2"], here))
        near, far = started
        terminal = Talker([sys.executable, "-m", "gdbext", "pdb"], here)
        started.append(terminal)
        terminal.until("(Pdb) ")
        near.until("rank 0 waits at torch_hosts.py:18 for rank 1")
        with pytest.raises(subprocess.TimeoutExpired):
            near.process.wait(1.5 * TIMEOUT)
        terminal.type("p step")
        terminal.until("0")
        terminal.type("c")
        near.until("rank 1 has resumed (reported by the store of torch.distributed)")
        for talker in (near, far):
            talker.has_said("step 0 right")
        terminal.until("(time 2)")
        terminal.until("(Pdb) ")
        terminal.type("c")
        for talker in (near, far):
            talker.has_said("step 1 right")
        near.until("waits at torch_hosts.py:18 (time 3)")
        terminal.until("(time 3)")
        terminal.until("(Pdb) ")
        far.signal(signal.SIGKILL)
        near.until("rank 1 sends no heartbeat any more")
        near.rest()
        assert near.process.returncode == 0
        far.rest()
        assert "step 2 failed" in near.seen  # the collective, at once
        assert not list((tmp_path / "host0").iterdir())
    finally:
        for talker in started:
            talker.end()
