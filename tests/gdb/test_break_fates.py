"""llm-break on ranks that are killed, that become another program, and whose tensors decide."""

import mmap
import os
import re
import signal
import struct
import subprocess
import time

import pytest

from tests.gdb.gdbrun import DEADLINE, INIT, Terminal, build
from tests.inferiors.demo import state_of

pytestmark = pytest.mark.gdb
PROMPT = re.escape(Terminal.PROMPT) + r"\Z"
WORLD, MOST = 3, 4
FIELDS = ("steps", "begun", "gone", "becomes", "nan_at")  # of break_rank.cpp's State


class Job:
    """Three ranks that step together, and what the test tells them."""

    def __init__(self, folder):
        path = folder / "state"
        path.write_bytes(bytes(8 * MOST * len(FIELDS)))
        program = build("break_rank.cpp", "-g", "-O1", "-std=c++17")
        with open(path, "r+b") as file:
            self._state = mmap.mmap(file.fileno(), 0)
        self.processes = [
            subprocess.Popen(
                [program, str(path)],
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(WORLD)},
                stdout=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(WORLD)
        ]
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"
        self.pids = [process.pid for process in self.processes]

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()

    def set(self, field, rank, value):
        struct.pack_into("Q", self._state, 8 * (MOST * FIELDS.index(field) + rank), value)

    def steps(self, rank):
        return struct.unpack_from("Q", self._state, 8 * rank)[0]

    def kill(self, rank):
        """It dies, and the others are told not to wait for it."""
        self.set("gone", rank, 1)
        os.kill(self.pids[rank], signal.SIGKILL)
        end = time.monotonic() + DEADLINE
        while state_of(self.pids[rank])[0] not in ("Z", "X", None):
            assert time.monotonic() < end
            time.sleep(0.002)  # its parent is told only when gdb has been

    def until_program(self, rank, name):
        end = time.monotonic() + DEADLINE
        while not os.readlink(f"/proc/{self.pids[rank]}/exe").endswith(name):
            assert time.monotonic() < end
            time.sleep(0.002)  # nobody tells of an exec

    def assert_free(self, *ranks):
        """Nobody traces them, and they go on."""
        for rank in ranks:
            assert state_of(self.pids[rank])[1] == 0
        self.assert_running(*ranks)

    def assert_running(self, *ranks):
        for rank in ranks:
            first, end = self.steps(rank), time.monotonic() + DEADLINE
            while self.steps(rank) < first + 2:
                assert time.monotonic() < end, f"rank {rank} does not go on"
                time.sleep(0.002)  # polls shared memory: there is nothing to block on


@pytest.fixture
def job(tmp_path):
    running = Job(tmp_path)
    try:
        yield running
    finally:
        running.close()


class Held(Terminal):
    """A gdb on a terminal that has the ranks attached."""

    def __init__(self, gdb, job):
        super().__init__(gdb, f"source {INIT}", "set width 0", "llm-attach-all " + " ".join(map(str, job.pids)))
        self.expect(PROMPT)

    def command(self, line):
        """In one line, whatever gdb's width is."""
        return " ".join(super().command(line).split())


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
