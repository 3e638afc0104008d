"""How the programs of this folder say who they are and that they stand at their last place."""

import datetime
import multiprocessing
import os
import sys
import threading
import time

LONG = datetime.timedelta(days=1)


def at(role, pid=None):
    """This process (or that one) is `role`, and the next thing it does is the last one: FOLDER/ROLE has its pid."""
    folder = sys.argv[2]
    draft = os.path.join(folder, f".{os.getpid()}")
    with open(draft, "w") as file:
        file.write(str(pid or os.getpid()))
    os.rename(draft, os.path.join(folder, str(role)))


def in_folder(name):
    """A path for the job's own files."""
    return os.path.join(sys.argv[2], str(name))


def wait_for_role(role):
    """Until a process has said that it is `role`."""
    while not os.path.exists(in_folder(role)):
        time.sleep(0.02)


def child_of(target, *arguments):
    """A forked process of multiprocessing, started."""
    child = multiprocessing.get_context("fork").Process(target=target, args=arguments, daemon=True)
    child.start()
    return child


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
    until, total = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        total += sum(number * number for number in range(2000))
    return total


def run(programs):
    programs[sys.argv[1]]()
