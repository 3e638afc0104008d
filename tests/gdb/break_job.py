"""A small job for the tests of llm-break: break_rank.cpp, and a gdb that has its ranks attached."""

import mmap
import os
import re
import signal
import struct
import subprocess

from tests.gdb.gdbrun import DEADLINE, INIT, Terminal, build
from tests.inferiors.demo import state_of
from tests.polling import wait_until

PROMPT = re.escape(Terminal.PROMPT) + r"\Z"
WORLD, MOST = 3, 4
FIELDS = ("steps", "begun", "gone", "becomes", "nan_at", "urgent")  # of break_rank.cpp's State


class Job:
    """Three ranks that step together, and what the test tells them."""

    def __init__(self, folder, **environment):
        path = folder / "state"
        path.write_bytes(bytes(8 * MOST * len(FIELDS)))
        program = build("break_rank.cpp", "-g", "-O1", "-std=c++17")
        with open(path, "r+b") as file:
            self._state = mmap.mmap(file.fileno(), 0)
        self.processes = [
            subprocess.Popen(
                [program, str(path)],
                env={**os.environ, **environment, "RANK": str(rank), "WORLD_SIZE": str(WORLD)},
                stdout=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(WORLD)
        ]
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"
        self.pids = [process.pid for process in self.processes]

    def __enter__(self):
        return self

    def __exit__(self, *details):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait(DEADLINE)
            process.stdout.close()

    def set(self, field, rank, value):
        struct.pack_into("Q", self._state, 8 * (MOST * FIELDS.index(field) + rank), value)

    def get(self, field, rank):
        return struct.unpack_from("Q", self._state, 8 * (MOST * FIELDS.index(field) + rank))[0]

    def steps(self, rank):
        return self.get("steps", rank)

    def until(self, field, rank, value):
        stays = f"{field} of rank {rank} to be {value}"
        wait_until(lambda: self.get(field, rank) >= value, lambda: f"{stays}, it is {self.get(field, rank)}")

    def kill(self, rank):
        """It dies, and the others are told not to wait for it."""
        self.set("gone", rank, 1)
        os.kill(self.pids[rank], signal.SIGKILL)
        # Its parent is told only when gdb has been.
        wait_until(lambda: state_of(self.pids[rank])[0] in ("Z", "X", None), f"the end of rank {rank}")

    def until_program(self, rank, name):
        wait_until(lambda: os.readlink(f"/proc/{self.pids[rank]}/exe").endswith(name), f"exec of {name}")

    def assert_free(self, *ranks):
        """Nobody traces them, and they go on."""
        for rank in ranks:
            assert state_of(self.pids[rank])[1] == 0
        self.assert_running(*ranks)

    def assert_running(self, *ranks):
        for rank in ranks:
            self.until("steps", rank, self.steps(rank) + 2)


class Held(Terminal):
    """A gdb on a terminal that has the ranks attached."""

    def __init__(self, gdb, job):
        super().__init__(gdb, f"source {INIT}", "set width 0", "llm-attach-all " + " ".join(map(str, job.pids)))
        self.expect(PROMPT)

    def command(self, line):
        """In one line, whatever gdb's width is."""
        return " ".join(super().command(line).split())
