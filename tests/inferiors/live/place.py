"""How the programs of this folder say who they are and that they stand at their last place."""

import datetime
import os
import sys
import threading

LONG = datetime.timedelta(days=1)


def at(role, pid=None):
    """This process (or that one) is `role`, and the next thing it does is the last one: FOLDER/ROLE has its pid."""
    folder = sys.argv[2]
    draft = os.path.join(folder, f".{os.getpid()}")
    with open(draft, "w") as file:
        file.write(str(pid or os.getpid()))
    os.rename(draft, os.path.join(folder, str(role)))


def fifo():
    """Path of a pipe that the harness holds open and never writes to."""
    return os.path.join(sys.argv[2], "fifo")


def read_for_ever():
    with open(fifo(), "rb", buffering=0) as file:
        file.read(1)


def thread(work, *arguments, daemon=True):
    made = threading.Thread(target=work, args=arguments, daemon=daemon)
    made.start()
    return made


def work_for(seconds):
    """Python code that computes for about so long."""
    import time

    until, total = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        total += sum(number * number for number in range(2000))
    return total


def run(programs):
    programs[sys.argv[1]]()
