"""llm-break on ranks that are killed, that become another program, and whose tensors decide."""

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
    "hold": "rank 0 (waits at the same place|did not come there)",  # on a busy machine it may have been let pass
    "stop": "the others are stopped with it",
    "run": "the others run on, not attached, until llm-continue",
}


@pytest.mark.parametrize("policy", ["hold", "stop", "run"])
def test_a_rank_that_is_killed_is_named_and_the_others_go_on(turn_gdb, job, policy):
    with Held(turn_gdb, job) as terminal:
        terminal.command(f"llm-break decode_step --rank 1 --others {policy}")
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
        terminal.expect("none of the ranks that may stop is left: the others run until Ctrl-C")
        job.assert_running(0)
        terminal.interrupt()
        terminal.expect(PROMPT)
        assert "mistake" not in terminal.command("llm-break")
        terminal.command("llm-detach-all")
        job.assert_free(0)


@pytest.mark.parametrize("policy", ["hold", "stop", "run"])
def test_a_rank_that_becomes_another_program_is_let_go(turn_gdb, job, policy):
    with Held(turn_gdb, job) as terminal:
        terminal.command(f"llm-break checkpoint --rank 1 --others {policy}")
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


def test_a_statistic_of_a_tensor_decides(turn_gdb, job):
    condition = '$_llm_tensor_stat(hidden_states, "nan") > 0'
    with Held(turn_gdb, job) as terminal:
        terminal.command(f"llm-break decode_step --others hold --if '{condition}'")
        at = job.steps(2) + 60
        job.set("nan_at", 2, at)
        assert "rank 2 is at decode_step; rank" in terminal.command("llm-continue")
        assert f"= {at} " in terminal.command("print step")
        assert "= 1 " in terminal.command('print $_llm_tensor_stat("hidden_states", "nan")')
        assert "= 5 " in terminal.command('print $_llm_tensor_stat(hidden_states, "max")')
        terminal.command("llm-break delete")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


def test_a_wrong_expression_is_told_once_and_stops_there(turn_gdb, job):
    with Held(turn_gdb, job) as terminal:
        for wrong, told in (
            ("step", "no layout of a tensor is known for the type"),
            ('"hidden"', 'No symbol "hidden" in current context'),
        ):
            terminal.command(
                f"llm-break decode_step --rank 1 --others hold --if '$_llm_tensor_stat({wrong}, \"nan\") > 0'"
            )
            said = terminal.command("llm-continue")
            assert said.count("cannot be told") == 1 and told in said, said
            assert "rank 1 is at decode_step; rank" in said
            assert "Traceback" not in said
            terminal.command("llm-break delete")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)
