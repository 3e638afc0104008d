"""A breakpoint that is put into running ranks: from the rank's side, handed in without a debugger."""

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from gdbext.rankpdb.wire import Wire
from tests.inferiors.pdb_job import DEADLINE, HERE, PdbJob

PROGRAM = HERE / "pdb_loop.py"
LINE = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "the line that tests name" in text)


class Asker:
    """What `gdbext pdb --inject` is for a rank."""

    def __init__(self, job, *ranks, line=LINE, file="pdb_loop.py", chosen=1):
        self.wires, self.answers = {}, {}
        token = os.urandom(4).hex()
        for rank in ranks or range(job.count):
            name = f"gdbext-test-{token}-{rank}"
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind("\0" + name)
                listener.listen(1)
                listener.settimeout(DEADLINE)
                request = {"report": name, "token": token, "rank": rank, "chosen": chosen, "world": None}
                job[rank].type("take " + json.dumps({**request, "file": file, "line": line}))
                self.wires[rank] = Wire(listener.accept()[0])
            self.answers[rank] = self.wires[rank].receive(DEADLINE)
            job[rank].until("took")

    def go(self):
        for wire in self.wires.values():
            assert wire.send({"go": True})

    def leave(self):
        for wire in self.wires.values():
            wire.close()


@pytest.fixture
def job(tmp_path, request):
    (tmp_path / "meet").mkdir(mode=0o700)
    patience = getattr(request, "param", "60")
    with PdbJob(tmp_path / "meet", program="pdb_loop.py", ranks=2, PATIENCE=patience) as job:
        yield job.start()


@pytest.fixture
def ask(job):
    askers = []

    def start(*ranks, **wanted):
        askers.append(Asker(job, *ranks, **wanted))
        return askers[-1]

    yield start
    for asker in askers:
        asker.leave()


def is_free(job, rank, threads=None):
    """Nothing traces the rank any more; threads that end meanwhile are waited for."""
    said, end = "", time.monotonic() + DEADLINE
    while "free" not in said or (threads and not said.strip().endswith(threads)):
        assert time.monotonic() < end, said
        job[rank].type("state")
        job[rank].until("state")
        said = job[rank].until("\n")


def ends(job, *dead):
    for talker in job.others(*dead):
        talker.type("end")
        talker.rest()
        assert talker.process.returncode == 0
    assert not job.sockets()


@pytest.mark.process
def test_it_stops_once_and_is_gone(job, ask):
    asker = ask()
    assert asker.answers[1]["placed"] == "step"
    asker.go()
    terminal = job.terminal()
    shown = terminal.until("(Pdb) ")
    assert f"pdb_loop.py:{LINE} in step" in shown and f"({LINE})step()" in shown
    job[0].until(f"waits at pdb_loop.py:{LINE} for rank 1")
    terminal.type("p mine % 10, number > 0")
    assert "(0, True)" in terminal.until("(Pdb) ")
    terminal.type("n")
    terminal.until("-> return mine")
    assert "goes on" not in job[0].drained()
    terminal.type("c")
    job[0].until("rank 1 has gone on")
    assert asker.wires[1].receive(DEADLINE) == {"over": True}
    for rank in (0, 1):
        is_free(job, rank)
    asker.leave()
    ends(job)


@pytest.mark.process
def test_nothing_stops_before_all_are_ready_and_nothing_stays_when_the_terminal_goes(job, ask):
    asker = ask()
    asker.leave()
    for rank in (0, 1):
        is_free(job, rank, "1")  # threads: the station's has ended too
    assert not job.sockets()
    assert "waits" not in job[0].drained()
    ends(job)


@pytest.mark.process
def test_the_terminal_is_lost_before_it_opened_the_prompt(job, ask):
    asker = ask()
    asker.go()
    job[0].until("waits at")
    job[1].until("opens its prompt")
    asker.leave()
    job[0].until("rank 1 has gone on")
    is_free(job, 1)
    ends(job)


@pytest.mark.process
def test_the_chosen_rank_is_killed(job, ask):
    asker = ask()
    job[1].type("paced")  # comes to the line when told
    asker.go()
    job[0].until("waits at")
    job[1].signal(signal.SIGKILL)
    job[1].rest()
    job[0].until("resumes: rank 1 has ended")
    is_free(job, 0)
    ends(job, 1)


@pytest.mark.process
@pytest.mark.parametrize("job", ["0.3"], indirect=True)
def test_ranks_out_of_step_are_not_held_for_long(job, ask):
    asker = ask()
    job[1].type("paced")
    asker.go()
    for _ in range(3):
        job[0].until("resumes: rank 1 has not come")
    job[0].until("failed to arrive three times")
    is_free(job, 0)
    asker.leave()
    ends(job)


@pytest.mark.process
@pytest.mark.parametrize(
    "wanted, said",
    [
        ({"line": LINE - 4}, f"line {LINE - 4} of "),
        ({"file": "other.py"}, "no code of other.py is loaded"),
        ({"file": "__init__.py"}, "may be any of"),
    ],
)
def test_what_cannot_be_placed_is_said_and_changes_nothing(job, ask, wanted, said):
    asker = ask(1, **wanted)
    assert said in asker.answers[1]["error"]
    is_free(job, 1, "1")
    ends(job)


@pytest.mark.process
def test_a_text_that_comes_too_late_does_nothing(job):
    request = {"report": "gdbext-test-nobody", "token": "0", "rank": 1, "chosen": 1, "world": None}
    job[1].type("take " + json.dumps({**request, "file": "pdb_loop.py", "line": LINE}))
    job[1].until("took")
    is_free(job, 1, "1")
    ends(job)


def test_the_program_is_where_the_test_thinks():
    assert "def step" in Path(PROGRAM).read_text().splitlines()[LINE - 3]
