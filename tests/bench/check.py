"""What llm-check costs: time of one exception, and of work without any, free and under `llm-check on`, side by side."""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Dict, Iterator, List, Optional

from tests.conftest import gdbs
from tests.gdb.gdbrun import INIT, QUIET, build

KINDS = {
    "none": "work without exceptions",
    "other-type": "exceptions of a type that no check throws",
    "same-type": "std::runtime_error that is no failed check",
}
SETTLED = 1.0  # seconds after gdb let the program run
HOOKS = {"llm-check on": "llm-check on", "break __cxa_throw if 0": "break __cxa_throw if 0"}


def seconds(kind: str, rate: int, duration: int, gdb: Optional[str] = None, hook: str = "") -> List[float]:
    """Microseconds of one round of work, for each second; with a gdb attached that has run `hook`."""
    program = build("check_throws.cpp", "-O2", "-g")
    with subprocess.Popen([program, kind, str(rate)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        watcher: Optional[subprocess.Popen[bytes]] = None
        try:
            process.stdout.readline()
            if gdb is not None:
                words = [gdb, *QUIET, "-batch", "-ex", f"source {INIT}", "-ex", f"attach {process.pid}", "-ex", hook]
                words += ["-ex", "shell echo go >&2", "-ex", "continue"]
                watcher = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                assert watcher.stderr is not None
                while watcher.stderr.readline() != b"go\n":
                    pass
            return list(_since(time.monotonic() + SETTLED, process.stdout, duration))
        finally:
            process.kill()
            if watcher is not None:
                watcher.send_signal(signal.SIGKILL)
                watcher.wait()


def _since(start: float, lines: IO[str], duration: int) -> Iterator[float]:
    """Microseconds of the seconds that began after `start` (CLOCK_MONOTONIC, in the program too)."""
    while duration:
        begun, microseconds = map(float, lines.readline().split())
        if begun > start:
            duration -= 1
            yield microseconds


def measure(rate: int, duration: int) -> Dict[str, Dict[str, float]]:
    """Median microseconds by kind of work and by who watches."""
    found: Dict[str, Dict[str, float]] = {}
    for kind in KINDS:
        found[kind] = {"free": statistics.median(seconds(kind, rate, duration))}
        for gdb in gdbs():
            for name, hook in HOOKS.items():
                key = f"{name} ({'system' if gdb == gdbs()[0] else 'newest'} gdb)"
                found[kind][key] = statistics.median(seconds(kind, rate, duration, gdb, hook))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench check", description=__doc__)
    parser.add_argument("--rate", type=int, default=10000, help="exceptions a second (10000)")
    parser.add_argument("--seconds", type=int, default=10, help="how long each is measured (10)")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    options = parser.parse_args()
    begun = time.monotonic()
    found = measure(options.rate, options.seconds)
    for kind, figures in found.items():
        print(f"{KINDS[kind]}, {options.rate:,} a second")
        for name, microseconds in figures.items():
            ratio = microseconds / figures["free"] if figures["free"] else float("nan")
            print(f"  {name:<40} {microseconds:10.3f} us each   {ratio:8.2f} x")
    print(f"measured in {time.monotonic() - begun:.0f} s")
    if options.json:
        Path(options.json).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
