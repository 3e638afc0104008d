"""Processes that wait for locks and for one another: what a diagnosis of each should find. Data for table-driven tests.

    with BY_NAME["two-mutexes"].start() as started:
        started.pids      # what to diagnose, the culprit first

The programs are lock_hangs.c, lock_library.c (a constructor under the loader's lock), lock_gil.py with lock_gil.c, and
lock_queue.py.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, List, Sequence, Tuple

HERE = Path(__file__).resolve().parent
PROGRAM_FLAGS = ("-g", "-O1", "-pthread", "-fno-optimize-sibling-calls", "-Wall", "-Wextra", "-Wno-unused-parameter")
LIBRARY_FLAGS = (*PROGRAM_FLAGS, "-shared", "-fPIC")


@dataclass(frozen=True)
class Started:
    """The processes of one hang. `pids` are those to diagnose; the first is to blame, or the first ones."""

    pids: Tuple[int, ...]


@dataclass(frozen=True)
class LockHang:
    """A hang and its truth.

    `lock` is the kind of wait (knowledge/runtimes/glibc_locks.py) that the decisive thread has, "" where it has none.
    `culprit` is a text that the summary must contain when `cause` is found. A healthy one must not get a finding:
    `cause` is what it gets where the stacks tell that much, and `unknown` without a culprit is right as well."""

    name: str
    cause: str
    lock: str
    culprit: str
    start: Callable[[], object]  # a context manager that gives a Started
    also_causes: Tuple[str, ...] = ()
    healthy: bool = False
    culprits: Tuple[int, ...] = (0,)  # positions in `pids`
    confidence: str = "high"


def build(name: str, source: str, flags: Sequence[str]) -> str:
    """Path of what `source` becomes, in a folder of its own so that its name can be what it pretends to be."""
    text = (HERE / source).read_bytes()
    for header in re.findall(rb'#include "(.+)"', text):
        text += (HERE / source).with_name(header.decode()).read_bytes()
    mark = hashlib.sha256(text + " ".join(flags).encode()).hexdigest()[:12]
    made = HERE / "build" / f"{Path(source).stem}-{mark}" / name
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as folder:
            new = os.path.join(folder, name)
            subprocess.run(["gcc", *flags, "-o", new, str(HERE / source)], check=True)
            os.replace(new, made)  # whoever builds at the same time makes the same file
    return str(made)


def program() -> str:
    return build("lock_hangs", "lock_hangs.c", PROGRAM_FLAGS)


def _native(name: str) -> Callable[[], object]:
    def argv() -> List[str]:
        library = [build("plugin.so", "lock_library.c", LIBRARY_FLAGS)] if name == "loader" else []
        return [program(), name, *library]

    return lambda: _running(argv())


def _python(library: str, *flags: str) -> Callable[[], object]:
    def argv() -> List[str]:
        made = build(library, "lock_gil.c", (*LIBRARY_FLAGS, *flags))
        return [sys.executable, "-S", str(HERE / "lock_gil.py"), made]

    return lambda: _running(argv())


def _queue(how: str) -> Callable[[], object]:
    return lambda: _running([sys.executable, "-S", str(HERE / "lock_queue.py"), how])


@contextmanager
def _running(argv: Sequence[str]) -> Iterator[Started]:
    """The program at the point where it says `ready`; a line before that is the pid of the culprit."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1] == "ready":
                break
        assert lines and lines[-1] == "ready", f"{argv} said {lines}"
        yield Started((*map(int, lines[:-1]), process.pid))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# The inner functions of these have no name in a C library without debug files, and memory alone proves no lock.
UNNAMED = ("unknown",)
CIRCLE, GIL, FORK = "lock-order-deadlock", "gil-deadlock", "fork-after-cuda"

LOCK_HANGS: Tuple[LockHang, ...] = (
    LockHang("two-mutexes", CIRCLE, "mutex", "wait for each other", _native("two-mutexes")),
    LockHang("three-mutexes", CIRCLE, "mutex", "circle", _native("three-mutexes")),
    LockHang("robust-mutexes", CIRCLE, "mutex", "wait for each other", _native("robust-mutexes"), UNNAMED),
    LockHang("inheriting-mutexes", CIRCLE, "mutex", "wait for each other", _native("inheriting-mutexes"), UNNAMED),
    LockHang("rwlock", CIRCLE, "rwlock", "wait for each other", _native("rwlock")),
    LockHang("twice", CIRCLE, "mutex", "already holds", _native("twice")),
    LockHang("dead-owner", "other", "mutex", "ended without", _native("dead-owner"), also_causes=(CIRCLE,)),
    LockHang("fork-with-lock", FORK, "mutex", "child", _native("fork-with-lock")),
    LockHang("two-processes", CIRCLE, "mutex", "wait for each other", _native("two-processes"), culprits=(0, 1)),
    LockHang("loader", CIRCLE, "loader", "loader", _native("loader")),
    LockHang("gil-extension", GIL, "mutex", "Python's GIL", _python("extension.so")),
    LockHang(
        "gil-driver-destructor",
        GIL,
        "driver",
        "Python's GIL",
        _python("libcuda.so.1", "-Wl,-soname,libcuda.so.1", "-s"),
    ),
    LockHang("stopped-peer", "missing-rank", "", "stopped", _native("stopped-peer"), also_causes=("other",)),
    LockHang("stopped-pipe-peer", "missing-rank", "", "stopped", _native("stopped-pipe-peer"), also_causes=("other",)),
    LockHang("dead-peer", "missing-rank", "", "nobody", _native("dead-peer"), also_causes=("other",)),
    LockHang("contended", "not-a-hang", "mutex", "", _native("contended"), healthy=True),
    # What these look like is an idle pool. They are none: the main thread waits for the end of a thread that waits for
    # a condition, or an item, that only another thread of the same process could give, and all of those wait as well.
    # No file, timer, signal handler or other process can ever end that.
    LockHang("pool", CIRCLE, "", "is left that could wake", _native("pool")),
    LockHang("semaphore", CIRCLE, "", "is left that could wake", _native("semaphore")),
    # The same in Python, where Ctrl-C would at least end it.
    LockHang("python-join", CIRCLE, "", "is left that could wake", _queue("join"), confidence="medium"),
    # Idle ones: an order from outside, a clock, a signal or another process can wake them.
    LockHang("pool-with-orders", "not-a-hang", "", "", _native("pool-with-orders"), healthy=True),
    LockHang("pool-with-housekeeper", "not-a-hang", "", "", _native("pool-with-housekeeper"), healthy=True),
    LockHang("semaphore-with-handler", "not-a-hang", "", "", _native("semaphore-with-handler"), healthy=True),
    LockHang("shared-semaphore", "not-a-hang", "", "", _native("shared-semaphore"), healthy=True),
    LockHang("python-select", "not-a-hang", "", "", _queue("select"), healthy=True),
)

BY_NAME = {hang.name: hang for hang in LOCK_HANGS}
