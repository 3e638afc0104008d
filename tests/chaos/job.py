"""The ranks of a round: started, asked whether they are well, ended."""

import functools
import mmap
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

from tests.inferiors.capture_process import HERE
from tests.polling import comes_true

SIZE = 64  # bytes of a rank in the shared file, see chaos_rank.c
PATIENCE = 120.0  # seconds; only a failing check waits that long


class ChaosJob:
    """Some chaos_rank processes in a process group of their own; `title` stands in their arguments."""

    def __init__(self, plan, program, folder, title):
        self.plan, self.title = plan, title
        self.stopped_by_us = set()
        state = Path(folder) / "state"
        state.write_bytes(bytes(4096))
        with open(state, "r+b") as file:
            self._state = mmap.mmap(file.fileno(), 4096)
        self.processes = []
        for index, rank in enumerate(plan.ranks):
            if rank == ("python",):
                words = [sys.executable, str(HERE / "chaos_rank.py"), str(state), str(index)]
            else:
                words = [program, str(state), str(index), str(plan.waiters), *rank]
            environment = {**os.environ, "RANK": str(index), "WORLD_SIZE": str(len(plan.ranks))}
            group = self.processes[0].pid if self.processes else 0
            nowhere = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            into_group = functools.partial(os.setpgid, 0, group)
            process = subprocess.Popen([*words, title], env=environment, preexec_fn=into_group, **nowhere)
            self.processes.append(process)
        self.pids = [process.pid for process in self.processes]
        self.marks = {}

    def wait_ready(self):
        until(lambda: all(self._field(index, 1) and self.beats(index) for index in range(len(self.pids))), "no start")
        self.marks = {pid: self._marks(pid) for pid, rank in zip(self.pids, self.plan.ranks) if not rank}

    def _field(self, index, number):
        return struct.unpack_from("<Q", self._state, SIZE * index + 8 * number)[0]

    def beats(self, index):
        return self._field(index, 0)

    @staticmethod
    def _marks(pid):
        """What a quiet process has that somebody could leave behind in it."""
        return sorted(os.listdir(f"/proc/{pid}/task")), sorted(os.listdir(f"/proc/{pid}/fd"))

    def hit(self, index, what):
        pid = self.pids[index]
        if self.processes[index].poll() is not None:
            return
        os.kill(pid, getattr(signal, f"SIG{what}"))
        if what == "STOP":
            self.stopped_by_us.add(index)
        if what == "CONT":
            self.stopped_by_us.discard(index)

    def held(self):
        """Whether a thread of a rank stands still for a tracer."""
        return any(state == "t" for pid in self.pids for state in states_of(pid))

    def harm(self):
        """What is wrong with those that should be there: texts, none when all are well."""
        found = []
        for index, process in enumerate(self.processes):
            label = f"rank {index}"
            if process.poll() is not None:
                killed = any(shot.who == label and shot.what == "KILL" for shot in self.plan.shots)
                if not killed:
                    found.append(f"{label} ended with {process.returncode}")
                continue
            found += self._harm_of(index, process.pid, label)
        return found

    def _harm_of(self, index, pid, label):
        tracer = waits(lambda: not tracers(pid), 30.0)
        if not tracer:
            return [f"{label} is still traced: {tracers(pid)}"]
        if index in self.stopped_by_us:
            if not waits(lambda: state_of(pid) == "T", 30.0):
                return [f"{label} was stopped and is now {state_of(pid)}"]
            os.kill(pid, signal.SIGCONT)
        before = self.beats(index)
        if not waits(lambda: self.beats(index) > before + 1, PATIENCE):
            return [f"{label} does not go on, its state is {state_of(pid)}"]
        if pid in self.marks and self._marks(pid) != self.marks[pid]:
            return [f"{label} has other threads or files than before"]
        return []

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self._state.close()


def until(condition, what):
    if not waits(condition, PATIENCE):
        raise RuntimeError(f"the round could not be set up: {what}")


def waits(condition, seconds):
    """Whether the condition comes true in that time."""
    return bool(comes_true(condition, seconds))


def tracers(pid):
    """The tracers of all threads of a process, by thread."""
    found = {}
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for tid in tids:
        tracer = _field_of(f"/proc/{pid}/task/{tid}/status", "TracerPid:")
        if tracer not in ("", "0"):
            found[tid] = tracer
    return found


def states_of(pid):
    """Of all threads."""
    try:
        return [_field_of(f"/proc/{pid}/task/{tid}/status", "State:")[:1] for tid in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def state_of(pid):
    return _field_of(f"/proc/{pid}/status", "State:")[:1]


def _field_of(path, name):
    try:
        with open(path, errors="replace") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(name)), "")
    except OSError:
        return ""
