"""What llm-check costs: time of one exception, and of work without any, free and under `llm-check on`, side by side."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tests.conftest import gdbs
from tests.gdb.gdbrun import INIT, QUIET, build

KINDS = {
    "none": "work without exceptions",
    "other-type": "exceptions of a type that no check throws",
    "same-type": "std::runtime_error that is no failed check",
}
SETTLED = 1.0  # seconds after gdb let the program run
HOOKS = {"llm-check on": "llm-check on", "break __cxa_throw if 0": "break __cxa_throw if 0"}


class Times(NamedTuple):
    """Microseconds of one round: over some seconds, the median of their means, and of their medians."""

    mean: float
    median: float


class Pair(NamedTuple):
    """One process, free and then watched."""

    free: Times
    watched: Times


def seconds(kind: str, rate: int, duration: int, gdb: str, hook: str) -> Pair:
    """As long free as with a gdb attached that has run `hook`, in one process: other load meets both alike."""
    program = build("check_throws.cpp", "-O2", "-g")
    with subprocess.Popen([program, kind, str(rate)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        watcher: Optional[subprocess.Popen[bytes]] = None
        try:
            process.stdout.readline()
            free = _since(0.0, process.stdout, duration)
            words = [gdb, *QUIET, "-batch", "-ex", f"source {INIT}", "-ex", f"attach {process.pid}", "-ex", hook]
            words += ["-ex", "shell echo go >&2", "-ex", "continue"]
            watcher = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            assert watcher.stderr is not None
            while watcher.stderr.readline() != b"go\n":
                assert watcher.poll() is None, "gdb has ended"
            return Pair(free, _since(time.monotonic() + SETTLED, process.stdout, duration))
        finally:
            process.kill()
            if watcher is not None:
                watcher.send_signal(signal.SIGKILL)
                watcher.wait()


def _since(start: float, lines: IO[str], duration: int) -> Times:
    """Of `duration` seconds that began after `start` (CLOCK_MONOTONIC, in the program too)."""
    rows: List[List[float]] = []
    while len(rows) < duration:
        begun, *times = map(float, lines.readline().split())
        if begun > start:
            rows.append(times)
    return Times(*(statistics.median(column) for column in zip(*rows)))


def measure(rate: int, duration: int) -> Iterator[Tuple[str, str, Pair]]:
    """By kind of work and by who watches. What nobody would wait for is measured for a sixth of the time."""
    for kind in KINDS:
        for gdb in gdbs():
            for name, hook in HOOKS.items():
                long = duration if hook == HOOKS["llm-check on"] else max(2, duration // 6)
                who = f"{name} ({'system' if gdb == gdbs()[0] else 'newest'} gdb)"
                yield kind, who, seconds(kind, rate, long, gdb, hook)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench check", description=__doc__)
    parser.add_argument("--rate", type=int, default=10000, help="exceptions a second (10000)")
    parser.add_argument("--seconds", type=int, default=10, help="how long each is measured (10)")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    options = parser.parse_args()
    begun = time.monotonic()
    found: Dict[str, Dict[str, Dict[str, float]]] = {}
    print(f"load when it began: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    for kind, who, pair in measure(options.rate, options.seconds):
        if kind not in found:
            print(f"{KINDS[kind]}, {options.rate:,} a second; microseconds each", flush=True)
        found.setdefault(kind, {})[who] = {
            f"{state}_{name}": value
            for state, times in pair._asdict().items()
            for name, value in times._asdict().items()
        }
        texts = [
            f"{name} {free:8.3f} -> {watched:8.3f} {watched / free if free else 0:7.2f} x"
            for name, free, watched in zip(Times._fields, pair.free, pair.watched)
        ]
        print(f"  {who:<38} {'    '.join(texts)}", flush=True)
    print(f"measured in {time.monotonic() - begun:.0f} s; load when it ended: {os.getloadavg()[0]:.1f}")
    if options.json:
        Path(options.json).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
