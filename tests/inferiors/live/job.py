"""Starts a program of the live matrix, waits until everyone stands at the last place, and ends it without leftovers."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from tests.inferiors.demo import _die_with_parent, state_of
from tests.inferiors.torch_job import free_port
from tests.polling import DEADLINE

REPOSITORY = Path(__file__).resolve().parents[3]
MARK = "GDBEXT_LIVE"
"""A variable that every process of a job inherits, however it detaches itself."""
RUNS_ON = 200_000_000
"""ns of processor time of a thread that waits by running."""


class LiveJob:
    """`pids`: role -> pid; `asked`: the pids that a user would name."""

    def __init__(
        self, family: str, name: str, roles: Sequence[str], asked: Sequence[str], how: str, settles: bool
    ) -> None:
        self._family, self._name, self._roles, self._asked, self._how = family, name, roles, asked, how
        self._settles, self._until = settles, 0.0
        self.pids: Dict[str, int] = {}
        self._started: List[subprocess.Popen[bytes]] = []

    @property
    def asked(self) -> List[int]:
        return [self.pids[role] for role in self._asked]

    def __enter__(self) -> LiveJob:
        with contextlib.ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gdbext-live-")))
            os.mkfifo(self._folder / "fifo")
            stack.callback(os.close, os.open(self._folder / "fifo", os.O_RDWR | os.O_CLOEXEC))
            self._log = stack.enter_context(open(self._folder / "log", "wb"))
            stack.callback(self._end)
            self._until = time.monotonic() + DEADLINE
            for words, more in self._commands():
                self._start(words, more)
            self._wait_for_places()
            self._left = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.close()

    def _commands(self) -> List[Tuple[List[str], Dict[str, str]]]:
        program = ["-m", f"tests.inferiors.live.{self._family}", self._name, str(self._folder)]
        port = str(free_port())
        if self._how == "mpirun":
            words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(len(self._roles))]
            return [([*words, sys.executable, *program], {})]
        if self._how == "torchrun":
            words = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={len(self._roles)}"]
            words += [f"--master-port={port}", f"--log-dir={self._folder / 'agent'}"]  # else that stays in /tmp
            return [([*words, *program], {})]
        if self._how == "ranks":
            ranks = [role for role in self._roles if role.isdigit()]
            same = {"WORLD_SIZE": str(len(ranks)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            return [([sys.executable, *program], {**same, "RANK": rank, "LOCAL_RANK": rank}) for rank in ranks]
        return [([sys.executable, *program], {})]

    def _start(self, words: Sequence[str], more: Dict[str, str]) -> None:
        environment = {**os.environ, **more, MARK: str(self._folder), "PYTHONPATH": str(REPOSITORY)}
        environment.setdefault("OMP_NUM_THREADS", "1" if self._how != "alone" else "2")
        self._started.append(
            subprocess.Popen(
                words,
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                preexec_fn=_die_with_parent,
                start_new_session=True,
            )
        )

    def _wait_for_places(self) -> None:
        """inotify would be an event too; the folder's few files are looked at 50 times a second."""
        while not all((self._folder / role).exists() for role in self._roles):
            if time.monotonic() > self._until or any(one.poll() not in (None, 0) for one in self._started):
                raise RuntimeError(f"{self._name} did not come to its place: {self._said()}")
            select.select([], [], [], 0.02)
        self.pids = {role: int((self._folder / role).read_text()) for role in self._roles}
        until = min(self._until, time.monotonic() + 3.0)
        for pid in self.pids.values() if self._settles else ():
            self._until_settled(pid, until)

    def _said(self) -> str:
        missing = [role for role in self._roles if not (self._folder / role).exists()]
        return f"no {', '.join(missing)}; {(self._folder / 'log').read_text(errors='replace')[-1500:]}"

    def _until_settled(self, pid: int, until: float) -> None:
        """The place is told just before the wait: until the main thread has slept for a while; MPI's never does, it
        has run for longer than the way there takes. One that a busy machine does not let run is waited for longer."""
        quiet, before, ran, first, runs = 0, "", 0, None, False
        while quiet < 4 and ran < RUNS_ON and time.monotonic() < (self._until if runs else until):
            with contextlib.suppress(OSError):
                now, runs = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(), state_of(pid)[0] == "R"
                quiet, before = (quiet + 1 if now == before and not runs else 0), now
                first = int(now.split()[0]) if first is None else first
                ran = int(now.split()[0]) - first
            select.select([], [], [], 0.05)

    def _end(self) -> None:
        for one in self._started:
            one.kill()
        mark = f"{MARK}={self._folder}".encode()
        for _ in range(3):  # who was just forked is found the next time
            for entry in Path("/proc").iterdir():
                with contextlib.suppress(OSError):
                    if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                        os.kill(int(entry.name), signal.SIGKILL)
        for one in self._started:
            one.wait()
