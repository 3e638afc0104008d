"""Starts ranks that come to breakpoints, and terminals that open their prompts."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Sequence

from tests.polling import DEADLINE, comes_true

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def ends(pid: int, seconds: float = DEADLINE) -> bool:
    """Wait until a process has ended, be it a child or not. A zombie has."""
    return bool(comes_true(lambda: not _lives(pid), seconds))  # os.pidfd_open came with Python 3.9


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


class Talker:
    """A process whose output is waited for."""

    def __init__(self, argv: List[str], environment: Dict[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.seen = ""
        self._read = 0  # characters that `until` has passed

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, text: str) -> str:
        """What it printed up to and with `text`."""
        end = time.monotonic() + DEADLINE
        while text not in self.seen[self._read :]:
            assert time.monotonic() < end and self._more(end), f"no {text!r} in {self.seen!r}"
        start, self._read = self._read, self.seen.index(text, self._read) + len(text)
        return self.seen[start : self._read]

    def has_said(self, text: str) -> None:
        """Wait for a text, wherever it stands among the others."""
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            assert time.monotonic() < end and self._more(end), f"no {text!r} in {self.seen!r}"

    def rest(self) -> str:
        """All that it prints until it ends."""
        end = time.monotonic() + DEADLINE
        while self._more(end):
            assert time.monotonic() < end, self.seen
        self.process.wait(DEADLINE)
        return self.seen

    def _more(self, end: float) -> bool:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
        data = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
        self.seen += data.decode()
        return bool(data)

    def drained(self) -> str:
        """What it has printed by now."""
        assert self.process.stdout is not None
        end = time.monotonic() + DEADLINE
        while select.select([self.process.stdout], [], [], 0)[0] and self._more(end):
            assert time.monotonic() < end, "it never stops printing"
        return self.seen

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        assert select.select([], [self.process.stdin], [], DEADLINE)[1], "it does not read what is typed"
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        """End of its input: Ctrl-D."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # a line that nobody has read
                    stream.close()
        self.process.wait(DEADLINE)


PORT = str(os.getpid())
"""Names the job: those of tests that run at the same time are others."""


class PdbJob:
    """Ranks of one job: `job[1]` is rank 1. Terminals are started with `terminal`."""

    def __init__(
        self,
        folder: Path,
        mode: str = "step",
        steps: int = 1,
        ranks: int = 3,
        program: str = "pdb_rank.py",
        wrapper: Sequence[str] = (),
        python: str = sys.executable,
        **environment: str,
    ) -> None:
        self.folder = folder
        self._common = {
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "here",
            "MASTER_PORT": PORT,
            "GDBEXT_PDB_DIR": str(folder),
            "HOME": str(folder.parent),
            **environment,
        }
        self._argv = [*wrapper, python, str(HERE / program), mode, str(steps)]
        self.count = ranks
        self._ranks: Dict[int, Talker] = {}
        self._terminals: List[Talker] = []

    def start(self, *ranks: int) -> PdbJob:
        for rank in ranks or range(self.count):
            self._ranks[rank] = Talker(self._argv, {**self._common, "RANK": str(rank)})
        return self

    def __getitem__(self, rank: int) -> Talker:
        return self._ranks[rank]

    def others(self, *than: int) -> List[Talker]:
        return [talker for rank, talker in self._ranks.items() if rank not in than]

    def terminal(self, *arguments: str) -> Talker:
        talker = Talker([sys.executable, "-m", "gdbext", "pdb", *arguments], self._common)
        self._terminals.append(talker)
        return talker

    def __enter__(self) -> PdbJob:
        return self

    def __exit__(self, *_: Any) -> None:
        with contextlib.ExitStack() as everybody:  # one that does not end keeps no other from being ended
            for talker in [*self._ranks.values(), *self._terminals]:
                everybody.callback(talker.end)

    def sockets(self) -> List[str]:
        """What the ranks left in their folder."""
        return [path.name for path in self.folder.glob("pdb-*/*")]

    def all_waiting(self, chosen: int = 1) -> None:
        for talker in self.others(chosen):
            talker.until(f"for rank {chosen}")
        self[chosen].until("opens its prompt")
