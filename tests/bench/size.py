"""What a look costs where a rank is large, or where there are many: each case in turn, by `gdbext diagnose --once`.

The cases: `ranks` (demo ranks on one host), `threads`, `libraries` (mapped, 50 of them in use), `used` (so many
libraries, each in use by a thread), `symbols` (a library with so many symbols), `debug` (the same with debug
information). They are made in a temporary folder. Small by default (a minute or two); `--full` is 64 ranks, 3,000
threads, 1,000 libraries, 4 GiB of symbols: 10 GiB in the temporary folder for a while.

Each case is looked at cold (nothing kept of earlier looks) and warm. Peaks of memory are the kernel's (VmHWM), of
the front end and of the largest gdb; the longest stop is what the answer says. --verbose tells where the time goes:
seconds and CPU seconds of the front end up to each line of progress.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tabulate import tabulate

from gdbext.analysis.verdict.judge import judge
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.render.json.document import document
from tests.bench.tools import REPOSITORY, machine
from tests.inferiors import size_build
from tests.inferiors.demo import DemoJob
from tests.inferiors.size_build import Symbols

FULL = {"ranks": 64, "threads": 3000, "libraries": 1000, "used": 1000, "symbols": 56.0, "debug": 43.0}
SMALL = {"ranks": 12, "threads": 300, "libraries": 100, "used": 150, "symbols": 1.0, "debug": 0.5}
CASES = tuple(SMALL)
RUN = """
import json, resource, sys, time
from gdbext.cli import main as cli, terminal
begin, phases, say = time.monotonic(), [], terminal.Progress.say
def said(self, text):
    phases.append([text, round(time.monotonic() - begin, 2), round(time.process_time(), 2)])
    say(self, text)
terminal.Progress.say = said
try:
    status = cli.main(sys.argv[1:])
except SystemExit as end:
    status = end.code
with open("/proc/self/status") as file:  # ru_maxrss is inherited from who started us
    most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
json.dump({"wall": time.monotonic() - begin, "status": status, "phases": phases, "memory": most >> 10,
           "cpu": own.ru_utime + own.ru_stime, "gdb_cpu": children.ru_utime + children.ru_stime}, sys.stderr)
"""


class Children:
    """Watches the gdbs of a front end: how many there were at a time, and the peak of memory of the largest."""

    def __init__(self, pid):
        self._pid, self._ended = pid, threading.Event()
        self.most, self.memory = 0, 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self):
        while not self._ended.wait(0.02):  # nobody tells of a peak: the last look before the end is short of it by that
            pids = self._gdbs()
            self.most = max(self.most, len(pids))
            self.memory = max([self.memory, *map(peak, pids)])

    def _gdbs(self):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text()
            return [pid for pid in text.split() if "gdbext.inside_gdb" in command(pid)]
        return []

    def end(self):
        self._ended.set()
        self._thread.join()


def command(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


def peak(pid):
    """MiB."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) >> 10
    return 0


def look(pids, threads, extra, cache):
    """One look at these processes, which have so many threads in all, and its cost. Memory is in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        saved = extra[extra.index("--save") + 1] if "--save" in extra else os.path.join(folder, "look.json")
        argv = [sys.executable, "-c", RUN, "diagnose", "--once", "--save", saved, *extra, *map(str, pids)]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "COLUMNS": "120"}
        process = subprocess.Popen(
            argv, cwd=REPOSITORY, env=environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        children = Children(process.pid)
        try:
            printed, said = process.communicate()
        finally:
            children.end()
        try:
            cost = json.loads(said.splitlines()[-1])
            answer = document(judge(load_snapshot(Path(saved).read_text("utf-8"))))
        except (OSError, ValueError, IndexError):
            raise SystemExit(f"no answer: {said[-2000:]}") from None
    cost["gdbs"], cost["gdb_memory"], cost["lines"] = children.most, children.memory, len(printed.splitlines())
    cost["pause"], cost["cause"] = answer["pause_ms"]["max"], answer["verdict"]["cause"]
    cost["threads"] = [sum(len(one["threads"]) for one in answer["processes"]), threads]
    cost["states"] = sorted({one["state"] for one in answer["processes"]})
    cost["problems"] = sorted({text for one in answer["processes"] for text in one["problems"]})[:5]
    return cost


def count_threads(pids):
    return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)


@contextlib.contextmanager
def case(name, size, folder):
    """The pids of a case."""
    if name == "ranks":
        with DemoJob("pinned-alloc", ranks=int(size), wait="poll", deadline=600) as job:
            yield list(job.pids.values())
        return
    symbols = Symbols(int(size * 1e6), name == "debug") if name in ("symbols", "debug") else Symbols()
    libraries = int(size) if name in ("libraries", "used") else 10
    size_build.build(folder, libraries, symbols)
    with size_build.running(folder, libraries, int(size) if name in ("threads", "used") else 50) as pids:
        yield pids


def measure(name, size, temporary, extra):
    """(cold, warm, bytes of the library of many symbols)."""
    with tempfile.TemporaryDirectory(prefix=f"gdbext-size-{name}-", dir=temporary) as made:
        folder = Path(made)
        begun = time.monotonic()
        with case(name, size, folder) as pids, tempfile.TemporaryDirectory() as cache:
            print(f"{name} {size:g}: made in {time.monotonic() - begun:.0f} s", file=sys.stderr)
            costs = [look(pids, count_threads(pids), extra, cache) for _ in ("cold", "warm")]
            first = folder / "lib0.so"
            return (*costs, first.stat().st_size if first.exists() and name in ("symbols", "debug") else 0)


def text_of(name, size, of):
    if not of:
        return f"{size:,.0f} {'libraries in use' if name == 'used' else name}"
    more = " and debug information" if name == "debug" else ""
    return f"{size:g} million symbols{more}, {of / 2**30:.1f} GiB"


def row(name, size, cold, warm, of):
    read, there = warm["threads"]
    return [
        text_of(name, size, of), f"{read:,} of {there:,}",
        *(f"{one['wall']:.1f}" for one in (cold, warm)), *(f"{one['cpu']:.1f}" for one in (cold, warm)),
        *(f"{one['gdb_cpu']:.1f}" for one in (cold, warm)), f"{max(cold['pause'], warm['pause']):.1f}",
        max(cold["memory"], warm["memory"]), max(cold["gdb_memory"], warm["gdb_memory"]), warm["gdbs"], warm["lines"],
    ]  # fmt: skip


HEADS = (
    "case", "threads read", "wall s, cold", "warm", "CPU s of the front end, cold", "warm", "of gdb, cold", "warm",
    "longest stop ms", "MiB, front end", "one gdb", "gdbs", "lines printed",
)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench size", description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help=f"the sizes of the table in docs/scale.md: {FULL}")
    for name, size in SMALL.items():
        unit = {"symbols": "millions of symbols", "debug": "millions of symbols", "used": "libraries"}.get(name, name)
        parser.add_argument(f"--{name}", type=float, metavar="N", help=f"{unit} of this case ({size:g})")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, metavar="CASE", help=" ".join(CASES))
    parser.add_argument("--jobs", default="0", metavar="N", help="for gdbext: gdbs side by side")
    parser.add_argument("--deadline", default="600", metavar="S", help="for gdbext: seconds for symbols and gdb (600)")
    parser.add_argument("--max-pause", default="2", metavar="S", help="for gdbext")
    parser.add_argument("--into", metavar="DIR", help="folder for what is made (default: where temporary files are)")
    parser.add_argument("--verbose", action="store_true", help="where the time goes")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    host = machine()
    print(host, file=sys.stderr)
    extra = ["--jobs", options.jobs, "--deadline", options.deadline, "--max-pause", options.max_pause]
    lines, kept = [], []
    for name in options.only:
        size = getattr(options, name) or (FULL if options.full else SMALL)[name]
        cold, warm, of = measure(name, size, options.into, extra)
        kept.append({"case": name, "size": size, "bytes": of, "cold": cold, "warm": warm})
        lines.append(row(name, size, cold, warm, of))
        for when, cost in (("cold", cold), ("warm", warm)) if options.verbose else ():
            print(f"  {when}: {cost['states']} {cost['problems']}", file=sys.stderr)
            for text, wall, cpu in cost["phases"]:
                print(f"    {wall:8.2f} {cpu:8.2f}  {text}", file=sys.stderr)
    print(host, tabulate(lines, HEADS, tablefmt="github", disable_numparse=True), sep="\n\n")
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": host, "cases": kept}, indent=1))


if __name__ == "__main__":
    main()
