"""What a look without a stop sees, compared thread by thread with a stopped walk of the same job.

Each job is looked at three times: stopped, by --no-stop, stopped again. A thread counts that both stopped looks saw
asleep (state S or D). Two stopped looks differ as well, where a thread went on in between: that is the second column
of each pair. While --no-stop works, TracerPid of all ranks is watched, and the heartbeat of the torch ranks.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tabulate import tabulate

from gdbext.analysis.verdict.judge import judge
from gdbext.model.snapshot_files.codec import load_snapshot
from tests.bench.accuracy import machine
from tests.inferiors.demo import DemoJob
from tests.inferiors.scenarios import SCENARIOS
from tests.inferiors.torch_job import TorchJob, state_of
from tests.polling import lasts

REPOSITORY = Path(__file__).parents[2]


@dataclass
class Seen:
    """One look: kind, state and frames of every thread, and the verdict."""

    threads: dict = field(default_factory=dict)  # (pid, lwp) -> (kind, state, functions, why not read)
    waits: dict = field(default_factory=dict)  # pid -> kind of the process
    cause: str = ""
    confidence: str = ""
    begin: float = 0.0
    end: float = 0.0
    tracers: int = 0


@dataclass
class Compared:
    """How a look without a stop, and a second stopped one, agree with the first stopped one."""

    job: str
    blocked: int = 0
    same: int = 0
    again: int = 0  # by the second stopped look
    unread: int = 0
    frames: int = 0
    frames_again: int = 0
    waits: int = 0  # processes with the same wait
    processes: int = 0
    causes: tuple = ()
    seconds: float = 0.0
    gap: float = 0.0  # ms, longest of the heartbeats
    quiet: float = 0.0  # ms, the same in as long a time without any look
    tracers: int = 0
    other: collections.Counter = field(default_factory=collections.Counter)


def look(pids, *options):
    """One look by the command line."""
    watched, done = [0], threading.Event()

    def watch():
        while not done.wait(0.001):
            watched[0] += any(state_of(pid)[1] for pid in pids)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with tempfile.TemporaryDirectory(prefix="gdbext-nostop-") as folder:
            saved = Path(folder) / "look.json"
            argv = [sys.executable, "-m", "gdbext", "diagnose", "-q", "--once", "--no-witnesses", *options]
            argv += ["--save", str(saved), *map(str, pids)]
            seen = Seen(begin=time.monotonic())
            ran = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
            seen.end = time.monotonic()
            if not saved.exists():
                raise SystemExit(f"no look: {ran.stderr}")
            diagnosis = judge(load_snapshot(saved.read_text()))
    finally:
        done.set()
        watcher.join()
    seen.tracers, seen.cause, seen.confidence = watched[0], diagnosis.verdict.cause, diagnosis.verdict.confidence
    for process, judged in zip(diagnosis.snapshot.processes, diagnosis.processes):
        seen.waits[process.pid] = judged.wait.kind
        for thread, one in zip(process.threads, judged.threads):
            names = tuple(frame.function for frame in thread.frames)
            seen.threads[process.pid, thread.lwp] = (one.kind, thread.state, names, thread.truncated)
    return seen


def compare(name, pids, gaps=None):
    """Three looks at one job. `gaps`: the heartbeat gaps of all ranks between two moments."""
    first, without, again = look(pids), look(pids, "--no-stop"), look(pids)
    row = Compared(name, seconds=without.end - without.begin, tracers=without.tracers)
    row.causes = (first.cause, f"{without.cause} ({without.confidence})")
    row.processes = len(first.waits)
    row.waits = sum(without.waits.get(pid) == kind for pid, kind in first.waits.items())
    for key, (kind, state, names, _) in first.threads.items():
        last = again.threads.get(key)
        if state not in ("S", "D") or last is None or last[1] not in ("S", "D"):
            continue
        row.blocked += 1
        row.again += last[0] == kind
        row.frames_again += last[2] == names
        got = without.threads.get(key, ("absent", None, (), "absent"))
        row.same += got[0] == kind
        row.frames += got[2] == names
        if not got[2]:
            row.unread += 1
        elif got[0] != kind:
            row.other[f"{kind} -> {got[0]}"] += 1
    if gaps:
        row.gap = gaps(without.begin, without.end)
        begin = time.monotonic()
        lasts(without.end - without.begin)
        row.quiet = gaps(begin, time.monotonic())
    beat = f", longest heartbeat gap {row.gap:.1f} ms, {row.quiet:.1f} ms without a look" if gaps else ""
    print(f"{name}: {row.same} of {row.blocked} blocked threads alike, {row.unread} not read, {dict(row.other)}; "
          f"traced {row.tracers} times{beat}", file=sys.stderr)  # fmt: skip
    return row


def torch(ranks, threads, spinning):
    name = f"torch, {ranks} ranks x {threads + 11} threads" + (f", {spinning} spin" if spinning else "")
    with TorchJob(ranks, threads=threads, spinning=spinning) as job:
        everyone = range(len(job.pids))
        gaps = lambda begin, end: max((max(job.gaps(r, begin, end), default=0.0) for r in everyone), default=0.0)  # noqa: E731
        return compare(name, job.pids, gaps)


def demo(scenario, wait):
    with DemoJob(scenario.name, wait=wait) as job:
        return compare(f"{scenario.name} ({wait})", list(job.pids.values()))


def table(rows):
    heads = ["job", "blocked threads", "same wait kind", "two stopped looks", "same frames", "two stopped looks ",
             "not read", "same wait of the rank", "cause, stopped", "cause, --no-stop", "s"]  # fmt: skip
    lines = [
        [one.job, one.blocked, share(one.same, one.blocked), share(one.again, one.blocked),
         share(one.frames, one.blocked), share(one.frames_again, one.blocked), one.unread,
         f"{one.waits} of {one.processes}", *one.causes, f"{one.seconds:.1f}"]
        for one in rows
    ]  # fmt: skip
    return tabulate(lines, heads, tablefmt="github", disable_numparse=True)


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else ""


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench nostop", description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=90, help="extra threads a torch rank (torch adds about 12)")
    parser.add_argument("--spinning", type=int, nargs="+", default=[0, 1], help="busy threads of the torch ranks")
    parser.add_argument("--only", choices=["torch", "demo"])
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = []
    if options.only != "demo":
        rows += [torch(options.ranks, options.threads, spinning) for spinning in options.spinning]
    if options.only != "torch":
        rows += [demo(scenario, "poll") for scenario in SCENARIOS]
        rows += [demo(scenario, "spin") for scenario in SCENARIOS if scenario.name in ("pinned-alloc", "teardown")]
    print(f"{machine()}\n\n{table(rows)}\n")
    blocked, same = sum(one.blocked for one in rows), sum(one.same for one in rows)
    print(f"{same} of {blocked} blocked threads ({share(same, blocked)}) have the same wait kind.")
    print(f"Looks in which a rank was seen traced during --no-stop: {sum(one.tracers > 0 for one in rows)}.")
    beating = [one for one in rows if one.quiet or one.gap]
    for one in beating:
        print(
            f"Longest gap of a heartbeat, {one.job}: {one.gap:.1f} ms during the look, {one.quiet:.1f} ms without one."
        )
    if options.json:
        Path(options.json).write_text(json.dumps([{**vars(one), "other": dict(one.other)} for one in rows], indent=1))


if __name__ == "__main__":
    main()
