"""How often the verdict is right: every hang program, several rounds, with each gdb; the tables of docs/accuracy.md.

A verdict is right when its cause is the true one or one that is right as well, wrong when it is another one, and open
when it is "unknown". Healthy jobs are right with not-a-hang. The culprits count where the cause is the true one.
"""

import argparse
import collections
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from tests.conftest import gdbs
from tests.inferiors.demo import DemoJob
from tests.inferiors.lock_hangs import LOCK_HANGS
from tests.inferiors.scenarios import SCENARIOS
from tests.inferiors.slow_hangs import SLOW_HANGS

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Program:
    """One hang: how it is started (a context with `pids`) and its truth; no `culprits` where ranks have no numbers."""

    table: str
    name: str
    start: object
    causes: tuple  # the true one first
    culprits: object = None
    says: str = ""  # words that the summary of a right verdict has


@dataclass(frozen=True)
class Result:
    """What one look at one program gave."""

    program: Program
    gdb: str
    cause: str
    confidence: str
    culprit: str  # "right", "wrong" or "" where it does not count
    seconds: float
    summary: str

    @property
    def grade(self):
        if self.cause in self.program.causes:
            return "right"
        return "open" if self.cause == "unknown" else "wrong"


def programs():
    for row in SCENARIOS:
        start = lambda row=row: DemoJob(row.name, wait="poll")  # noqa: E731 - one line, used once
        yield Program("demo engine", row.name, start, (row.cause, *row.also_causes), row.culprits())
    for row in LOCK_HANGS:
        causes = (row.cause, *row.also_causes, *(("unknown",) if row.healthy else ()))
        yield Program("locks", row.name, row.start, causes, says=row.culprit)
    for row in SLOW_HANGS:
        yield Program("slow or stuck", row.name, row.start, (row.cause, *row.also_causes), row.culprits)


def look(program, gdb):
    """Start the program, diagnose it once from outside, end it."""
    with contextlib.ExitStack() as stack:
        started = stack.enter_context(program.start())
        pids = started.pids.values() if isinstance(started.pids, dict) else started.pids
        begin = time.monotonic()
        argv = [sys.executable, "-m", "gdbext", "diagnose", "--json", "-q", "--gdb", gdb, *map(str, pids)]
        done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
        seconds = time.monotonic() - begin
    if not done.stdout:
        return Result(program, gdb, "no answer", "", "", seconds, done.stderr.strip()[-200:])
    answer = json.loads(done.stdout)
    verdict = answer["verdict"]
    return Result(
        program, gdb, verdict["cause"], verdict["confidence"], _culprit(program, answer), seconds, verdict["summary"]
    )


def _culprit(program, answer):
    verdict = answer["verdict"]
    if verdict["cause"] != program.causes[0]:
        return ""
    if program.says:
        return "right" if program.says.lower() in verdict["summary"].lower() else "wrong"
    if program.culprits is None:
        return ""
    ranks = {process["index"]: process["rank"] for process in answer["processes"]}
    blamed = {ranks[index] for index in verdict["culprits"]} | set(verdict["absent"])
    return "right" if blamed == set(program.culprits) else "wrong"


def confusion(results):
    """The confusion matrix, a row a true cause; of the causes that were said only those that occur."""
    rows = collections.defaultdict(collections.Counter)
    for one in results:
        rows[one.program.causes[0]][one.cause] += 1
    lines = []
    for cause, said in sorted(rows.items()):
        looks, so = sum(said.values()), said.pop(cause, 0)
        lines.append([cause, looks, so, ", ".join(f"{name} {count}" for name, count in said.items())])
    return tabulate(lines, ["true cause", "looks", "said so", "said instead"], tablefmt="github")


def totals(results):
    lines = []
    for gdb in dict.fromkeys(one.gdb for one in results):
        mine = [one for one in results if one.gdb == gdb]
        grades = collections.Counter(one.grade for one in mine)
        culprits = collections.Counter(one.culprit for one in mine if one.culprit)
        sure = sum(one.grade == "wrong" and one.confidence == "high" for one in mine)
        lines.append([_release(gdb), len(mine), grades["right"], grades["open"], grades["wrong"], sure,
                      f"{culprits['right']} of {sum(culprits.values())}"])  # fmt: skip
    heads = ["gdb", "looks", "cause right", "left open", "wrong", "wrong and sure", "culprits right"]
    return tabulate(lines, heads, tablefmt="github", disable_numparse=True)


def _release(gdb):
    return subprocess.run([gdb, "--version"], capture_output=True, text=True).stdout.split("\n", 1)[0].split()[-1]


def misses(results):
    lines = [[one.program.table, one.program.name, one.program.causes[0], f"{one.cause} ({one.confidence})"]
             for one in results if one.grade != "right" or one.culprit == "wrong"]  # fmt: skip
    counted = collections.Counter(map(tuple, lines))
    rows = [[*line, count] for line, count in counted.items()]
    return tabulate(rows, ["table", "program", "true cause", "said", "times"], tablefmt="github") if rows else "none"


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench accuracy", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="TEXT", default="", help="programs whose name has this in it")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    chosen = [one for one in programs() if options.only in one.name]
    results = []
    for number in range(options.rounds):
        for program in chosen:
            for gdb in gdbs():
                one = look(program, gdb)
                results.append(one)
                print(f"{number + 1}: {program.table}/{program.name}: {one.cause} ({one.confidence}) {one.grade}"
                      f"{', culprit ' + one.culprit if one.culprit else ''}, {one.seconds:.1f} s"
                      f"{'' if one.grade == 'right' else ': ' + one.summary}", file=sys.stderr)  # fmt: skip
    print(f"{len(chosen)} programs, {options.rounds} rounds. {machine()}.\n")
    print(totals(results), confusion(results), "Not right:\n\n" + misses(results), sep="\n\n")
    if options.json:
        rows = [{"program": one.program.name, "gdb": one.gdb, "cause": one.cause, "confidence": one.confidence,
                 "grade": one.grade, "culprit": one.culprit, "seconds": one.seconds} for one in results]  # fmt: skip
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
