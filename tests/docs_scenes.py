"""The looks that README and docs show: each saved once from a running job, so that examples print the same everywhere.

python -m tests.docs_scenes [NAME ...]    # records them anew into tests/data/docs
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Sequence

from tests.inferiors.demo import DemoJob
from tests.inferiors.lock_hangs import BY_NAME as LOCK_HANGS

ROOT = Path(__file__).parents[1]
SCENES = ROOT / "tests" / "data" / "docs"


@contextlib.contextmanager
def demo(hang: str, ranks: int) -> Iterator[Sequence[int]]:
    with DemoJob(hang, ranks=ranks, wait="yield") as job:
        yield [pid for _, pid in sorted(job.pids.items())]


@contextlib.contextmanager
def locks(name: str) -> Iterator[Sequence[int]]:
    with LOCK_HANGS[name].start() as started:
        yield started.pids


HERE = (
    (f"{ROOT}/tests/inferiors", "/srv/engine"),
    (str(ROOT), "/srv/engine"),
    (sys.base_prefix, "/usr/local"),
    (f'"host": "{socket.gethostname()}"', '"host": "node7"'),
)
"""What of the recording machine does not belong into a public file, and what stands there instead."""

JOBS = {
    "hang": lambda: demo("pinned-alloc", 4),
    "counts": lambda: demo("collective-mismatch-async", 3),
    "gil": lambda: locks("gil-driver-destructor"),
}


def record(name: str) -> Path:
    """The snapshot of a job of `JOBS`, without the folder in which it ran."""
    path = SCENES / f"{name}.json"
    with JOBS[name]() as pids:
        words = [sys.executable, "-m", "gdbext", "diagnose", *map(str, pids), "-q", "--save", str(path), "--force"]
        subprocess.run(words, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    text = path.read_text()
    for here, shown in HERE:
        text = text.replace(here, shown)
    path.write_text(text)
    return path


if __name__ == "__main__":
    SCENES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or JOBS:
        print(record(name))
