"""`scripts/bench trace --peer FILE ...`: gdbext's merge beside other mergers, run from their own files.

A peer is the file of SGLang's merger (profile_merger.py) or of torch_utils' (sglang_profiler_trace_merger.py): what it
is, is told by its name. Walls are of the whole command. Memory is the sum over all its processes of what is theirs
alone and their part of what they share (PSS), sampled. The floor is to inflate all files twice and deflate them once
with the library and level that gdbext uses, in one process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

from gdbext.traces.gzip_text import LEVEL, LIBRARY, LIBRARY_NAME, pieces
from tests.polling import lasts
from tests.traces.making import Plan, kineto, simulate, trace_of

SIZES = {"4x50": (4, 50), "8x200": (8, 200), "2x2000": (2, 2000), "8x2000": (8, 2000)}
LIMIT = 1800  # seconds a command may take
MEMORY = 15 << 30  # bytes a peer may have
PEERS = {"profile_merger.py": "sglang", "sglang_profiler_trace_merger.py": "torch_utils"}
STARTS = {
    "sglang": "import sys; sys.path.insert(0, {folder!r}); import profile_merger as m; "
    "m.ProfileMerger({data!r}, 'run').merge_chrome_traces()",
    "torch_utils": "import sys, types; sys.path.insert(0, {folder!r}); "
    "sys.modules.setdefault('typer', types.ModuleType('typer')); import sglang_profiler_trace_merger as m; "
    "m.main('run', dir_data={data!r})",
}


def generate(folder: Path, ranks: int, megabytes: int) -> int:
    """Files of so many MB of text a rank, gz; returns the bytes of text. Its steps are repeated, later each time."""
    plan = Plan(ranks=ranks, steps=8, layers=40, kernels=12, late="kernel", who=1, work=1500,
                offsets={rank: 137.0 * rank for rank in range(ranks)}, jitter=0.05)  # fmt: skip
    slices = simulate(plan)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.starmap(_one, [(folder, plan, rank, slices[rank], megabytes) for rank in range(ranks)]))


def _one(folder: Path, plan: Plan, rank: int, slices: list, megabytes: int) -> int:
    document = trace_of(plan, rank, slices)
    span = round(max(start + dur for _, _, _, start, dur, _ in slices)) + 1
    head, _, tail = kineto({**document, "traceEvents": []}).encode().partition(b'"traceEvents": [\n')
    text = kineto(document).partition('"traceEvents": [\n')[2].rpartition("\n  ],")[0].encode()
    with gzip.open(folder / f"run-TP-{rank}.trace.json.gz", "wb", 1) as file:
        file.write(head + b'"traceEvents": [\n' + text)
        size = len(text)
        for turn in range(1, max(2, round(megabytes * 1_000_000 / len(text)))):
            later = re.sub(rb'"ts": (\d+)', lambda found, by=turn * span: b'"ts": %d' % (int(found[1]) + by), text)
            file.write(b",\n" + later)
            size += len(later)
        file.write(tail)
    return size


def measured(argv: list, environ: dict | None = None) -> tuple[float, float, float, str]:
    """Seconds, MB of memory at the worst moment, seconds of processor time, what went wrong."""
    begin, used = time.monotonic(), _processor()
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environ, text=True, start_new_session=True
    )
    worst = 0
    while process.poll() is None:
        looked = time.monotonic()
        worst = max(worst, _memory(process.pid))
        looked = time.monotonic() - looked
        if worst > MEMORY or time.monotonic() - begin > LIMIT:
            process.kill()
            process.wait()
            failed = "out of memory" if worst > MEMORY else "out of time"
            return time.monotonic() - begin, worst / 1e6, _processor() - used, failed
        lasts(max(0.05, 30 * looked))  # to look at 8 GB takes long
    wall = time.monotonic() - begin
    error = process.stderr.read().strip().splitlines()
    failed = process.returncode not in (0, 1) or (process.returncode == 1 and "gdbext" not in " ".join(argv))
    return (
        wall,
        worst / 1e6,
        _processor() - used,
        (error[-1][:120] if error else str(process.returncode)) if failed else "",
    )


def _processor() -> float:
    """Seconds that children which have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(pid: int) -> int:
    """PSS of a process and all below it, in bytes."""
    total, todo = 0, [pid]
    while todo:
        one = todo.pop()
        try:
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) << 10
            for task in os.listdir(f"/proc/{one}/task"):
                todo += map(int, Path(f"/proc/{one}/task/{task}/children").read_text().split())
        except (OSError, ValueError):
            continue
    return total


def floor(folder: Path) -> tuple[float, float]:
    """Seconds to inflate all twice and deflate once, and seconds of processor time."""
    begin, used = time.monotonic(), time.process_time()
    for path in sorted(folder.glob("run-TP-*")):
        for turn in range(2):
            engine = LIBRARY.compressobj(LEVEL, LIBRARY.DEFLATED, -15)
            with open(path, "rb") as file:
                for piece in pieces(file, []):
                    if turn:
                        engine.compress(piece)
    return time.monotonic() - begin, time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench trace")
    parser.add_argument("--peer", nargs="*", default=[], metavar="FILE", help="the file of another merger")
    parser.add_argument("--size", nargs="*", default=["4x50", "8x200"], choices=list(SIZES))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = []
    for size in options.size:
        ranks, megabytes = SIZES[size]
        with tempfile.TemporaryDirectory(prefix="gdbext-bench-trace-") as name:
            folder = Path(name)
            total = generate(folder, ranks, megabytes)
            print(
                f"{size}: {total / 1e6:.0f} MB of JSON, "
                f"{sum(one.stat().st_size for one in folder.iterdir()) / 1e6:.0f} MB gz"
            )
            out = str(folder / "out.json.gz")
            gdbext = [sys.executable, "-m", "gdbext", "trace"]
            least, least_used = floor(folder)
            tools = [("gdbext merge", [*gdbext, "merge", name, "-o", out, "--force", "-q"])]
            tools.append(("gdbext diagnose", [*gdbext, "diagnose", name, "-q"]))
            for peer in options.peer:
                kind = PEERS.get(os.path.basename(peer))
                if kind is None:
                    sys.exit(f"{peer}: known are {', '.join(PEERS)}")
                code = STARTS[kind].format(folder=os.path.dirname(os.path.abspath(peer)), data=name)
                tools.append((kind, [sys.executable, "-c", code]))
            name = f"inflate twice, deflate once ({LIBRARY_NAME} {LEVEL})"
            rows.append([size, name, f"{least:.1f}", f"{least_used:.1f}", "", "", ""])
            for tool, argv in tools:
                wall, memory, used, failed = measured(argv)
                made = folder / "out.json.gz" if tool == "gdbext merge" else folder / "merged-run.trace.json.gz"
                written = f"{made.stat().st_size / 1e6:.0f}" if made.exists() and "diagnose" not in tool else ""
                made.unlink(missing_ok=True)
                speed = failed or f"{least / wall:.0%} of the floor's speed"
                rows.append([size, tool, f"{wall:.1f}", f"{used:.1f}", f"{memory:.0f}", written, speed])
                print(rows[-1], flush=True)
    print(
        tabulate(
            rows, ["ranks x MB", "tool", "wall s", "processor s", "memory MB", "written MB", ""], tablefmt="github"
        )
    )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
