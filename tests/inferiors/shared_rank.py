"""A rank on a "host" of its own, and what it does with the shared folder: `shared_rank.py FOLDER HOST JOB RANK WORLD`.

Takes a command a line: opens N, passes N, beat, sweep, look RANK N, end, fork. Answers with a line each.
SKEW: seconds by which the file system's clock is ahead of this host's.
"""

import os
import sys
import time

from gdbext.rankpdb import host_folder, shared_folder
from gdbext.rankpdb.identity import Identity

SITE = "/srv/" + "x" * 300 + "/train.py:33"  # longer than the name of a file may be
set_time = os.utime


def of_the_server(path, times=None):
    now = time.clock_gettime(time.CLOCK_REALTIME) + float(os.environ.get("SKEW", "0"))
    set_time(path, (now, now))


def no_clock():
    raise AssertionError("the clock of this host says nothing")


def main(folder, host, job, rank, world, silence):
    host_folder.host = lambda: host
    os.utime, time.time = of_the_server, no_clock
    board = shared_folder.Folder(
        Identity(int(rank), int(world), range(int(rank), int(rank) + 1), job), folder, float(silence)
    )
    print("ready", flush=True)
    for line in sys.stdin:
        what, *numbers = line.split()
        answer = None
        try:
            if what == "look":
                answer = board.look(int(numbers[0]), (SITE, int(numbers[1])))
            elif what in ("opens", "passes"):
                getattr(board, what)((SITE, int(numbers[0])))
            else:
                getattr(board, what)()
        except OSError as error:
            answer = repr(error)
        print(what, answer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
