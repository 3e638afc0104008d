"""--if of llm-break: raw as gdb takes it, checked when it is set, and never true because it failed."""

import json

import pytest

from tests.gdb.break_job import PROMPT, Held, Job

pytestmark = pytest.mark.gdb


@pytest.fixture
def job(tmp_path):
    with Job(tmp_path) as running:
        yield running


@pytest.mark.parametrize("tensor", ["hidden_states", '"hidden_states"'])
def test_a_statistic_of_a_tensor_decides(turn_gdb, job, tensor):
    """The condition has blanks, quotes and &&, and names variables that exist only at the place."""
    with Held(turn_gdb, job) as terminal:
        terminal.command(f'llm-break decode_step --others hold --if $_llm_tensor_stat({tensor},"nan")>0 && step > 5')
        at = job.steps(2) + 60
        job.set("nan_at", 2, at)
        assert "rank 2 is at decode_step; rank" in terminal.command("llm-continue")
        assert f"= {at} " in terminal.command("print step")
        assert "= 1 " in terminal.command('print $_llm_tensor_stat("hidden_states", "nan")')
        assert "= 5 " in terminal.command('print $_llm_tensor_stat(hidden_states, "max")')
        terminal.confirmed("llm-break delete")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


@pytest.mark.parametrize("condition", ["if step % 50 == 0", "--if step % 50 == 0", "--if 'step % 50 == 0'"])
def test_every_rank_stands_at_the_same_passing(any_gdb, job, condition):
    """gdb's way to write it, ours, and in a shell's quotes."""
    with Held(any_gdb, job) as terminal:
        terminal.command(f"llm-break decode_step --rank 1 --others hold --wait 60 {condition}")
        for _ in range(2):
            assert "ranks 0,2 wait at the same place" in terminal.command("llm-continue")
            steps = [terminal.command(f"llm-rank apply {rank} print step % 50") for rank in range(3)]
            assert all("= 0" in one for one in steps), steps
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


def test_a_wrong_condition_is_refused_when_it_is_set(any_gdb, job):
    with Held(any_gdb, job) as terminal:
        for condition, told in (
            ("no_such_name > 1", 'No symbol "no_such_name" in current context'),
            ("step >", "A syntax error in expression"),
            ('$_llm_tensor_statt("h","nan")>0', "gdb has no function $_llm_tensor_statt"),
            ("step > 5 --count 3", "--if takes the rest of the line: put --count before it"),
            ("step > 5 --json", "--if takes the rest of the line: put --json before it"),
        ):
            said = terminal.command(f"llm-break decode_step --rank 1 --if {condition}")
            assert "cannot be evaluated" in said and told in said, said
        assert "A syntax error" in terminal.command("llm-break in_a_library_to_come --if step >")
        assert "a condition is missing" in terminal.command("llm-break decode_step --if")
        assert "No breakpoint of llm-break" in terminal.command("llm-break list")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


@pytest.mark.parametrize("policy", ["hold", "stop", "run"])
@pytest.mark.parametrize(
    "condition, told",
    [
        ('$_llm_tensor_stat(step, "nan") > 0', "no layout of a tensor is known for the type"),
        ("*(int*)0 == 0", "Cannot access memory at address 0x0"),
        ("hidden_states", "of type const fastertransformer::Tensor, neither true nor false"),
        ("$_no_such_variable", "of type void, neither true nor false"),
    ],
)
def test_one_that_fails_at_a_hit_is_reported_once_for_each_rank_and_stops_nobody(
    turn_gdb, job, policy, condition, told
):
    with Held(turn_gdb, job) as terminal:
        terminal.command(f"llm-break decode_step --rank 1-2 --others {policy} --if {condition}")
        terminal.send("llm-continue\n")
        seen = ""
        while not ("rank 1 does not stop" in seen and "rank 2 does not stop" in seen):
            seen += terminal.expect(r"reported once for each rank\)")
        job.assert_running(0, 1, 2)
        seen = " ".join((seen + terminal.interrupt_until(PROMPT)).split())
        assert seen.count("cannot be evaluated") == 2 and told in seen, seen
        assert "Traceback" not in seen and "is at decode_step" not in seen
        listed = terminal.command("llm-break list --json")
        (point,) = json.loads(listed[listed.index("{") : listed.rindex("}") + 1])["breakpoints"]
        assert point["errors"].keys() == {"rank 1", "rank 2"} and not point["passed"]
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


def test_a_line_of_python_is_not_waited_for(turn_gdb, job):
    with Held(turn_gdb, job) as terminal:
        said = terminal.command("llm-break serve.py:24 --rank 1")
        assert "in a shell: gdbext pdb --inject serve.py:24 --rank 1" in said
        assert "No breakpoint of llm-break" in terminal.command("llm-break list")


def test_delete_asks_before_it_deletes_all(any_gdb, job):
    with Held(any_gdb, job) as terminal:
        for place in ("decode_step", "checkpoint"):
            terminal.command(f"llm-break {place}")
        terminal.send("llm-break delete\n")
        terminal.expect(r"Delete all breakpoints of llm-break\? \(y or n\) ")
        terminal.send("what\n")
        terminal.expect(r"Please answer y or n.\s+Delete all breakpoints of llm-break\? \(y or n\) ")
        terminal.command("n")
        assert terminal.command("llm-break list").count("Breakpoint ") == 2
        assert terminal.command("llm-break delete 1").count("Breakpoint ") == 1
        terminal.confirmed("llm-break delete")
        assert "No breakpoint of llm-break" in terminal.command("llm-break delete"), "nothing to ask about"
        terminal.command("llm-break checkpoint")
        terminal.command("set confirm off")
        assert "No breakpoint of llm-break" in terminal.command("llm-break delete")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)


LOSES_AN_INTERRUPT = """python
from gdbext.inside_gdb.rank_breakpoints import gathering
def interrupted(command, run=gathering.compat.run):
    gathering.compat.run = run
    gdb.execute("continue &", to_string=True)
    raise KeyboardInterrupt
gathering.compat.run = interrupted
end
"""


def test_a_ctrl_c_that_gdb_does_not_hand_to_the_ranks_stops_them(any_gdb, job):
    """It comes while gdb is in a function of ours."""
    with Held(any_gdb, job) as terminal:
        terminal.command("llm-break decode_step --rank 1 --others hold --if 0 == 1")
        for line in LOSES_AN_INTERRUPT.splitlines():
            terminal.send(line + "\n")
        terminal.expect(PROMPT)
        terminal.send("llm-continue\n")
        terminal.expect("Ctrl-C; the ranks that it resumed are being stopped")
        terminal.expect("stopped on the way; llm-continue resumes all")
        assert "stopped" in terminal.command("llm-ranks")
        terminal.command("llm-detach-all")
        job.assert_free(0, 1, 2)
