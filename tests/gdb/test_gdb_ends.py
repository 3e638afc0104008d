"""gdb is told to end while the ranks run: it ends clean, whatever features of ours are in use, and the ranks run on."""

import os
import select
import signal
import subprocess

import pytest

from tests.gdb.break_job import PROMPT, Held, Job
from tests.gdb.gdbrun import DEADLINE, INIT, Terminal, build

pytestmark = pytest.mark.gdb
FEATURES = {
    "attached": [],
    "checks": ["llm-check on"],
    "printers and streams": ["llm-tensor list", "llm-stream list", "llm-ranks"],
}
BREAKS = {
    "hold": "llm-break decode_step --rank 1 --others hold --if 0 == 1",
    "stop": "llm-break decode_step --rank 1 --if 0 == 1",
}


@pytest.fixture
def job(tmp_path):
    with Job(tmp_path) as running:
        yield running


def assert_ends_clean(terminal, number):
    os.kill(terminal.pid, getattr(signal, number))
    said = terminal.wait()
    assert terminal.process.returncode == 0, said
    assert "internal-error" not in said and "Python Exception" not in said, said


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("feature", FEATURES)
def test_while_ranks_run(any_gdb, job, feature, number):
    with Held(any_gdb, job) as terminal:
        for line in FEATURES[feature]:
            terminal.command(line)
        terminal.send("continue\n")
        job.assert_running(0, 1, 2)
        assert_ends_clean(terminal, number)
        job.assert_free(0, 1, 2)


@pytest.mark.parametrize("policy", BREAKS)
def test_while_ranks_gather_or_run_to_a_breakpoint(any_gdb, job, policy):
    with Held(any_gdb, job) as terminal:
        terminal.command(BREAKS[policy])
        terminal.send("llm-continue\n")
        job.assert_running(0, 1, 2)
        assert_ends_clean(terminal, "SIGTERM")
        job.assert_free(0, 1, 2)


def lines_of(running, count):
    """It goes on: wait until it has printed so many lines more."""
    for _ in range(count):
        assert select.select([running.stdout], [], [], DEADLINE)[0], "it stands still"
        assert running.stdout.readline(), "it has ended"


@pytest.mark.parametrize("error", ["0", "700"])
def test_while_a_condition_is_evaluated_all_the_time(any_gdb, error):
    """gdb 13.1 failed an assertion, and the process died of the breakpoint that was left in it."""
    program = build("check_busy.c", "-g", "-O1")
    with subprocess.Popen([program, error], stdout=subprocess.PIPE, bufsize=0) as running:
        try:
            lines_of(running, 1)
            with Terminal(any_gdb, f"source {INIT}", f"llm-attach-all {running.pid}") as terminal:
                terminal.expect(PROMPT)
                terminal.command("llm-check on")
                terminal.send("continue\n")
                terminal.expect("Continuing")
                lines_of(running, 1500)  # more than the pipe held when it was stopped
                assert_ends_clean(terminal, "SIGTERM")
            lines_of(running, 20000)
            assert running.poll() is None
        finally:
            running.kill()
