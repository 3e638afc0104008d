"""llm-break on a running job: ranks stop where they should, the others wait, and always all run on afterwards.

scripts/break-rounds makes a campaign of the rounds.
"""

import os
import re
import signal

import pytest

from tests.gdb.break_rounds import PLACE, PROMPT, assert_free, attach, play, text_of
from tests.gdb.gdbrun import INFERIORS, INIT, Terminal, gdb_batch
from tests.inferiors.demo import DemoJob

pytestmark = pytest.mark.gdb
CALLER = "ftNcclAllReduceSum"  # of the collective
ROUNDS = 10


@pytest.fixture
def job():
    with DemoJob("healthy-busy", wait="poll") as running:
        yield running


@pytest.fixture
def held(any_gdb, job):
    """A terminal whose gdb has the ranks attached, and their code as it was before."""
    before = {rank: text_of(pid) for rank, pid in job.pids.items()}
    with Terminal(any_gdb, f"source {INIT}", attach(job)) as terminal:
        terminal.expect(PROMPT)
        yield terminal, before


def test_hit_and_continue_leaves_no_rank_behind(any_gdb, job):
    few = max(2, ROUNDS // 5)
    done = gdb_batch(
        any_gdb,
        attach(job),
        f"llm-break '{PLACE}' --rank 1 --others hold --wait 30 --json",
        "llm-break no_such_place --rank 0 --json",
        *["llm-continue"] * (1 + ROUNDS),  # the first time a rank may have been past the place already
        "llm-break list --json",
        "llm-break",
        "show schedule-multiple",
        "llm-break delete --json",
        "show schedule-multiple",
        f"llm-break {CALLER} --rank 1",
        *["llm-continue"] * ROUNDS,
        "llm-break list --json",
        "llm-break delete",
        f"llm-break '{PLACE}' --rank 1 --others run",
        *["llm-continue"] * few,
        "llm-break list --json",
        "llm-break delete 99",
        "llm-detach-all",
    )
    assert_free(job)
    documents = [one for one in done.documents if "breakpoints" in one]
    first, pending, holding, deleted, stopping, running = documents
    assert not first["breakpoints"][0]["pending"] and "SIGKILL" in first["notes"][0]
    assert pending["breakpoints"][0]["pending"]
    assert holding["breakpoints"][0]["passed"] == {"rank 1": 1 + ROUNDS}
    assert [(one["rank"], bool(one["hit"]), one["held"]) for one in holding["ranks"]] == [
        (0, False, True),
        (1, True, False),
        (2, False, True),
    ]
    assert done.err.count("ranks 0,2 wait at the same place") >= ROUNDS, done.text[-3000:]
    assert all("synchronize" in one["function"] for one in holding["ranks"])
    assert not deleted["breakpoints"]
    assert stopping["breakpoints"][0]["passed"] == {"rank 1": ROUNDS}
    assert [one["rank"] for one in stopping["ranks"] if one["hit"]] == [1]
    assert running["breakpoints"][0]["passed"] == {"rank 1": few}
    assert [one["rank"] for one in running["ranks"]] == [1]
    assert "ranks 0,2 keep running, not attached" in running["notes"][0]
    assert "NCCL's status service" in done.err  # the nearest timeout: libnccl is there
    assert re.findall(r"processes is (on|off)", done.out) == ["off", "on"]
    assert "no breakpoint 99 of llm-break" in done.err
    assert "Traceback" not in done.text


@pytest.mark.parametrize("policy", ["hold", "stop", "run"])
def test_in_the_caller_of_the_collective(turn_gdb, policy):
    """Before the call, where no rank is in it, and behind it; both by line, which gdb may turn off when a rank goes."""
    lines = (INFERIORS / "engine" / "nccl_utils.cc").read_text().splitlines()
    call = next(number for number, line in enumerate(lines, 1) if "NCCLCHECK(ncclAllReduce(" in line)
    behind = next(number for number, line in enumerate(lines[call:], call + 1) if "if (sync_collectives)" in line)
    for line in (call, behind):
        play(turn_gdb, policy, 2, f"nccl_utils.cc:{line}")


def test_what_is_said_instead_of_a_stop(turn_gdb, job):
    done = gdb_batch(
        turn_gdb,
        attach(job),
        f"llm-break '{PLACE}' --rank 0 --action log plan_.rank no_such_name",
        f"llm-break '{PLACE}' --rank 2 --count 2 --action report",
        f"llm-break '{PLACE}' --rank 0 --action log --if *(int*)0 == 1",
        'print $_llm_tensor_stat(no_such_name, "nan")',
        'print $_llm_tensor_stat("no_such_name", "nan")',
        'print $_llm_tensor_stat(1, "what")',
        f"llm-break '{PLACE}' --count 4 --others hold --wait 60 --if $_llm_rank() == 1",
        "llm-continue",
        "llm-break delete",
        "llm-detach-all",
    )
    assert_free(job)
    assert f"rank 0 at {PLACE}, passing 1: plan_.rank = 0, no_such_name = <No symbol" in done.err
    assert f"Rank 2 (pid {job.pids[2]}) is at {PLACE}" in done.out
    assert "decode" in done.out.split("Rank 2 (pid")[1].split("Stack")[1]
    assert "rank 0 does not stop at breakpoint 3: its condition cannot be evaluated: Cannot access memory" in done.err
    assert "$_llm_tensor_stat: no what; one of nan, inf" in done.err
    assert done.err.count(f"rank 1 is at {PLACE}; ranks 0,2 wait") == 1
    assert "Traceback" not in done.text


def test_ctrl_c_ctrl_z_and_the_dead_man(held, job):
    terminal, before = held
    terminal.command(f"llm-break '{PLACE}' --others hold --limit 2 --if 0 == 1")
    steps = job.steps(0)
    terminal.send("llm-continue\n")
    assert all(job.steps_progress(rank) for rank in job.pids) and job.steps(0) > steps
    terminal.interrupt_until(PROMPT)
    assert "cannot" not in terminal.command("llm-ranks")
    terminal.confirmed("llm-break delete")
    terminal.command(f"llm-break '{PLACE}' --rank 1 --others hold --wait 30 --limit 4")
    terminal.in_step()
    said = terminal.command("llm-continue")
    assert "ranks 0,2 wait at the same place" in said
    terminal.send("\x1a")
    terminal.expect("not suspended")
    terminal.expect("in 1 s every rank is released")
    terminal.expect("no command for 4 s: every rank is released")
    assert_free(job, before)
    assert "no process is attached" in terminal.command("llm-detach-all")


@pytest.mark.parametrize("end", ["SIGTERM", "SIGHUP", "Ctrl-D"])
def test_the_end_of_gdb_leaves_no_breakpoint_in_a_rank(held, job, end):
    terminal, before = held
    if end == "Ctrl-D":
        terminal.command(f"llm-break '{PLACE}' --rank 1 --others hold --wait 30")
        terminal.in_step()
        terminal.send("\x04")
        terminal.expect("Quit anyway")
        terminal.send("y\n")
    else:
        terminal.command(f"llm-break '{PLACE}' --rank 1 --if 0 == 1")
        terminal.send("llm-continue\n")
        assert all(job.steps_progress(rank) for rank in job.pids)
        os.kill(terminal.pid, getattr(signal, end))
    terminal.wait()
    assert_free(job, before)


def test_a_killed_gdb_whose_ranks_are_held_kills_none(held, job):
    """They stand right at the place: the instruction there must not be the breakpoint's when nobody traces them."""
    terminal, before = held
    terminal.command(f"llm-break '{PLACE}' --rank 1 --others hold --wait 30")
    terminal.in_step()
    assert "ranks 0,2 wait at the same place" in terminal.command("llm-continue")
    terminal.send("continue\n")  # rank 1 alone
    terminal.expect("rank 1 runs alone, and the others are stopped")
    terminal.kill()
    assert_free(job, before)


@pytest.mark.slow
@pytest.mark.parametrize("policy, rounds", [("hold", 20), ("stop", 20), ("run", 20)])
def test_sixty_rounds_strand_nobody(turn_gdb, policy, rounds):
    """scripts/break-rounds plays two hundred with each policy on each gdb."""
    assert len(play(turn_gdb, policy, rounds)) == rounds
