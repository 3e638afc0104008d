"""Load for the machine beside tests: processor, memory traffic, starts of processes, short writes of files.

What a job does, in which order and for how long, follows from the seed; how fast it gets on is the machine's.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

_PR_SET_PDEATHSIG = 1
_AREA = 48 << 20  # bytes; what one job has of memory at most
_FILE = 4 << 20  # bytes; one file at a time and job, so that a disk is never filled
_PHASES = ("processor", "memory", "starts", "files")


def plan(seed: int, job: int) -> Iterator[Tuple[str, float]]:
    """What a job does one after the other, and for how many seconds."""
    draw = random.Random(f"{seed} {job}")
    while True:
        yield draw.choice(_PHASES), draw.uniform(0.1, 1.5)


def _count(number: int) -> int:
    return sum(range(number))


def _do(phase: str, folder: Path, area: bytearray) -> None:
    """A piece of work of some milliseconds."""
    if phase == "processor":
        _count(200_000)
    elif phase == "memory":
        half = len(area) // 2
        area[:half] = area[half:]
    elif phase == "starts":
        subprocess.run(["/bin/sh", "-c", ":"], check=True)
    else:
        path = folder / f"{os.getpid()}"
        with path.open("wb") as file:
            file.write(area[:_FILE])
            os.fsync(file.fileno())
        path.unlink()


def _work(seed: int, job: int, folder: Path) -> None:
    area = bytearray(_AREA)
    for phase, seconds in plan(seed, job):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            _do(phase, folder, area)


def _die_with_parent(parent: int, by: signal.Signals) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


def _started(work: Callable[[], None]) -> int:
    """A child that does this, and never outlives us. Its pid."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            _die_with_parent(parent, signal.SIGKILL)
            work()
        finally:
            os._exit(1)
    return child


def run(jobs: int, seed: int, seconds: Optional[float], command: Sequence[str]) -> int:
    """Load until the command, or the time, is over. The exit status of the command."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    _die_with_parent(os.getppid(), signal.SIGTERM)  # by which the files go, too
    pids: List[int] = []
    with tempfile.TemporaryDirectory(prefix="gdbext-load-") as folder:
        try:
            for job in range(jobs):
                pids.append(_started(lambda job=job: _work(seed, job, Path(folder))))  # type: ignore[misc]
            print(f"load: {jobs} jobs, seed {seed}", file=sys.stderr, flush=True)
            if command:
                return subprocess.run(command, timeout=seconds).returncode
            threading.Event().wait(seconds)
        except (KeyboardInterrupt, subprocess.TimeoutExpired) as error:
            print(f"load: ended, {type(error).__name__}", file=sys.stderr)
            return 130 if isinstance(error, KeyboardInterrupt) else 124
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/load", description=__doc__)
    parser.add_argument("--jobs", type=int, default=4, help="how many at once (4)")
    parser.add_argument("--seed", type=int, default=1, help="what they do follows from it (1)")
    parser.add_argument("--seconds", type=float, default=3600, help="the end in any case (3600)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the load lasts as long as this does")
    words = parser.parse_args()
    return run(words.jobs, words.seed, words.seconds, words.command[words.command[:1] == ["--"] :])


if __name__ == "__main__":
    sys.exit(main())
