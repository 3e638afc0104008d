"""A SIGINT that gdb has sent and not taken back, as a second Ctrl-C leaves it, does not end a rank that is let go."""

import os
import signal

import pytest

from tests.gdb.break_job import PROMPT, Held, Job
from tests.inferiors.demo import state_of
from tests.polling import wait_until

pytestmark = pytest.mark.gdb


@pytest.mark.parametrize("release", ["llm-detach-all", "detach inferiors"])
def test_that_of_gdb_is_taken_back(turn_gdb, tmp_path, release):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        numbers = terminal.command("python print('of', [one.num for one in gdb.inferiors() if one.pid])")
        for pid in job.pids:
            terminal.command(f"python import os; os.kill({pid}, {signal.SIGINT:d})")
        if release != "llm-detach-all":
            release += " " + numbers.split("of [")[1].split("]")[0].replace(",", "")
        terminal.command(release)
        job.assert_free(0, 1, 2)


def test_that_of_somebody_else_stays(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        os.kill(job.pids[1], signal.SIGINT)
        terminal.command("llm-detach-all")
        assert job.processes[1].wait(60) == -signal.SIGINT
        assert state_of(job.pids[0])[1] == 0


def test_one_beside_a_signal_that_comes_first_is_left_alone(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        os.kill(job.pids[1], signal.SIGHUP)
        terminal.command(f"python import os; os.kill({job.pids[1]}, {signal.SIGINT:d})")
        terminal.command("llm-detach-all")
        assert job.processes[1].wait(60) in (-signal.SIGHUP, -signal.SIGINT)


def test_ctrl_c_twice_and_the_release_leave_every_rank_running(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        terminal.send("llm-continue\n")
        wait_until(lambda: job.steps(1) > 50, "steps of rank 1")
        terminal.interrupt()
        terminal.interrupt()
        terminal.expect(PROMPT)
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)
