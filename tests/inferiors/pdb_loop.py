"""A rank that runs in a loop and takes orders: `python pdb_loop.py`, one order a line on stdin."""

import json
import os
import select
import sys
import threading


def step(number):
    mine = number * 10
    mine += int(os.environ["RANK"])  # the line that tests name
    return mine


def order(words):
    if words[0] == "take":
        from gdbext.rankpdb import injected

        injected.PATIENCE = float(os.environ.get("PATIENCE", "60"))
        injected.take(json.loads(words[1]))
        print("took", flush=True)
    elif words[0] == "block":
        print("blocked", flush=True)
        os.read(0, 100)
        print("woke", flush=True)
    elif words[0] == "state":
        threads = [thread.name for thread in threading.enumerate()]
        busy = getattr(sys, "monitoring", None) and any(sys.monitoring.get_tool(number) for number in range(6))
        print("state", "traced" if sys.gettrace() or busy else "free", len(threads), flush=True)


def main():
    number = 0
    paced = False
    print("runs", flush=True)
    while True:
        number += 1
        if select.select([0], [], [], None if paced else 0.02)[0]:
            line = os.read(0, 4096).decode().strip()
            if line in ("", "end"):
                return
            if line == "paced":  # from now on one step for each line
                paced = True
            order(line.split(" ", 1))
            if line.startswith("take") or line == "paced":
                continue
        print("step", step(number), flush=True) if paced else step(number)


if __name__ == "__main__":
    main()
