"""Random rounds: start a job, look at it with gdbext while faults strike, then see what became of the targets.

A round fails when a surviving target is traced, stopped or stands still, when a process or a file is left, or when
there is neither an answer nor one clear line. The plan of a round follows from --seed and its number alone.
"""

import argparse
import collections
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from gdbext.capture.stop.kill_timer import GRACE
from tests.chaos import places
from tests.chaos.command import HALT_LIMIT, ROOT, Command, marked, ticks
from tests.chaos.job import ChaosJob, waits
from tests.chaos.plan import draw, draw_halting
from tests.gdb.gdbrun import build
from tests.polling import lasts

STUCK = 50.0  # seconds without using the processor: then a command hangs; more than gdbext itself waits for a stuck gdb
HELD = HALT_LIMIT + GRACE + 5.0  # seconds that a thread may stand still while gdbext does, on a busy machine
WATCH = 2.5  # seconds after which a watch is told to end


@dataclass
class Outcome:
    """What a round came to."""

    plan: object
    problems: list = field(default_factory=list)
    code: int = 0
    seconds: float = 0.0
    hits: int = 0  # signals that found somebody
    held: float = 0.0  # seconds that a thread stood still where gdbext stopped itself
    out: str = ""
    err: str = ""


def play(plan, mark):
    """Play one round."""
    outcome = Outcome(plan)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        place = places.Place(Path(folder) / "place", plan.place)
        job = ChaosJob(plan, build("chaos_rank.c", "-g", "-O1"), folder, f"chaos-{mark}")
        try:
            job.wait_ready()
            _act(plan, job, place, mark, outcome)
            outcome.problems += job.harm()
            outcome.problems += _left(place, mark)
        finally:
            job.close()
            place.close()
    outcome.seconds = time.monotonic() - began
    return outcome


def _act(plan, job, place, mark, outcome):
    main = Command(plan, plan.command, job, place, mark)
    commands = [main]
    if plan.second:
        commands.append(Command(plan, plan.second, job, place, mark))
    if plan.halts:
        _measure(job, main, outcome)
    _strike(plan, job, main, outcome)
    for command in commands:
        if not command.end(STUCK):
            outcome.problems.append(f"{command.command} did not end")
        outcome.problems += command.faults()
        outcome.out += command.out
        outcome.err += command.err
    outcome.code = main.code


def _strike(plan, job, main, outcome):
    """Let the faults happen, each at its time."""
    marks = {"start": time.monotonic()}
    left = list(plan.shots)
    while main.running and (left or plan.command == "watch"):
        now = time.monotonic()
        if "gdb" not in marks and main.gdb() is not None:
            marks["gdb"] = now
        for shot in [shot for shot in left if shot.mark in marks and now >= marks[shot.mark] + shot.at]:
            left.remove(shot)
            if shot.who.startswith("rank"):
                job.hit(int(shot.who.split()[1]), shot.what)
                outcome.hits += 1
            else:
                outcome.hits += main.hit(shot.who, shot.what)
        if plan.command == "watch" and now > marks["start"] + WATCH:
            main.hit("front", "INT")
            return
        lasts(0.001)


def _measure(job, main, outcome):
    """How long ranks are held while gdbext stops itself."""
    since = None
    while main.running:
        now = time.monotonic()
        if job.held():
            since = since or now
            outcome.held = max(outcome.held, now - since)
        else:
            since = None
        lasts(0.005)
    outcome.hits += outcome.held > HALT_LIMIT + GRACE / 2
    if outcome.held > HELD:
        outcome.problems.append(f"ranks were held for {outcome.held:.1f} s")


def _left(place, mark):
    """Processes and files that are still there after a moment."""
    found = []
    if not _all_end(mark):
        for pid in marked(mark):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found.append(f"a process is left: {pid} {words[:120]}")
            os.kill(pid, 9)
    if not waits(lambda: not place.leftovers(), 20.0):
        found.append(f"files are left: {' '.join(place.leftovers()[:5])}")
    return found + _strangers() + _readable(place.out)


def _all_end(mark):
    """Whether all processes of the round end. On a busy machine they take a while, but use the processor."""
    used = -1
    for _ in range(10):
        if waits(lambda: not marked(mark), 20.0):
            return True
        before, used = used, sum(map(ticks, marked(mark)))
        if used == before:
            break
    return False


def _strangers():
    """What gdbext leaves in the folders that everybody uses; they are ours alone while a campaign runs as root."""
    found = [f"{folder}/{name}" for folder in places.SHARED if os.path.isdir(folder) for name in os.listdir(folder)]
    left = [path for path in found if os.path.basename(path).startswith(("gdbext-", ".gdbext"))]
    return [f"files are left: {' '.join(left)}"] if left and PRIVATE else []


def _readable(out):
    """What was asked for is for its owner alone."""
    files = [path for path in out.rglob("*") if path.name != "filler"]
    found = [f"others may read {path.name}" for path in files if path.stat().st_mode & 0o077]
    return found + [f"a part of a file is left: {path.name}" for path in files if path.name.startswith(".")]


PRIVATE = False


def run(seed, numbers, verbose=False, log=None, halts=False):
    """Play those rounds; the outcomes."""
    outcomes = []
    for number in numbers:
        plan = draw_halting(seed, number) if halts else draw(seed, number, PRIVATE)
        try:
            outcome = play(plan, f"{os.getpid()}-{number}")
        except RuntimeError as error:
            outcome = Outcome(plan, [f"not played: {error}"])
        outcomes.append(outcome)
        state = "ok" if not outcome.problems else "FAILED: " + "; ".join(outcome.problems)
        held = f", held for {outcome.held:.2f} s" if plan.halts else ""
        print(f"{number:4} {outcome.seconds:5.1f} s  exit {outcome.code:4}{held}  {plan}\n       {state}", flush=True)
        if verbose:
            print(outcome.out, outcome.err, sep="\n--- stderr\n", flush=True)
        if log:
            row = {"round": number, "plan": str(plan), "exit": outcome.code, "problems": outcome.problems}
            row.update(faults=plan.faults, hits=outcome.hits)
            if outcome.problems:
                row.update(out=outcome.out[-8000:], err=outcome.err[-8000:])
            log.write(json.dumps(row) + "\n")
            log.flush()
    return outcomes


def summary(outcomes):
    """Lines for people and for the docs."""
    failed = [outcome for outcome in outcomes if outcome.problems]
    targets = sum(len(outcome.plan.ranks) for outcome in outcomes)
    lines = [
        f"{len(outcomes)} rounds, {targets} targets, {sum(outcome.hits for outcome in outcomes)} signals that hit, "
        f"{len(failed)} rounds failed"
    ]
    if any(outcome.plan.halts for outcome in outcomes):
        lines.append(f"held for at most {max(outcome.held for outcome in outcomes):.2f} s")
    for title, count in (
        ("commands", collections.Counter(outcome.plan.command for outcome in outcomes)),
        ("exits", collections.Counter(outcome.code for outcome in outcomes)),
        ("faults", collections.Counter(fault for outcome in outcomes for fault in outcome.plan.faults)),
    ):
        lines.append(f"{title}: " + ", ".join(f"{name} {number}" for name, number in sorted(count.items(), key=str)))
    return lines + [f"  round {one.plan.number}: {'; '.join(one.problems)}" for one in failed]


def main():
    global PRIVATE
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--first", type=int, default=1, metavar="N", help="number of the first round")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="just these rounds, with what was printed")
    parser.add_argument("--halts", action="store_true", help="gdbext is stopped (SIGSTOP) while it holds ranks")
    parser.add_argument("--log", metavar="FILE", help="a line of JSON for each round")
    options = parser.parse_args()
    with open(options.log or os.devnull, "a") as log:
        PRIVATE = places.may_mount()
        if PRIVATE:
            places.own_namespace(ROOT)
        else:
            print("not root: what needs mounts or namespaces is left out", file=sys.stderr)
        numbers = options.only or range(options.first, options.first + options.rounds)
        began = time.monotonic()
        outcomes = run(options.seed, numbers, bool(options.only), log, options.halts)
    print("\n".join(["", f"seed {options.seed}, {time.monotonic() - began:.0f} s", *summary(outcomes)]))
    return 1 if any(outcome.problems for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
