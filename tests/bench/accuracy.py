"""How often the verdict is right: every hang program, several rounds, with each gdb; the tables of docs/accuracy.md.

A verdict is right when its cause is the true one or one that is right as well, wrong when it is another one, and open
when it is "unknown". Healthy jobs are right with not-a-hang; a false alarm is an exit status of 1 for one of them. The
culprits count where the cause is the true one, in the live matrices where it is right. The later matrices,
`live-2` to `live-34`, are played only when they are asked for.
"""

import argparse
import collections
import functools
import importlib.util
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
from tests.gdb.gdbrun import gdb_batch
from tests.inferiors.demo import DemoJob
from tests.inferiors.live.eighteenth_table import EIGHTEENTH_BY_NAME as EIGHTEENTH
from tests.inferiors.live.eighth_table import EIGHTH_BY_NAME as EIGHTH
from tests.inferiors.live.eleventh_table import ELEVENTH_BY_NAME as ELEVENTH
from tests.inferiors.live.fifteenth_table import FIFTEENTH_BY_NAME as FIFTEENTH
from tests.inferiors.live.fifth_table import FIFTH_BY_NAME as FIFTH
from tests.inferiors.live.fourteenth_table import FOURTEENTH_BY_NAME as FOURTEENTH
from tests.inferiors.live.fourth_table import FOURTH_BY_NAME as FOURTH
from tests.inferiors.live.nineteenth_table import NINETEENTH_BY_NAME as NINETEENTH
from tests.inferiors.live.ninth_table import NINTH_BY_NAME as NINTH
from tests.inferiors.live.second_table import SECOND_BY_NAME as SECOND
from tests.inferiors.live.seventeenth_table import SEVENTEENTH_BY_NAME as SEVENTEENTH
from tests.inferiors.live.seventh_table import SEVENTH_BY_NAME as SEVENTH
from tests.inferiors.live.sixteenth_table import SIXTEENTH_BY_NAME as SIXTEENTH
from tests.inferiors.live.sixth_table import SIXTH_BY_NAME as SIXTH
from tests.inferiors.live.table import BY_NAME as LIVE
from tests.inferiors.live.tenth_table import TENTH_BY_NAME as TENTH
from tests.inferiors.live.third_table import THIRD_BY_NAME as THIRD
from tests.inferiors.live.thirteenth_table import THIRTEENTH_BY_NAME as THIRTEENTH
from tests.inferiors.live.thirtieth_table import THIRTIETH_BY_NAME as THIRTIETH
from tests.inferiors.live.thirty_first_table import THIRTY_FIRST_BY_NAME as THIRTY_FIRST
from tests.inferiors.live.thirty_fourth_table import THIRTY_FOURTH_BY_NAME as THIRTY_FOURTH
from tests.inferiors.live.thirty_second_table import THIRTY_SECOND_BY_NAME as THIRTY_SECOND
from tests.inferiors.live.thirty_third_table import THIRTY_THIRD_BY_NAME as THIRTY_THIRD
from tests.inferiors.live.twelfth_table import TWELFTH_BY_NAME as TWELFTH
from tests.inferiors.live.twentieth_table import TWENTIETH_BY_NAME as TWENTIETH
from tests.inferiors.live.twenty_eighth_table import TWENTY_EIGHTH_BY_NAME as TWENTY_EIGHTH
from tests.inferiors.live.twenty_fifth_table import TWENTY_FIFTH_BY_NAME as TWENTY_FIFTH
from tests.inferiors.live.twenty_first_table import TWENTY_FIRST_BY_NAME as TWENTY_FIRST
from tests.inferiors.live.twenty_fourth_table import TWENTY_FOURTH_BY_NAME as TWENTY_FOURTH
from tests.inferiors.live.twenty_ninth_table import TWENTY_NINTH_BY_NAME as TWENTY_NINTH
from tests.inferiors.live.twenty_second_table import TWENTY_SECOND_BY_NAME as TWENTY_SECOND
from tests.inferiors.live.twenty_seventh_table import TWENTY_SEVENTH_BY_NAME as TWENTY_SEVENTH
from tests.inferiors.live.twenty_sixth_table import TWENTY_SIXTH_BY_NAME as TWENTY_SIXTH
from tests.inferiors.live.twenty_third_table import TWENTY_THIRD_BY_NAME as TWENTY_THIRD
from tests.inferiors.lock_hangs import LOCK_HANGS
from tests.inferiors.scenarios import SCENARIOS
from tests.inferiors.slow_hangs import SLOW_HANGS

_SETS = {"live": LIVE, "live-2": SECOND, "live-3": THIRD, "live-4": FOURTH, "live-5": FIFTH, "live-6": SIXTH,
         "live-7": SEVENTH, "live-8": EIGHTH, "live-9": NINTH, "live-10": TENTH,
         "live-11": ELEVENTH, "live-12": TWELFTH, "live-13": THIRTEENTH, "live-14": FOURTEENTH,
         "live-15": FIFTEENTH, "live-16": SIXTEENTH, "live-17": SEVENTEENTH,
         "live-18": EIGHTEENTH, "live-19": NINETEENTH, "live-20": TWENTIETH,
         "live-21": TWENTY_FIRST, "live-22": TWENTY_SECOND, "live-23": TWENTY_THIRD,
         "live-24": TWENTY_FOURTH, "live-25": TWENTY_FIFTH, "live-26": TWENTY_SIXTH,
         "live-27": TWENTY_SEVENTH, "live-28": TWENTY_EIGHTH, "live-29": TWENTY_NINTH,
         "live-30": THIRTIETH, "live-31": THIRTY_FIRST, "live-32": THIRTY_SECOND,
         "live-33": THIRTY_THIRD, "live-34": THIRTY_FOURTH}  # fmt: skip
_MATRIX = {row.family: name for name, rows in _SETS.items() for row in rows.values()}
"""Of a table of the live matrices, the name that `--family` has for all of them."""
_ASKED_FOR = tuple(name for name in _SETS if name != "live")
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
    roles: tuple = ()  # of the live matrix: the sets of roles any of which is the right blame
    needs: str = ""  # what must be installed

    @property
    def healthy(self):
        return self.causes[0] == "not-a-hang"


@dataclass(frozen=True)
class Result:
    """What one look at one program gave."""

    program: Program
    gdb: str
    cause: str
    confidence: str
    culprit: str  # "right", "wrong" or "" where it does not count
    status: int
    seconds: float
    summary: str

    @property
    def hangs_said(self):
        """What the exit status says of it."""
        return {0: "healthy", 1: "finding", 3: "not yet"}.get(self.status, f"status {self.status}")

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
    for name, row in (pair for rows in _SETS.values() for pair in rows.items()):
        yield Program(row.family, name.partition("/")[2], row.start, row.causes, roles=row.culprits, needs=row.needs)


def _from_the_shell(*words):
    argv = [sys.executable, "-m", "gdbext", *words]
    try:
        return subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", "no end within 300 s")


def _attached(*words):
    """The same from inside gdb, which holds every process that was asked for."""
    gdb, pids = words[words.index("--gdb") + 1], [word for word in words if word.isdigit()]
    save = f"--save {words[words.index('--save') + 1]}" if "--save" in words else ""
    try:
        answer = gdb_batch(gdb, f"llm-attach-all {' '.join(pids)}", f"llm-nccl-diagnose --json {save}")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", "no end within 300 s")
    document = next(iter(answer.documents), {})
    verdict = document.get("verdict")
    status = 4 if not verdict else 3 if verdict["decided_by"] else int(verdict["cause"] != "not-a-hang")
    return subprocess.CompletedProcess(words, status, json.dumps(document) if document else "", answer.err)


def looks(program, chosen_gdbs, number, keep=None, gdbext=_from_the_shell):
    """Start the program, diagnose it so often with each gdb, end it."""
    with program.start() as started:
        for _ in range(number):
            for gdb in chosen_gdbs:
                yield look(program, gdb, started, keep, gdbext)


def look(program, gdb, started, keep=None, gdbext=_from_the_shell):
    """One diagnosis by `gdbext`, which runs the command; `keep`: a folder for what was seen and what was answered."""
    pids = started.pids.values() if isinstance(started.pids, dict) else started.pids
    begin = time.monotonic()
    asked = map(str, getattr(started, "asked", pids))
    kept = keep and Path(keep, f"{program.table}-{program.name}-{_release(gdb)}-{time.time_ns() // 10**6}")
    save = ["--save", f"{kept}.look.json"] if kept else []
    done = gdbext("diagnose", "--json", "-q", "--gdb", gdb, *asked, *save)
    seconds = time.monotonic() - begin
    if kept:
        roles = json.dumps(started.pids) if isinstance(started.pids, dict) else ""
        Path(f"{kept}.answer.json").write_text(done.stdout)
        Path(f"{kept}.roles.json").write_text(roles)
    if not done.stdout:
        return Result(program, gdb, "no answer", "", "", done.returncode, seconds, done.stderr.strip()[-200:])
    answer = json.loads(done.stdout)
    if "verdict" not in answer:
        return Result(program, gdb, "no answer", "", "", done.returncode, seconds, str(answer.get("error")))
    verdict, culprit = answer["verdict"], _culprit(program, answer, started)
    return Result(
        program, gdb, verdict["cause"], verdict["confidence"], culprit, done.returncode, seconds, verdict["summary"]
    )


def _culprit(program, answer, started):
    verdict = answer["verdict"]
    if program.roles and verdict["cause"] in program.causes:
        return _role(program, answer, started.pids)
    if verdict["cause"] != program.causes[0]:
        return ""
    if program.says:
        return "right" if program.says.lower() in verdict["summary"].lower() else "wrong"
    if program.culprits is None:
        return ""
    ranks = {process["index"]: process["rank"] for process in answer["processes"]}
    blamed = {ranks[index] for index in verdict["culprits"]} | set(verdict["absent"])
    return "right" if blamed == set(program.culprits) else "wrong"


def _role(program, answer, pids):
    """A process that was not asked for can only be the root."""
    verdict = answer["verdict"]
    of_index = {process["index"]: process["pid"] for process in answer["processes"]}
    blamed = {of_index[index] for index in verdict["culprits"]} | {pids.get(str(rank)) for rank in verdict["absent"]}
    root = {(verdict["root"] or {}).get("pid")}
    right = [{pids[role] for role in roles} for roles in program.roles]
    return "right" if blamed in right or root in right else "wrong"


def confusion(results):
    """The confusion matrix, a row a true cause; of the causes that were said only those that occur."""
    rows = collections.defaultdict(collections.Counter)
    for one in results:
        rows[one.program.causes[0]][one.cause] += 1
    lines = []
    for cause, said in sorted(rows.items()):
        looks, so = sum(said.values()), said.pop(cause, 0)
        lines.append([cause, looks, so, ", ".join(f"{name} {count}" for name, count in said.items())])
    return tabulate(lines, ["true cause", "runs", "said so", "said instead"], tablefmt="github")


def totals(results):
    lines = []
    for gdb in dict.fromkeys(one.gdb for one in results):
        mine = [one for one in results if one.gdb == gdb]
        grades = collections.Counter(one.grade for one in mine)
        culprits = collections.Counter(one.culprit for one in mine if one.culprit)
        sure = sum(one.grade == "wrong" and one.confidence == "high" for one in mine)
        lines.append([_release(gdb), len(mine), grades["right"], grades["open"], grades["wrong"], sure,
                      f"{culprits['right']} of {sum(culprits.values())}"])  # fmt: skip
    heads = ["gdb", "runs", "cause right", "left open", "wrong", "confidently wrong", "culprits right"]
    return tabulate(lines, heads, tablefmt="github", disable_numparse=True)


def alarms(results):
    """What the exit status said, of hangs and of healthy programs."""
    rows = collections.defaultdict(collections.Counter)
    for one in results:
        rows["healthy" if one.program.healthy else "hangs", _release(one.gdb)][one.hangs_said] += 1
    said = ("finding", "healthy", "not yet")
    lines = [[*key, sum(row.values()), *(row[one] for one in said), sum(row.values()) - sum(row[one] for one in said)]
             for key, row in sorted(rows.items())]  # fmt: skip
    heads = ["programs", "gdb", "runs", "a finding (1)", "healthy (0)", "not yet (3)", "other"]
    return tabulate(lines, heads, tablefmt="github", disable_numparse=True)


@functools.lru_cache(maxsize=None)
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
    parser.add_argument("--rounds", type=int, default=3, help="how often each program is started")
    parser.add_argument("--looks", type=int, default=1, help="with each gdb, in each round")
    parser.add_argument("--only", metavar="TEXT", default="", help="programs whose name has this in it")
    parser.add_argument("--family", nargs="+", help="of these tables; live, live-2 to live-18: of a live matrix")
    parser.add_argument("--which", choices=("hangs", "healthy"), help="only these")
    parser.add_argument("--gdb", nargs="+", default=gdbs(), help="these gdbs; the suite's where left out")
    parser.add_argument("--json", metavar="FILE", help="the looks as JSON too, written after each program")
    parser.add_argument("--attached", action="store_true", help="from inside gdb, attached to all of them")
    parser.add_argument("--keep", metavar="FOLDER", help="each look, its answer and the roles' pids, into this folder")
    options = parser.parse_args()
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    results, by = [], _attached if options.attached else _from_the_shell
    chosen = [one for one in programs() if _is_chosen(one, options)]
    for number in range(options.rounds):
        for program in chosen:
            found = looks(program, options.gdb, options.looks, options.keep, by)
            play(found, program, results, options.json, f"{number + 1}: ")
    print(f"{len(chosen)} programs, {options.rounds} rounds. {machine()}.\n")
    print(totals(results), alarms(results), confusion(results), "Not right:\n\n" + misses(results), sep="\n\n")


def play(found, program, results, json_file, before=""):
    """Add the looks at a program to the `results`, with a line for each, and write all of them to the file."""
    for one in _each(found, program):
        results.append(one)
        print(f"{before}{program.table}/{program.name}: {one.cause} ({one.confidence}) {one.grade}"
              f"{', culprit ' + one.culprit if one.culprit else ''}, {one.hangs_said}, {one.seconds:.1f} s"
              f"{'' if one.grade == 'right' else ': ' + one.summary}", file=sys.stderr, flush=True)  # fmt: skip
    if json_file:
        Path(json_file).write_text(json.dumps(list(map(_row, results)), indent=1))


def _row(one):
    return {"program": f"{one.program.table}/{one.program.name}", "healthy": one.program.healthy,
            "true": one.program.causes[0], "gdb": _release(one.gdb), "cause": one.cause,
            "confidence": one.confidence, "grade": one.grade, "culprit": one.culprit,
            "status": one.status, "seconds": one.seconds, "summary": one.summary}  # fmt: skip


def _each(found, program):
    """The looks at a program; none, and a line, of one that does not start here."""
    try:
        yield from found
    except RuntimeError as error:
        print(f"{program.table}/{program.name}: {str(error)[:300]}", file=sys.stderr)


def _is_chosen(program, options):
    if program.needs and importlib.util.find_spec(program.needs) is None:
        print(f"{program.table}/{program.name}: {program.needs} is not installed", file=sys.stderr)
        return False
    matrix = _MATRIX.get(program.table)
    wanted = {matrix, program.table} & set(options.family) if options.family else matrix not in _ASKED_FOR
    return (options.only in program.name and wanted
            and options.which in (None, "healthy" if program.healthy else "hangs"))  # fmt: skip


if __name__ == "__main__":
    main()
