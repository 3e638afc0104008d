"""Breakpoints of one rank: real ranks, a real `gdbext pdb`, and everything that may go wrong between them."""

import os
import signal
import sys
import timeit

import pytest

from gdbext import rankpdb
from gdbext.rankpdb.wire import connect
from tests.inferiors.pdb_job import DEADLINE, PdbJob


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "meet").mkdir(mode=0o700)
    return tmp_path / "meet"


@pytest.fixture
def prompt(folder):
    """A job with rank 1 at its prompt, the others waiting, and a terminal that has it."""
    with PdbJob(folder).start() as job:
        job.all_waiting()
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        yield job, terminal


def ends_well(job, *dead):
    for talker in job.others(*dead):
        assert "done" in talker.rest()
        assert talker.process.returncode == 0
    assert not job.sockets()


@pytest.mark.process
def test_the_others_wait_until_it_continues(prompt):
    job, terminal = prompt
    if sys.version_info >= (3, 13):  # pdb stops within the line of the breakpoint, not behind it
        terminal.type("n")
        terminal.until("(Pdb) ")
    for line, answer in (("p mine", "100"), ("n", "-> return mine"), ("p mine", "101"), ("w", "step()")):
        terminal.type(line)
        assert answer in terminal.until("(Pdb) ")
    assert all("done" not in talker.drained() for talker in job.others())
    terminal.type("c")
    terminal.until("the rank resumes")
    ends_well(job)
    assert "done 101" in job[1].seen


@pytest.mark.process
@pytest.mark.parametrize("way", ["quit", "end of input", "lost terminal", "hung up"])
def test_however_the_terminal_leaves(prompt, way):
    job, terminal = prompt
    if way == "quit":
        terminal.type("q")
    elif way == "end of input":
        terminal.hang_up()
    else:
        terminal.signal(signal.SIGKILL if way == "lost terminal" else signal.SIGHUP)
    ends_well(job)


@pytest.mark.process
@pytest.mark.parametrize("way", ["kill", "crash", "exception"])
def test_the_debugged_rank_ends(prompt, way):
    job, terminal = prompt
    if way == "kill":
        job[1].signal(signal.SIGKILL)
    else:
        terminal.type({"crash": "import os; os.abort()", "exception": "kill"}[way])
    terminal.until("the rank ends" if way == "exception" else "the rank has ended")  # without a key
    for talker in job.others(1):
        assert "resumes: rank 1 has" in talker.until("done")
    job[1].rest()
    assert job[1].process.returncode != 0
    ends_well(job, 1)


@pytest.mark.process
def test_release_lets_the_others_go_on_while_one_stays(prompt):
    job, terminal = prompt
    terminal.type("release")
    for talker in job.others(1):
        talker.until("done")
    terminal.type("p mine")
    assert "100" in terminal.until("100")
    assert "done" not in job[1].drained()
    terminal.type("c")
    ends_well(job)


@pytest.fixture
def before_a_collective(folder):
    """Rank 1 stands in front of all_reduce, which the others cannot join."""
    with PdbJob(folder, mode="collective").start() as job:
        job.all_waiting()
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        while "-> all_reduce()" not in terminal.seen:  # pdb stops within the line of the breakpoint since 3.13
            terminal.type("n")
            terminal.until("(Pdb) ")
        yield job, terminal


@pytest.mark.process
def test_a_step_over_a_collective_is_held_back_once(before_a_collective):
    job, terminal = before_a_collective
    terminal.type("n")
    said = terminal.until("(Pdb) ")
    assert "all_reduce may wait for ever: ranks 0, 2 are held here. Type `release` first" in said
    assert "in all_reduce" not in job[1].drained()
    terminal.type("release")
    terminal.until("(Pdb) ")
    terminal.type("n")
    assert "-> return number" in terminal.until("(Pdb) ")
    terminal.type("c")
    ends_well(job)


@pytest.mark.process
def test_a_step_that_waits_is_freed_from_another_terminal(before_a_collective):
    job, terminal = before_a_collective
    for _ in range(2):
        terminal.type("n")
    job[1].has_said("in all_reduce")
    terminal.until("This step is still running, and ranks 0, 2 are held here.")
    terminal.until("gdbext pdb --release")
    other = job.terminal("--release")
    assert "rank 1 no longer holds other ranks; released: 0, 2" in other.rest()
    assert other.process.returncode == 0
    assert "-> return number" in terminal.until("(Pdb) ")
    terminal.type("c")
    ends_well(job)


@pytest.mark.process
def test_there_is_nobody_to_release(folder):
    with PdbJob(folder) as job:
        nobody = job.terminal("--release")
        assert "no rank of this host holds others" in nobody.rest()
        assert nobody.process.returncode == 4


@pytest.mark.process
def test_a_waiting_rank_is_killed(prompt):
    job, terminal = prompt
    job[0].signal(signal.SIGKILL)
    job[0].rest()
    terminal.type("c")
    ends_well(job, 0)


@pytest.mark.process
def test_a_prompt_for_python(prompt):
    _, terminal = prompt
    terminal.type("interact")
    terminal.until(">>> ")
    terminal.type("print(mine + 1000)")
    assert "1100" in terminal.until(">>> ")
    terminal.type("for i in range(3):")
    terminal.until("... ")
    terminal.type("    print('row', i)")
    terminal.until("... ")
    terminal.type("")
    assert "row 2" in terminal.until(">>> ")
    terminal.hang_up()
    terminal.until("(Pdb) ")


@pytest.mark.process
def test_an_endless_command_can_be_interrupted(prompt):
    job, terminal = prompt
    terminal.type("exec('print(\"begun\")\\nwhile True: pass')")
    terminal.until("begun")
    terminal.signal(signal.SIGINT)
    assert "Interrupt" in terminal.until("(Pdb) ")
    terminal.type("c")
    ends_well(job)


@pytest.mark.process
def test_any_rank_can_be_chosen_at_run_time_and_back(folder):
    with PdbJob(folder).start() as job:
        job.all_waiting()
        second = job.terminal("--rank", "2")
        assert "rank 2" in second.until("(Pdb) ")
        job[1].until("waits at")
        second.signal(signal.SIGKILL)
        ends_well(job)


@pytest.mark.process
def test_the_choice_goes_back_while_nobody_has_the_prompt(folder):
    with PdbJob(folder).start() as job:
        job.all_waiting()
        first = job.terminal("--rank", "2")
        first.until("(Pdb) ")
        refused = job.terminal("--rank", "1")
        assert "continue there first" in refused.rest()
        assert refused.process.returncode == 4
        first.type("c")
        ends_well(job)


@pytest.mark.process
def test_two_in_a_row_in_one_terminal(folder):
    with PdbJob(folder, steps=2).start() as job:
        job.all_waiting()
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        terminal.type("c")
        assert "(time 2)" in terminal.until("(Pdb) ")
        assert "done 100" not in job[0].seen
        terminal.type("c")
        terminal.until("no rank of the job is left")
        ends_well(job)


@pytest.mark.process
def test_a_rank_that_comes_late(folder):
    with PdbJob(folder).start(0, 2) as job:
        for rank in (0, 2):
            job[rank].until("for rank 1")
        terminal = job.terminal()
        terminal.until("waiting for a rank")
        job.start(1)
        terminal.until("(Pdb) ")
        terminal.type("c")
        ends_well(job)


@pytest.mark.process
def test_a_rank_that_ends_before_it_comes(folder):
    with PdbJob(folder, mode="later").start() as job:
        for talker in job.others(1):
            talker.until(f"for rank 1 (pid {job[1].pid}, which has not arrived yet)")
        job[1].signal(signal.SIGKILL)
        job[1].rest()
        for talker in job.others(1):
            assert "rank 1 ended before it arrived here" in talker.rest()
        assert not job.sockets()


@pytest.mark.process
def test_a_waiter_that_comes_when_all_is_over(folder):
    with PdbJob(folder, steps=2).start(1) as job:
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        terminal.type("c")
        assert "(time 2)" in terminal.until("(Pdb) ")
        job.start(0)
        assert "rank 1 has gone on" in job[0].until("(time 2)")
        terminal.type("c")
        ends_well(job)


@pytest.mark.process
def test_some_ranks_only(folder):
    with PdbJob(folder, mode="only_some").start() as job:
        assert "done" in job[0].rest()
        job[2].until("for rank 1")
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        terminal.type("c")
        ends_well(job)


@pytest.mark.process
def test_the_time_is_up(folder):
    with PdbJob(folder, GDBEXT_PDB_TIMEOUT="0.5").start() as job:
        ends_well(job)
        assert "done 101" in job[1].seen


@pytest.mark.process
def test_a_chosen_rank_that_never_comes(folder):
    with PdbJob(folder, GDBEXT_PDB_TIMEOUT="0.5").start(0) as job:
        assert "rank 1 did not arrive in time" in job[0].rest()


@pytest.mark.process
@pytest.mark.parametrize("mode", ["apart", "inside"])
def test_without_blocking_the_others_run_to_clear(folder, mode):
    with PdbJob(folder, mode=mode).start() as job:
        for talker in job.others(1):
            talker.until("ran 0")
            talker.until("waits at")
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        assert all("done" not in talker.drained() for talker in job.others(1))
        terminal.type("c")
        ends_well(job)


@pytest.mark.process
def test_the_environment_chooses(folder):
    with PdbJob(folder, mode="environment", RANK_TO_DEBUG="2").start() as job:
        job.all_waiting(2)
        terminal = job.terminal("--list")
        listed = terminal.rest()
        assert "waited for by ranks 0, 1" in listed
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        terminal.type("c")
        ends_well(job)


@pytest.mark.process
@pytest.mark.parametrize("rank", ["none", "7"])
def test_a_choice_of_nobody(folder, rank):
    with PdbJob(folder, mode="environment", RANK_TO_DEBUG=rank).start() as job:
        ends_well(job)


def test_a_breakpoint_that_is_off_costs_next_to_nothing(monkeypatch):
    monkeypatch.setattr(rankpdb, "_OFF", True)
    assert min(timeit.repeat(rankpdb.breakpoint_, number=1000, repeat=50)) / 1000 < 2e-6


@pytest.mark.process
def test_leftovers_of_a_killed_run_are_in_nobodys_way(folder):
    with PdbJob(folder).start() as job:
        job.all_waiting()
        for talker in [*job.others(1), job[1]]:  # nobody is left to tidy up
            talker.signal(signal.SIGKILL)
            talker.rest()
        assert len(job.sockets()) == 3
    with PdbJob(folder).start() as job:
        job.all_waiting()
        terminal = job.terminal()
        terminal.until("(Pdb) ")
        terminal.type("c")
        ends_well(job)


@pytest.mark.process
def test_a_forked_child_is_no_rank_and_does_not_keep_it_alive(folder):
    with PdbJob(folder, mode="forked").start() as job:
        for talker in job.others():
            talker.has_said("child")
        job[0].has_said("pdb_rank.py:19 for rank 1")
        job[1].has_said("pdb_rank.py:19 in step")
        job[1].signal(signal.SIGKILL)
        assert "rank 1 has ended" in job[0].until("done")


@pytest.mark.process
def test_a_forked_child_does_not_keep_a_question_open(folder):
    """One that its parent had accepted and not yet read when it forked."""
    with PdbJob(folder, mode="asked").start() as job:
        job[1].has_said("may be asked")
        (path,) = map(str, folder.glob("pdb-*/1.*"))
        silent, answered = connect(path), connect(path)
        assert answered.send({"status": True}) and answered.receive(DEADLINE)  # so the one before it was accepted
        job[1].type("fork")
        job[1].has_said("child")
        job[1].signal(signal.SIGKILL)
        assert silent.receive(DEADLINE) is None
        silent.close()
        answered.close()


@pytest.mark.process
def test_a_folder_that_others_can_read_is_not_used(folder):
    folder.chmod(0o755)
    with PdbJob(folder).start(1) as job:
        assert "no breakpoint" in job[1].rest()
        assert job[1].process.returncode == 0


@pytest.mark.process
def test_sockets_are_private(prompt):
    job, _ = prompt
    for path in job.folder.glob("pdb-*/*"):
        assert oct(path.stat().st_mode)[-3:] == "600"
        assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.process
def test_nobody_is_listening(folder):
    with PdbJob(folder) as job:
        nobody = job.terminal("--list")
        assert "no rank on this host has reached a breakpoint_() yet" in nobody.rest()
        assert nobody.process.returncode == 4
        assert os.listdir(folder) == []
