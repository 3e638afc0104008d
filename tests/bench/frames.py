"""How many frames of a torch job gdbext reads as gdb does: the same place, the same name, in the same order.

gdb attaches to each rank and walks it with all of its files, as `thread apply all bt` does; gdbext copies the same
ranks and lets the same gdb read the copies with excerpts. The ranks hang, so both see the same stacks. Of two walks of
a thread, the longest run of equal frames from the outer end counts, so that a missing frame costs those beyond it.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from gdbext.capture.stop.copy_of_process import copy_processes
from gdbext.collect.gdb_runs.batch_runs import find_gdb
from gdbext.collect.gdb_runs.unwinding import unwind
from gdbext.model.text.function_names import bare_name
from tests.inferiors.torch_job import TorchJob

MOST_FRAMES = 1000
SCRIPT = """
import gdb, json
stacks = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, frames = gdb.newest_frame(), []
    while frame is not None and len(frames) < %d:
        frames.append([frame.pc(), frame.name()])
        frame = frame.older()
    stacks[thread.ptid[1]] = frames
json.dump(stacks, open(%r, "w"))
"""


def by_gdb(gdb, pid, folder):
    """{thread id: [(pc, name), ...]} as gdb itself sees them."""
    script, result = folder / "walk.py", folder / "walk.json"
    script.write_text(SCRIPT % (MOST_FRAMES, str(result)))
    argv = [gdb, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", str(pid), "-x", str(script)]
    subprocess.run(argv, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    stacks = json.loads(result.read_text())
    return {int(tid): [(pc, name and bare_name(name)) for pc, name in frames] for tid, frames in stacks.items()}


def equal_frames(ours, theirs):
    """How many frames agree, counted from the outer end."""
    count = 0
    for one, other in zip(reversed(ours), reversed(theirs)):
        if one != other:
            break
        count += 1
    return count


def compare(pids, gdb):
    """(frames of gdb's, equal ones of ours, what differs: pair of names -> how often)."""
    total, equal, differing = 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="gdbext-frames-") as name:
        folder = Path(name)
        result = unwind(copy_processes(pids), gdb, folder, MOST_FRAMES, 600.0, lambda line: None)
        if result.failure:
            raise SystemExit(str(result.failure))
        for pid, one in zip(pids, result.ranks):
            ours = {stack.lwp: [(frame.pc, frame.function) for frame in stack.frames] for stack in one.stacks}
            for tid, theirs in by_gdb(gdb, pid, folder).items():
                total += len(theirs)
                found = equal_frames(ours.get(tid, []), theirs)
                equal += found
                if found < len(theirs):
                    left = ours.get(tid, [])[::-1][found : found + 1]
                    differing[(theirs[::-1][found][1], left[0][1] if left else "(no frame)")] += 1
            print(f"  pid {pid}: {equal} of {total} frames so far", file=sys.stderr)
    return total, equal, differing


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench frames", description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--threads", type=int, default=90)
    parser.add_argument("--gdb", metavar="PATH")
    parser.add_argument("--pids", type=int, nargs="+", help="running ranks that hang, instead of a job of our own")
    options = parser.parse_args()
    gdb = find_gdb(options.gdb)
    if options.pids:
        total, equal, differing = compare(options.pids, gdb)
    else:
        with TorchJob(options.ranks, threads=options.threads) as job:
            total, equal, differing = compare(job.pids, gdb)
    print(f"{equal} of {total} frames ({100 * equal / max(1, total):.2f} %) as {gdb} itself reads them")
    for (theirs, ours), count in differing.most_common(20):
        print(f"  {count} threads: gdb says {theirs}, gdbext {ours}")


if __name__ == "__main__":
    main()
