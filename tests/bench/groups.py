"""Whether the ranks of a job are found: each launcher and server of tests/inferiors/groups.py, asked for in three ways.

`gdbext ranks` without a selector, with the pid of each member in turn, and with `--parent` of the process at the top.
The group is right when exactly one job is answered, its ranks are the pids that say so of themselves, and their numbers
are true where ranks know them. Each job runs in a PID namespace of its own (root), so that no other job is seen.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from tabulate import tabulate

from tests.inferiors.groups import KINDS
from tests.polling import wait_until

HERE = Path(__file__).resolve().parents[2]
PROGRAM = HERE / "tests" / "inferiors" / "groups.py"
WAYS = ("no selector", "any member", "--parent")


@dataclass(frozen=True)
class Members:
    """Who says what of itself: pid -> rank number or None, and the pids of the others."""

    ranks: Dict[int, Optional[int]]
    others: Tuple[int, ...]


def start(kind: str, folder: str) -> subprocess.Popen:
    """The process at the top of the job."""
    command = [sys.executable, str(PROGRAM), kind, folder]
    if kind == "native-fork":
        program = os.path.join(folder, ".groups_fork")
        subprocess.run(["gcc", "-o", program, str(PROGRAM.with_name("groups_fork.c"))], check=True)
        command = [program, folder]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def members(kind: str, folder: str) -> Members:
    """Waits until all ranks of the job stand."""
    wanted = KINDS[kind][0]
    wait_until(lambda: len(_written(folder, "rank")) >= wanted)
    return Members(_written(folder, "rank"), tuple(_written(folder, "other")))


def _written(folder: str, role: str) -> Dict[int, Optional[int]]:
    found = {}
    for name in os.listdir(folder):
        if name.startswith(f"{role}-"):
            text = Path(folder, name).read_text()
            found[int(name.partition("-")[2])] = int(text) if text else None
    return found


def looks(kind: str) -> Iterator[Tuple[str, str]]:
    """(way, what is wrong, or nothing) for each way of asking."""
    folder = tempfile.mkdtemp(prefix="groups-")
    top = start(kind, folder)
    try:
        truth = members(kind, folder)
        numbered = KINDS[kind][1]
        yield WAYS[0], wrong(truth, numbered, ask())
        each = {pid: wrong(truth, numbered, ask(str(pid))) for pid in (*truth.ranks, *truth.others, top.pid)}
        yield WAYS[1], "; ".join(f"{pid}: {text}" for pid, text in each.items() if text)
        yield WAYS[2], wrong(truth, numbered, ask("--parent", str(top.pid)))
    finally:
        os.killpg(top.pid, signal.SIGKILL)
        top.wait()
        shutil.rmtree(folder, ignore_errors=True)


def ask(*words: str) -> List[Dict[int, Optional[int]]]:
    """Rank by pid of each job that `gdbext ranks` answers."""
    done = subprocess.run([sys.executable, "-m", "gdbext", "ranks", *words, "--json"], capture_output=True, text=True)
    document = json.loads(done.stdout or "{}")
    return [{rank["pid"]: rank["rank"] for rank in job["ranks"]} for job in document.get("jobs", ())]


def wrong(truth: Members, numbered: bool, jobs: Sequence[Dict[int, Optional[int]]]) -> str:
    """What is wrong with the answer; nothing when the group is right."""
    if len(jobs) != 1:
        return f"{len(jobs)} jobs"
    (found,) = jobs
    if set(found) != set(truth.ranks):
        return f"ranks are {sorted(found)}, not {sorted(truth.ranks)}"
    if numbered and found != truth.ranks:
        return f"numbers are {found}, not {truth.ranks}"
    given = [number for number in found.values() if number is not None]
    return "a number twice" if len(set(given)) != len(given) else ""


def _alone(kind: str) -> List[Tuple[str, str]]:
    """The same in a PID namespace of its own."""
    words = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"]
    done = subprocess.run(
        [*words, sys.executable, "-m", "tests.bench.groups", "--here", kind], capture_output=True, text=True, cwd=HERE
    )
    try:
        return [tuple(row) for row in json.loads(done.stdout)]
    except ValueError:
        return [(way, f"did not run: {done.stderr.strip()[-200:]}") for way in WAYS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=sorted(KINDS), default=list(KINDS), help="these kinds")
    parser.add_argument("--here", metavar="KIND", help="one kind, in this PID namespace; prints JSON")
    parser.add_argument("--json", metavar="FILE", help="the rows as JSON too")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(list(looks(options.here))))
        return
    rows = []
    for kind in options.only:
        needs = KINDS[kind][2]
        if needs and importlib.util.find_spec(needs) is None:
            print(f"· {kind}: {needs} is not installed", file=sys.stderr)
            continue
        for way, text in _alone(kind):
            rows.append({"kind": kind, "way": way, "wrong": text})
            print(f"· {kind}, {way}: {text or 'right'}", file=sys.stderr)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    marks = {(row["kind"], row["way"]): "-" if row["wrong"] else "right" for row in rows}
    print(tabulate([[kind, *(marks[kind, way] for way in WAYS)] for kind in kinds], ["job", *WAYS]))
    print(f"\nright: {sum(not row['wrong'] for row in rows)} of {len(rows)}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
