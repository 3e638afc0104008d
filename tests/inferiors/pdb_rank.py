"""A rank that comes to breakpoints: `python pdb_rank.py MODE STEPS`. Says what it does on stdout, a line each."""

import os
import sys
import time
from pathlib import Path

from gdbext.rankpdb import breakpoint_, clear_, debugger

RANK = int(os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"])


def say(*words):
    print(" ".join(map(str, words)) + "\n", end="", flush=True)  # in one piece, with `python -u` too


def step(number):
    mine = RANK * 100 + number
    breakpoint_(rank=1)
    mine += 1
    return mine


def apart(number):
    breakpoint_(rank=1, block=False)
    say("ran", number)
    clear_()
    return number


def inside(number):
    with breakpoint_(rank=1, block=False):
        say("ran", number)
    return number


def environment(number):
    breakpoint_()
    return number


def only_some(number):
    if RANK != 0:
        breakpoint_(rank=1)
    return number


def later(number):
    if RANK == 1:
        sys.stdin.read()
    return step(number)


def all_reduce():
    """Waits for all ranks, as one does."""
    folder = Path(os.environ["HOME"])
    (folder / f"came{RANK}").touch()
    say("in all_reduce")
    while len(list(folder.glob("came*"))) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.01)  # nobody tells of a file


def collective(number):
    debugger._LONG = 0.2
    breakpoint_(rank=1)
    number += 1
    all_reduce()
    return number


def forked(number):
    breakpoint_(rank=1, timeout=0.01)  # from now on others can reach this rank
    child = os.fork()
    if child == 0:
        breakpoint_(rank=1)
        say("child")
        sys.stdin.read()  # lives until the test ends
        os._exit(0)
    return step(number)


def asked(number):
    breakpoint_(rank=1, timeout=0.01)
    say("may be asked")
    sys.stdin.readline()
    if os.fork() == 0:
        say("child")
        sys.stdin.read()
        os._exit(0)
    return step(number)


def main(mode, steps):
    for number in range(steps):
        if mode == "forked" and number:
            mode = "step"
        say("came", number)
        say("done", globals()[mode](number))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
