"""A SIGINT that gdb has sent and not taken back, as a second Ctrl-C leaves it, does not end a rank that is let go."""

import os
import signal
from pathlib import Path

import pytest

from tests.gdb.break_job import PROMPT, Held, Job
from tests.inferiors.demo import state_of
from tests.polling import wait_until

pytestmark = pytest.mark.gdb

SEND = "python import os; os.kill({}, 2)"


def waits(pid):
    """Whether a SIGINT waits in the process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return bool(int(next(line for line in lines if line.startswith("ShdPnd")).split()[1], 16) & 1 << signal.SIGINT - 1)


@pytest.mark.parametrize("release", ["llm-detach-all", "detach inferiors"])
def test_that_of_gdb_is_taken_back(turn_gdb, tmp_path, release):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        numbers = terminal.command("python print('of', [one.num for one in gdb.inferiors() if one.pid])")
        for pid in job.pids:
            terminal.command(SEND.format(pid))
        assert not any(map(waits, job.pids))
        if release != "llm-detach-all":
            release += " " + numbers.split("of [")[1].split("]")[0].replace(",", "")
        terminal.command(release)
        job.assert_free(0, 1, 2)


def test_the_ranks_can_be_resumed_after_that(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        terminal.command("llm-break decode_step --rank 1 --others hold --wait 60")
        terminal.send("llm-continue\n")
        terminal.expect(PROMPT)
        for pid in job.pids:  # one stands at the breakpoint
            terminal.command(SEND.format(pid))
        before = job.steps(1)
        terminal.send("llm-continue\n")
        terminal.expect(PROMPT)
        assert job.steps(1) > before
        terminal.command("llm-detach-all")
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
        terminal.command(SEND.format(job.pids[1]))
        assert waits(job.pids[1])
        terminal.command("llm-detach-all")
        assert job.processes[1].wait(60) in (-signal.SIGHUP, -signal.SIGINT)


def selected_pid(terminal):
    return int(terminal.command("python print('pid', gdb.selected_inferior().pid)").split("pid ")[1].split()[0])


def test_where_the_program_is_to_get_it_the_signal_stays(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        terminal.command("set confirm off")
        terminal.command("handle SIGINT pass")
        held = selected_pid(terminal)
        terminal.command(SEND.format(held))
        terminal.command("print 1")
        assert waits(held)


def test_a_thread_that_stands_at_a_signal_of_its_own_is_left_as_it_is(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        terminal.command("handle SIGWINCH stop")
        held = selected_pid(terminal)
        os.kill(held, signal.SIGWINCH)
        assert "SIGWINCH" in terminal.command("continue")
        terminal.command(SEND.format(held))
        assert not waits(held), "another thread of the rank takes it"
        assert f"= {signal.SIGWINCH:d}" in terminal.command("print $_siginfo.si_signo")


def test_a_rank_that_is_killed_meanwhile_does_not_keep_the_others(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        terminal.command(f"python import os; os.kill({job.pids[1]}, 2); os.kill({job.pids[1]}, 9)")
        terminal.command("llm-detach-all")
        job.set("gone", 1, 1)
        job.assert_free(0, 2)


def test_ctrl_c_twice_and_the_release_leave_every_rank_running(turn_gdb, tmp_path):
    with Job(tmp_path) as job, Held(turn_gdb, job) as terminal:
        before = job.steps(1)
        terminal.send("llm-continue\n")
        wait_until(lambda: job.steps(1) > before + 50, "steps of rank 1")
        terminal.interrupt()
        terminal.interrupt_until(PROMPT)  # the second one follows at once
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)
