"""Jobs that are slow and look like hangs, and the hangs that look like them: a table, and how each is started.

    with BY_NAME["compile-slow"].start() as job:
        job.pids  # {0: 4711, 1: 4712, 2: 4713}

Rank 1 does what the row's name says; ranks 0 and 2 wait for it in a collective.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, ContextManager, Dict, List, Mapping, Tuple

from tests.inferiors.demo import _die_with_parent
from tests.inferiors.torch_job import free_port
from tests.polling import DEADLINE

PROGRAM = str(Path(__file__).with_name("slow_rank.py"))
TORCH_PROGRAM = str(Path(__file__).with_name("torch_loop.py"))
WEIGHTS = 24 << 20
"""Bytes of the file that stands for a model."""


class SlowJob:
    """The rank processes of one job, all at their places inside the `with` block. `pids`: rank -> pid."""

    def __init__(
        self,
        activities: Tuple[str, ...],
        stopped: Tuple[int, ...] = (),
        deadline: float = DEADLINE,
        program: str = PROGRAM,
    ) -> None:
        self._activities, self._stopped, self._deadline, self._program = activities, stopped, deadline, program
        self._port = free_port()  # what tells one job's ranks from another's, of tests beside these too
        self.pids: Dict[int, int] = {}
        self._processes: List[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SlowJob:
        with contextlib.ExitStack() as stack:
            # On a disk, which /tmp may not be: pages of a file system in memory cannot be dropped.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gdbext-slow-", dir="/var/tmp"))
            stack.callback(self._end)
            stack.callback(os.close, self._furnish(Path(folder)))
            for rank, activity in enumerate(self._activities):
                self._start(rank, activity, folder)
            for process in self._processes:
                self._until_ready(process)
            for rank, activity in enumerate(self._activities):
                if activity in _SETTLES:
                    self._until_asleep(self.pids[rank])
            for rank in self._stopped:
                os.kill(self.pids[rank], signal.SIGSTOP)
                os.waitid(os.P_PID, self.pids[rank], os.WSTOPPED | os.WNOWAIT)
            self._left = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.close()

    def _furnish(self, folder: Path) -> int:
        """The files the ranks use; returns the kept end of a pipe that nobody writes to."""
        with open(folder / "model.safetensors", "wb") as file:
            file.write(os.urandom(1 << 16) * (WEIGHTS >> 16))
            os.fsync(file.fileno())  # only clean pages can be dropped again
        (folder / "ptxas").symlink_to(os.path.realpath(sys.executable))
        os.mkfifo(folder / "fifo")
        return os.open(folder / "fifo", os.O_RDWR | os.O_CLOEXEC)

    def _start(self, rank: int, activity: str, folder: str) -> None:
        numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(self._activities))}
        process = subprocess.Popen(
            [sys.executable, self._program, activity, folder],
            env={
                **{**os.environ, **numbers, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self._port)},
                **{"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=_die_with_parent,
            start_new_session=True,  # its compiler ends with it
        )
        self._processes.append(process)
        self.pids[rank] = process.pid

    def _until_ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        ready = select.select([process.stdout], [], [], self._deadline)[0]
        if not ready or process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"pid {process.pid} did not come to its place (exit status {process.poll()})")

    def _until_asleep(self, pid: int) -> None:
        """`ready` comes just before the wait: until the main thread has slept for a while."""
        quiet, before, until = 0, "", time.monotonic() + self._deadline
        while quiet < 3 and time.monotonic() < until:
            now = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text()
            quiet, before = (quiet + 1 if now == before else 0), now
            select.select([], [], [], 0.05)

    def _end(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@dataclass(frozen=True)
class SlowHang:
    """One row. `cause` is the best answer, `also_causes` are right as well; `culprits` are ranks (none: healthy)."""

    name: str
    cause: str
    start: Callable[[], ContextManager[SlowJob]]
    also_causes: Tuple[str, ...] = ()
    culprits: Tuple[int, ...] = ()


def _job(activity: str, stopped: Tuple[int, ...] = ()) -> Callable[[], ContextManager[SlowJob]]:
    return functools.partial(SlowJob, ("peer", activity, "peer"), stopped)


def _torch(activity: str, others: str) -> Callable[[], ContextManager[SlowJob]]:
    """Three ranks with a real process group, of which rank 1 does what the name says."""
    return functools.partial(SlowJob, (others, activity, others), program=TORCH_PROGRAM)


_SETTLES = ("stuck", "store")
"""Activities that end in a wait for ever."""


SLOW_HANGS: Tuple[SlowHang, ...] = (
    SlowHang("swap-slow", "not-a-hang", _job("fault"), ("unknown",)),
    SlowHang("compile-slow", "not-a-hang", _job("compile"), ("unknown",)),
    SlowHang("loading-slow", "not-a-hang", _job("load"), ("unknown",)),
    SlowHang("tokenising-slow", "not-a-hang", _job("tokenize"), ("unknown",)),
    SlowHang("capture-slow", "not-a-hang", functools.partial(SlowJob, ("capture",) * 3), ("unknown",)),
    SlowHang("blocked-read", "missing-rank", _job("blocked"), culprits=(1,)),
    SlowHang("stopped-peer", "missing-rank", _job("peer", stopped=(1,)), culprits=(1,)),
    SlowHang("steps-healthy", "not-a-hang", _torch("steps", "steps")),
    SlowHang("steps-uneven", "not-a-hang", _torch("uneven", "uneven"), ("unknown",)),
    SlowHang("steps-computing", "not-a-hang", _torch("compute", "join")),
    SlowHang("checkpoint", "not-a-hang", _torch("save", "barrier")),
    # One look cannot tell a loop from a step that takes long.
    SlowHang("spinning", "missing-rank", _torch("spin", "stuck"), ("unknown",), culprits=(1,)),
    SlowHang("spinning-with-calls", "missing-rank", _torch("spin-with-calls", "stuck"), ("unknown",), culprits=(1,)),
    SlowHang("spinning-in-c", "missing-rank", _torch("spin-in-c", "stuck"), ("unknown",), culprits=(1,)),
    SlowHang("spinning-before-a-store", "missing-rank", _torch("spin", "store"), ("unknown",), culprits=(1,)),
    SlowHang("polling", "missing-rank", _torch("poll", "stuck"), ("unknown",), culprits=(1,)),
)

BY_NAME: Mapping[str, SlowHang] = {row.name: row for row in SLOW_HANGS}
