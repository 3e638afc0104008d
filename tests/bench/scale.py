"""Time and memory of judging and printing jobs of many ranks: synthetic snapshots, one process each size.

A rank has 200 threads: the worker at its wait, a few known helpers, and pools. Rank N/2 is in cudaMallocHost, the
others wait for the GPU. Every frame has an address of its own. Times are seconds of CPU (one thread): `read` for the
snapshot file, `judge` from there to verdict and merged tree, `render` for the printed answer. Memory is the peak of the
whole process when the file is read, and when it is judged. With --against another gdbext is measured in turn, on files
that it saved itself.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tabulate import tabulate

from tests.bench.accuracy import machine

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("scale_child.py")


def run(tree, *arguments):
    """A Python of its own, with the gdbext of a folder."""
    argv = [sys.executable, str(CHILD), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def best(tree, ranks, threads, rounds, folder):
    """The least of what it took in some rounds."""
    path = os.path.join(folder, "snapshot.json")
    run(tree, path, ranks, threads)
    got = [json.loads(run(tree, path)) for _ in range(rounds)]
    for one in got:
        assert (one["cause"], one["culprits"]) == ("implicit-sync-vs-collective", [ranks // 2]), one
    least = {name: [min(numbers) for numbers in zip(*(one[name] for one in got))] for name in ("seconds", "peaks")}
    return {**got[0], **least}


def row(name, ranks, threads, got):
    read, judged, _ = got["peaks"]
    return [name, ranks, f"{ranks * threads:,}", f"{got['size']} MiB", *(f"{one:.2f}" for one in got["seconds"]),
            f"{read} MiB", f"{judged} MiB", got["lines"]]  # fmt: skip


def ratios(ranks, threads, new, old):
    names = ("seconds", "peaks")
    read, judged, shown, *peaks = (one / other for name in names for one, other in zip(new[name], old[name]))
    shares = (new["size"] / max(1, old["size"]), read, judged, shown, *peaks[:2])
    return ["new / old", ranks, f"{ranks * threads:,}", *(f"{one:.2f}" for one in shares), ""]


def tree_of(name, folder):
    """The folder of that name, or what the repository had at the commit of that name."""
    if os.path.isdir(name):
        return os.path.abspath(name)
    tree = os.path.join(folder, "old")
    os.mkdir(tree)
    archive = subprocess.run(["git", "-C", ROOT, "archive", name, "gdbext"], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
    return tree


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench scale", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[64, 256, 1024])
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3, help="the least of so many counts (default: 3)")
    parser.add_argument("--against", metavar="COMMIT", help="measure that commit, or a folder with another gdbext, too")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        trees = {"new": str(ROOT)}
        if options.against:
            trees = {"old": tree_of(options.against, folder), **trees}
        for ranks in options.ranks:
            got = {name: best(tree, ranks, options.threads, options.rounds, folder) for name, tree in trees.items()}
            rows += [row(name, ranks, options.threads, one) for name, one in got.items()]
            if options.against:
                rows.append(ratios(ranks, options.threads, got["new"], got["old"]))
            print(*rows[-1], file=sys.stderr)
    heads = ["gdbext", "ranks", "threads", "snapshot", "read s", "judge s", "render s", "memory, read",
             "memory, judged", "lines printed"]  # fmt: skip
    print(machine(), "\n")
    print(tabulate(rows, heads, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
