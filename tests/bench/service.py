"""scripts/bench service: what `gdbext watch --service` costs while nothing happens, in % of one core."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List

from tests.polling import lasts

RANK = """
import os, sys, threading
gate = threading.Event()
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=gate.wait, daemon=True).start()
print(flush=True)
sys.stdin.read()
"""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    """Seconds, with those of children that have ended: looks and alerts."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=100)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two polls")
    parser.add_argument("--seconds", type=float, default=130.0, help="two searches for jobs lie in it")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        ranks: List[subprocess.Popen[str]] = []
        for number in range(options.ranks):
            variables = {"RANK": str(number), "WORLD_SIZE": str(options.ranks), "LOCAL_RANK": str(number)}
            environ = {**os.environ, **variables, "LOCAL_WORLD_SIZE": str(options.ranks), "MASTER_ADDR": "here",
                       "MASTER_PORT": "1"}  # fmt: skip
            rank = subprocess.Popen(
                [sys.executable, "-c", RANK, str(options.threads)], stdin=-1, stdout=-1, text=True, env=environ
            )
            ranks.append(stack.enter_context(rank))
            stack.callback(rank.kill)
        for rank in ranks:
            assert rank.stdout is not None
            rank.stdout.readline()
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        argv = [sys.executable, "-m", "gdbext", "watch", "--service", "--every", str(options.every), "--into", folder]
        argv += ["--parent", str(os.getpid()), "--still", "1000000", "--textfile", f"{folder}/gdbext.prom"]
        service = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        stack.callback(service.kill)
        assert service.stdout is not None
        following = next(line for line in service.stdout if '"watching"' in line)
        before, began = cpu_of(service.pid), time.monotonic()
        lasts(options.seconds)
        share = (cpu_of(service.pid) - before) / (time.monotonic() - began)
        service.send_signal(signal.SIGTERM)
    found = {"ranks": options.ranks, "threads": options.threads, "every": options.every, "cpu": round(share, 5)}
    print(json.loads(following)["text"][:100])
    print(
        f"{options.ranks} ranks of {options.threads} threads, a poll every {options.every:g} s: {share:.2%} of a core"
    )
    if options.json:
        Path(options.json).write_text(json.dumps(found) + "\n", "utf-8")


if __name__ == "__main__":
    main()
