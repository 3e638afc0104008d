"""llm-break on ranks that are killed, or become another program."""

import re

import pytest

from tests.gdb.break_job import PROMPT, Held, Job
from tests.inferiors.demo import state_of

pytestmark = pytest.mark.gdb


@pytest.fixture
def job(tmp_path):
    with Job(tmp_path) as running:
        yield running


HELD_TEXT = {
    "hold": "rank 0 (waits at the same place|did not arrive)",  # on a busy machine it may have been let pass
    "stop": "the others are stopped with it",
    "run": "the others keep running, not attached, until llm-continue",
}


@pytest.mark.parametrize("policy", ["hold", "stop", "run"])
def test_a_rank_that_is_killed_is_named_and_the_others_go_on(turn_gdb, job, policy):
    with Held(turn_gdb, job) as terminal:
        terminal.command(f"llm-break decode_step --rank 1 --others {policy} --wait 30")
        assert "rank 1 is at decode_step" in terminal.command("llm-continue")
        job.kill(2)
        said = terminal.command("llm-continue")
        fate = (
            "has ended, and is not attached again" if policy == "run" else "was killed while it was held, and is let go"
        )
        assert said.count(f"gdbext: rank 2 {fate}") == said.count("rank 2") == 1
        assert re.search(f"rank 1 is at decode_step; {HELD_TEXT[policy]}", said), said
        said = terminal.command("llm-continue")
        assert re.search(f"rank 1 is at decode_step; {HELD_TEXT[policy]}", said), said
        job.kill(1)
        terminal.send("llm-continue\n")
        terminal.expect("rank 1 was killed while it was held, and is let go")
        terminal.expect("no rank that may stop here is left: the others run until Ctrl-C")
        job.assert_running(0)
        terminal.interrupt_until(PROMPT)
        assert "mistake" not in terminal.command("llm-break")
        terminal.command("llm-detach-all")
        job.assert_free(0)


@pytest.mark.parametrize("policy", ["hold", "stop", "run"])
def test_a_rank_that_becomes_another_program_is_let_go(turn_gdb, job, policy):
    with Held(turn_gdb, job) as terminal:
        terminal.command(f"llm-break checkpoint --rank 1 --others {policy} --wait 30")
        assert "rank 1 is at checkpoint" in terminal.command("llm-continue")
        job.set("gone", 2, 1)
        job.set("becomes", 2, 1)
        if policy == "run":
            job.set("gone", 1, 1)  # nobody waits for the rank that stands
            job.until_program(2, "/sleep")
        said = terminal.command("llm-continue")
        assert "SIGURG" not in said
        assert re.search(
            r"gdbext: rank 2 has become another program, \S*/sleep, and is (let go|not attached again)", said
        )
        if "rank 1 is at checkpoint" not in said:
            said = terminal.command("llm-continue")
        assert re.search(f"rank 1 is at checkpoint; {HELD_TEXT[policy]}", said), said
        assert "rank 2" not in terminal.command("llm-continue")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1)
    assert state_of(job.pids[2]) == ("S", 0)
