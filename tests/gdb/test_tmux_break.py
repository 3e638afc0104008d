"""`gdbext attach` and llm-break in tmux: a real terminal with real keys; and all ranks run on afterwards."""

import sys

import pytest

from tests.gdb.break_rounds import PLACE
from tests.gdb.gdbrun import Terminal
from tests.inferiors.demo import DemoJob, state_of
from tests.inferiors.pdb_job import ends
from tests.tmux import SHELL, Tmux

pytestmark = pytest.mark.gdb
PROMPT = Terminal.PROMPT


@pytest.fixture
def attached(turn_gdb):
    """Ranks that work, and a window with a gdb that has them attached."""
    with DemoJob("healthy-busy", wait="poll") as job, Tmux({"GDBEXT_GDB": turn_gdb}) as window:
        window.enter(f"{sys.executable} -m gdbext attach {' '.join(map(str, job.pids.values()))}")
        window.until(PROMPT)
        yield job, window


def assert_free(job):
    for rank, pid in job.pids.items():
        state, tracer = state_of(pid)
        assert tracer == 0 and state in "RSD", (rank, state, tracer)
        assert job.steps_progress(rank)


def test_keys(attached):
    job, window = attached
    window.answer(f"llm-break '{PLACE}' --rank 1 --others hold --wait 30", PROMPT)
    window.answer("llm-continue", PROMPT)  # a rank may have been past the place already
    assert "ranks 0,2 wait at the same place" in window.answer("llm-continue", PROMPT)
    window.answer("next", PROMPT)  # rank 1 alone
    window.press("Up")
    window.until("next")
    window.press("Enter")  # `next` once more
    window.until(PROMPT)
    window.press("Up", "Up", "Up")
    window.until("llm-continue")
    window.press("Enter")
    assert "rank 1 is at" in window.until(PROMPT)

    window.press("C-z")
    window.until("not suspended")
    window.press("Enter")
    window.until(PROMPT)
    window.answer("llm-break delete", "(y or n) ")
    window.answer("n", PROMPT)
    assert f"at {PLACE}" in window.answer("llm-break list", PROMPT)
    window.answer("llm-break delete", "(y or n) ")
    window.answer("y", PROMPT)
    window.answer(f"llm-break '{PLACE}' --if 0 == 1", PROMPT)
    window.enter("llm-continue")
    assert all(job.steps_progress(rank) for rank in job.pids)  # they run
    window.press("C-c")
    window.until(PROMPT)
    assert state_of(job.pids[0])[0] == "t"

    gdb = state_of(job.pids[0])[1]
    window.press("C-d")
    window.until("Quit anyway? (y or n) ")
    window.enter("y")
    window.until(SHELL)
    assert ends(gdb)
    assert_free(job)


def test_suspended_once_nobody_is_attached(attached):
    job, window = attached
    window.answer("llm-detach-all", PROMPT)
    window.press("C-z")
    window.until("Stopped", SHELL)
    window.enter("fg")
    window.until("gdbext attach")
    assert "= 42" in window.answer("print 6 * 7", PROMPT)
    assert_free(job)


def test_the_window_is_killed(attached):
    job, window = attached
    window.answer(f"llm-break '{PLACE}' --rank 1 --others hold --wait 30", PROMPT)
    window.answer("llm-continue", PROMPT)  # a rank may have been past the place already
    assert "ranks 0,2 wait at the same place" in window.answer("llm-continue", PROMPT)
    window.close()
    assert_free(job)
