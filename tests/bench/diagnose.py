"""How long each tool takes over all ranks of a torch job, and how long it keeps a rank standing still.

Every tool looks at the same processes in the same run; the pause is measured by a heartbeat inside each rank, so
it is what the rank feels and not what the tool claims. Times are of this machine, the ratios are what travels.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tabulate import tabulate

from tests.inferiors.torch_job import TorchJob

BIN = Path(sys.executable).parent
REPOSITORY = Path(__file__).parents[2]


@dataclass
class Tool:
    """One row: `argv` is run once for each rank, with {} as the pid; or once for all with {all}."""

    name: str
    argv: list
    walls: list = field(default_factory=list)  # seconds for all ranks
    pauses: list = field(default_factory=list)  # ms, the longest of any rank
    sums: list = field(default_factory=list)  # ms a rank stood still in sum, the worst rank
    frames: int = 0
    claimed: list = field(default_factory=list)  # ms, what the tool itself reports


def tools():
    gdb = ["-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", "{}", "-ex", "thread apply all bt"]
    rows = [
        Tool("gdb -batch 'thread apply all bt'", [shutil.which("gdb"), *gdb]),
        Tool("gdb, newest", [str(BIN / "gdb"), *gdb]),
        Tool("pystack remote --native-all", [str(BIN / "pystack"), "remote", "--native-all", "{}"]),
        Tool("py-spy dump --native", [str(BIN / "py-spy"), "dump", "--native", "--pid", "{}"]),
        Tool("py-spy dump (Python only)", [str(BIN / "py-spy"), "dump", "--pid", "{}"]),
        Tool("eu-stack -p", [shutil.which("eu-stack"), "-p", "{}"]),
        Tool("nothing (noise of the machine)", ["sleep", "0.5"]),
        Tool("gdbext diagnose", [sys.executable, "-m", "gdbext", "diagnose", "--json", "-", "--quiet", "{all}"]),
    ]
    return [
        row
        for row in rows
        if row.argv[0] and ((os.path.isabs(row.argv[0]) and os.path.exists(row.argv[0])) or shutil.which(row.argv[0]))
    ]


def run_once(tool, job):
    """Run a tool over all ranks and note what it cost."""
    if "{all}" in tool.argv:
        runs = [[word for part in tool.argv for word in (map(str, job.pids) if part == "{all}" else [part])]]
    else:
        runs = [[part.replace("{}", str(pid)) for part in tool.argv] for pid in job.pids]
    begin = time.monotonic()
    outputs = []
    for argv in runs:
        done = subprocess.run(
            argv, cwd=REPOSITORY, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )
        outputs.append(done.stdout)
        if not done.stdout and "sleep" not in argv[0]:
            raise SystemExit(f"{tool.name} printed nothing: {done.stderr[-500:]}")
    end = time.monotonic()
    gaps = [job.gaps(rank, begin, end) for rank in range(len(job.pids))]
    tool.walls.append(end - begin)
    tool.pauses.append(max((max(gap, default=0.0) for gap in gaps), default=0.0))
    tool.sums.append(max(sum(gap) for gap in gaps))
    if "{all}" in tool.argv:
        answer = json.loads(outputs[0])
        tool.frames = answer.get("frames", 0)
        tool.claimed.append(answer["pause_ms"]["max"])
        verdict = answer["verdict"]
        tool.name = f"gdbext diagnose -> {verdict['cause']}, culprits {verdict['culprits']}"
    else:
        tool.frames = sum(line.lstrip().startswith("#") for text in outputs for line in text.splitlines())
    print(f"  {tool.name}: {tool.walls[-1]:.2f} s, longest stop {tool.pauses[-1]:.1f} ms", file=sys.stderr)


def table(rows):
    base = rows[0]
    lines = []
    for row in rows:
        wall, pause = statistics.median(row.walls), statistics.median(row.pauses)
        claimed = f"{statistics.median(row.claimed):.1f}" if row.claimed else ""
        lines.append(
            [row.name, f"{wall:.2f}", f"1/{statistics.median(base.walls) / wall:.1f}", f"{pause:.1f}", claimed,
             f"1/{statistics.median(base.pauses) / max(pause, 0.1):.0f}", f"{statistics.median(row.sums):.0f}"]
        )  # fmt: skip
    heads = ["tool", "wall s, all ranks", "of gdb", "longest stop ms", "it says", "of gdb", "stopped in sum ms"]
    return tabulate(lines, heads, tablefmt="github", disable_numparse=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench diagnose", description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=90, help="extra threads a rank (torch adds about 12)")
    parser.add_argument("--spinning", type=int, default=0, help="busy threads a rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = tools()
    with TorchJob(options.ranks, threads=options.threads, spinning=options.spinning) as job:
        count = [len(os.listdir(f"/proc/{pid}/task")) for pid in job.pids]
        print(
            f"{options.ranks} torch ranks of {min(count)}-{max(count)} threads, {os.cpu_count()} cores", file=sys.stderr
        )
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for row in rows:
                run_once(row, job)
    print(table(rows))
    if options.json:
        Path(options.json).write_text(json.dumps([vars(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
