"""What the tests stand on: the terminal that they type into, the job that they debug."""

import os
import re
import signal

import pytest

from tests.gdb.gdbrun import Terminal
from tests.inferiors.demo import DemoFailed, DemoJob

pytestmark = pytest.mark.gdb


def test_texts_that_come_in_one_go_can_be_waited_for_one_after_the_other(turn_gdb):
    with Terminal(turn_gdb, "python import os; os.write(1, b'first, second, third')") as terminal:
        assert terminal.expect("first").endswith("first")
        assert terminal.expect("second") == ", second"
        assert terminal.expect("third") == ", third"


def test_a_job_whose_rank_a_debugger_does_not_let_end_is_not_waited_for(turn_gdb):
    """The kernel tells the debugger first, and this one does not listen."""
    with DemoJob("healthy-busy", wait="poll") as job, Terminal(turn_gdb) as terminal:
        terminal.expect(re.escape(Terminal.PROMPT))
        terminal.command(f"attach {job.pids[1]}")
        os.kill(terminal.pid, signal.SIGSTOP)
        with pytest.raises(DemoFailed, match=rf"{job.pids[1]} \(Z, traced by {terminal.pid}\)"):
            job.close(0.5)
