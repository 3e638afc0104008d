"""All tools on torch jobs of 1, 2, 4 and 8 ranks with 10, 100 and 300 threads each: tables, JSON and a picture.

Every tool looks at the same processes in the same run, the pause is measured by a heartbeat inside each rank, and the
time in which the machine itself was away is subtracted (bystander.py), for all tools alike. What was measured is
written after each job, so that a run that is interrupted has not been for nothing. One round of the default takes about
ten minutes on two quiet cores, most of it plain gdb.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from tabulate import tabulate

from tests.bench.bystander import Bystander, raw_note
from tests.bench.picture import chart
from tests.bench.tools import SHORTEST, all_tools, machine, run_once
from tests.inferiors.torch_job import TorchJob

ALWAYS = 12  # threads that a torch rank has beside those that are asked for
LEAST = 11  # of the program itself


def measure(ranks, threads, rounds, names):
    """The rows of one job."""
    rows = [row for row in all_tools() if not names or row.name.startswith(tuple(names))]
    with TorchJob(ranks, threads=max(LEAST, threads - ALWAYS)) as job, Bystander(job) as bystander:
        counts = [len(os.listdir(f"/proc/{pid}/task")) for pid in job.pids]
        print(f"{ranks} ranks of {min(counts)}-{max(counts)} threads", file=sys.stderr)
        for _ in range(rounds):
            for row in rows:
                run_once(row, job, bystander)
    cell = {"ranks": ranks, "threads": threads, "counted": max(counts), "raw_because": bystander.why_raw}
    return {**cell, "rows": [vars(row) for row in rows]}


def median(cell, name, what):
    values = next((sorted(row[what]) for row in cell["rows"] if row["name"] == name), [])
    middle = len(values) // 2
    return (values[middle] + values[~middle]) / 2 if values else None


def names_of(cells):
    return list(dict.fromkeys(row["name"] for cell in cells for row in cell["rows"]))


def table(cells, what, digits):
    """One row a tool, one column a job; what failed or was not run is empty."""
    heads = ["tool", *(f"{cell['ranks']} x {cell['counted']}" for cell in cells)]
    lines = []
    for name in names_of(cells):
        values = [median(cell, name, what) for cell in cells]
        lines.append([name, *("" if value is None else f"{value:.{digits}f}" for value in values)])
    return tabulate(lines, heads, tablefmt="github", disable_numparse=True)


def picture(cells, threads):
    """Wall time and longest stop over the number of ranks."""
    chosen = [cell for cell in cells if cell["threads"] == threads]

    def lines(what, least):
        found = {}
        for name in names_of(chosen):
            points = [(cell["ranks"], median(cell, name, what)) for cell in chosen]
            if name != "nothing" and any(value is not None for _, value in points):
                found[name] = [(ranks, max(value, least)) for ranks, value in points if value is not None]
        return found

    panels = [("wall time, s", lines("walls", 0.01)), ("longest stop of a rank, ms", lines("pauses", SHORTEST))]
    return chart(f"torch ranks of about {threads} threads", "ranks", panels)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench matrix", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--threads", type=int, nargs="+", default=[10, 100, 300])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", metavar="NAME", help="tools whose name begins with this")
    parser.add_argument("--into", default="bench-matrix", metavar="DIR", help="folder of the results (bench-matrix)")
    parser.add_argument("--resume", action="store_true", help="keep what an earlier run measured there")
    options = parser.parse_args()
    into = Path(options.into)
    into.mkdir(parents=True, exist_ok=True)
    kept, host, begun = into / "matrix.json", machine(), time.monotonic()
    cells = json.loads(kept.read_text())["cells"] if options.resume and kept.exists() else []
    cells = [cell for cell in cells if "raw_because" in cell]  # the stops of older ones are not comparable
    done = {(cell["ranks"], cell["threads"]) for cell in cells}
    wanted = [(ranks, threads) for threads in options.threads for ranks in options.ranks]
    for ranks, threads in wanted:
        if (ranks, threads) in done:
            continue
        try:
            cells.append(measure(ranks, threads, options.rounds, options.only))
        except (OSError, RuntimeError) as error:  # e.g. no memory for eight ranks: the others are worth having
            print(f"{ranks} ranks of {threads} threads: {error}", file=sys.stderr)
            continue
        cells.sort(key=lambda cell: (cell["threads"], cell["ranks"]))
        kept.write_text(json.dumps({"machine": host, "cells": cells}, indent=1))
    if not cells:
        raise SystemExit("nothing was measured")
    texts = [host, "", "Wall time, s:", "", table(cells, "walls", 2), "", "Processor time, s:", ""]
    texts += [table(cells, "cpus", 2), "", "Longest stop of a rank, ms:", "", table(cells, "pauses", 1), ""]
    texts += ["The same with the machine's own gaps, ms:", "", table(cells, "raw_pauses", 1), ""]
    texts += [raw_note(why) for why in dict.fromkeys(cell["raw_because"] for cell in cells) if why]
    (into / "matrix.md").write_text("\n".join(texts))
    for threads in dict.fromkeys(cell["threads"] for cell in cells):
        (into / f"matrix-{threads}.svg").write_text(picture(cells, threads))
    print("\n".join(texts))
    print(f"{into}: tables, JSON and pictures; {(time.monotonic() - begun) / 60:.1f} minutes", file=sys.stderr)


if __name__ == "__main__":
    main()
