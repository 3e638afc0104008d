"""The tools that are compared, and what one run of each over all ranks of a job costs."""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import accuracy

BIN = Path(sys.executable).parent
REPOSITORY = Path(__file__).parents[2]
GDBEXT = [sys.executable, "-m", "gdbext", "diagnose", "--json", "--quiet"]
LIMIT = 900  # seconds that one run may take
SHORTEST = 1.0  # ms; shorter stops are not told from none, see bystander.py


@dataclass
class Tool:
    """One row: `argv` is run once for each rank, with {} as the pid; or once for all with {all}."""

    name: str
    argv: list
    cold: bool = False  # with nothing kept of earlier runs
    walls: list = field(default_factory=list)  # seconds for all ranks
    cpus: list = field(default_factory=list)  # seconds of processor time for all ranks
    pauses: list = field(default_factory=list)  # ms, the longest of any rank
    sums: list = field(default_factory=list)  # ms a rank stood still in sum, the worst rank
    raw_pauses: list = field(default_factory=list)  # ms, with the machine's own gaps
    raw_sums: list = field(default_factory=list)
    claimed: list = field(default_factory=list)  # ms, what the tool itself reports
    says: str = ""
    failed: str = ""  # why it was not measured

    def median(self, what):
        found = getattr(self, what)
        return statistics.median(found) if found else None


def all_tools():
    """Those that are installed; the first is what the others are compared with."""
    gdb = ["-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", "{}", "-ex", "thread apply all bt"]
    pystack, pyspy = [str(BIN / "pystack"), "remote"], [str(BIN / "py-spy"), "dump", "--pid", "{}"]
    rows = [
        Tool("gdb", [shutil.which("gdb", path="/usr/local/bin:/usr/bin:/bin"), *gdb]),
        Tool("gdb, newest", [str(BIN / "gdb"), *gdb]),
        Tool("pystack --native-all", [*pystack, "--native-all", "{}"]),
        Tool("pystack", [*pystack, "{}"]),
        Tool("py-spy --native", [*pyspy, "--native"]),
        Tool("py-spy", pyspy),
        Tool("py-spy --nonblocking", [*pyspy, "--nonblocking"]),
        Tool("eu-stack", [shutil.which("eu-stack"), "-p", "{}"]),
        Tool("gdbext, cold", [*GDBEXT, "{all}"], cold=True),
        Tool("gdbext", [*GDBEXT, "{all}"]),
        Tool("gdbext --together", [*GDBEXT, "--together", "{all}"]),
        Tool("gdbext --once", [*GDBEXT, "--once", "{all}"]),
        Tool("nothing", ["sleep", "0.5"]),
    ]
    return [row for row in rows if row.argv[0] and shutil.which(row.argv[0])]


def run_once(tool, job, bystander):
    """Run a tool over all ranks and note what it cost. One that fails is left out of this job and says why."""
    if tool.failed:
        return
    if "{all}" in tool.argv:
        runs = [[word for part in tool.argv for word in (map(str, job.pids) if part == "{all}" else [part])]]
    else:
        runs = [[part.replace("{}", str(pid)) for part in tool.argv] for pid in job.pids]
    with tempfile.TemporaryDirectory(prefix="gdbext-bench-") as empty:
        environ = {**os.environ, **({"XDG_CACHE_HOME": empty} if tool.cold else {})}
        used, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        outputs = []
        for argv in runs:
            try:
                done = subprocess.run(
                    argv, cwd=REPOSITORY, capture_output=True, text=True, errors="replace", env=environ,
                    stdin=subprocess.DEVNULL, timeout=LIMIT,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                tool.failed = f"took more than {LIMIT} s"
                return
            if not done.stdout and argv[0] != "sleep":
                tool.failed = f"printed nothing: {done.stderr.strip()[-300:]}"
                print(f"  {tool.name} {tool.failed}", file=sys.stderr)
                return
            outputs.append(done.stdout)
        end, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    stood = bystander.standstill(begin, end)
    if stood is None:
        tool.failed = "a rank does not go on after it"
        print(f"  {tool.name}: {tool.failed}", file=sys.stderr)
        return
    tool.walls.append(end - begin)
    tool.cpus.append(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime)
    tool.pauses.append(stood.longest)
    tool.sums.append(stood.total)
    tool.raw_pauses.append(stood.raw_longest)
    tool.raw_sums.append(stood.raw_total)
    if "{all}" in tool.argv:
        answer = json.loads(outputs[0])
        tool.claimed.append(answer["pause_ms"]["max"])
        tool.says = f"{answer['verdict']['cause']}, culprits {answer['verdict']['culprits']}"
    stop = f"longest stop {stood.longest:.1f} ms, with the machine's gaps {stood.raw_longest:.1f} ms"
    print(f"  {tool.name}: {tool.walls[-1]:.2f} s, {tool.cpus[-1]:.2f} s of CPU, {stop}", file=sys.stderr)


def machine():
    """What the times belong to, in one line."""
    return f"{accuracy.machine()}, load {os.getloadavg()[0]:.1f} at the start"
