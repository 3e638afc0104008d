"""How long each tool takes over all ranks of a torch job, and how long it keeps a rank standing still.

Every tool looks at the same processes in the same run; the pause is measured by a heartbeat inside each rank, so
it is what the rank feels and not what the tool claims. The time in which the machine itself was away is subtracted from
it (bystander.py), for all tools alike; the row "nothing" shows what is left of it. A stop of less than 0.6 ms is never
seen, one of 1.6 ms always. Times are of this machine, the ratios are what travels.
Two rounds of the default take about three minutes on two quiet cores.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from tabulate import tabulate

from tests.bench.bystander import Bystander, raw_note
from tests.bench.tools import SHORTEST, all_tools, machine, run_once
from tests.inferiors.torch_job import TorchJob


def table(rows):
    base = rows[0]
    lines = []
    for row in rows:
        if row.failed or not row.walls:
            lines.append([row.name, row.failed or "not run", *[""] * 8])
            continue
        wall, pause = row.median("walls"), row.median("pauses")
        wall_ratio = f"1/{base.median('walls') / wall:.1f}" if base.walls else ""
        pause_ratio = f"1/{base.median('pauses') / max(pause, SHORTEST):.0f}" if base.walls else ""
        claimed = f"{row.median('claimed'):.1f}" if row.claimed else ""
        raw, says = f"{row.median('raw_pauses'):.1f}", row.says
        if row.name == "nothing":  # a median hides what the other rows had to bear
            says = f"at worst {max(row.pauses):.1f} ms, with the machine's gaps {max(row.raw_pauses):.1f} ms"
        lines.append(
            [row.name, f"{wall:.2f}", wall_ratio, f"{row.median('cpus'):.2f}", f"{pause:.1f}", raw, claimed,
             pause_ratio, f"{row.median('sums'):.0f}", says]
        )  # fmt: skip
    heads = [
        "tool",
        "wall s, all ranks",
        "of gdb",
        "CPU s",
        "longest stop ms",
        "with the machine's gaps",
        "it says",
        "of gdb",
        "stopped in sum ms",
    ]
    return tabulate(lines, [*heads, "answer"], tablefmt="github", disable_numparse=True)


def targets(rows):
    """The promises of the safety page, each with what was measured."""
    by_name = {row.name: row for row in rows if row.walls}
    lines = []

    def compare(text, ours, what, peer, factor):
        if ours in by_name and peer in by_name:
            one, other = by_name[ours].median(what), by_name[peer].median(what) * factor
            lines.append(f"{'met' if one <= other else 'MISSED'}: {text}: {one:.4g} <= {other:.4g}")

    compare("cold, a tenth of gdb's wall", "gdbext, cold", "walls", "gdb", 0.1)
    compare("warm, no more than eu-stack's wall", "gdbext", "walls", "eu-stack", 1)
    compare("longest stop, 1/500 of gdb's", "gdbext", "pauses", "gdb", 1 / 500)
    compare("longest stop, no longer than py-spy's", "gdbext", "pauses", "py-spy", 1)
    compare("all together, 1/500 of gdb's", "gdbext --together", "pauses", "gdb", 1 / 500)
    compare("all together, no longer than py-spy's", "gdbext --together", "pauses", "py-spy", 1)
    return lines


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench diagnose", description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=90, help="extra threads a rank (torch adds about 12)")
    parser.add_argument("--spinning", type=int, default=0, help="busy threads a rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", metavar="NAME", help="tools whose name begins with this, and gdb")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = all_tools()
    if options.only:
        rows = [row for row in rows if row is rows[0] or row.name.startswith(tuple(options.only))]
    host = machine()
    new_job = TorchJob(options.ranks, threads=options.threads, spinning=options.spinning)
    with new_job as job, Bystander(job) as bystander:
        count = [len(os.listdir(f"/proc/{pid}/task")) for pid in job.pids]
        print(f"{options.ranks} torch ranks of {min(count)}-{max(count)} threads; {host}", file=sys.stderr)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for row in rows:
                run_once(row, job, bystander)
    print(table(rows))
    if bystander.why_raw:
        print(f"\n{raw_note(bystander.why_raw)}")
    print("", *targets(rows), sep="\n")
    if options.json:
        answer = {"machine": host, "raw_because": bystander.why_raw, "rows": [vars(row) for row in rows]}
        Path(options.json).write_text(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
