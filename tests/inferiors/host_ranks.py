"""All ranks of such a job, for one import of torch. `host_ranks.py URL LATE PLACE PID...`: a rank where each PID is.

It is started with RANK=0; each rank writes its own number into what /proc shows of its environment.
"""

import ctypes
import os
import sys

from tests.inferiors.host_rank import main

libc = ctypes.CDLL(None, use_errno=True)


def enter(pid):
    places = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("net", "uts", "pid", "mnt")]
    for place in places:
        assert libc.setns(place, 0) == 0, os.strerror(ctypes.get_errno())


def be(rank):
    with open("/proc/self/stat") as stat:
        begin, end = map(int, stat.read().rpartition(")")[2].split()[47:49])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(begin)
        at = (b"\0" + memory.read(end - begin)).index(b"\0RANK=0\0")
        memory.seek(begin + at + len("RANK="))
        memory.write(b"%d" % rank)


url, late, place, *pids = sys.argv[1:]
for rank, pid in enumerate(pids):
    if os.fork() == 0:
        enter(pid)
        child = os.fork()  # the first process that is in the other PID namespace
        if child == 0:
            be(rank)
            main(url, rank, len(pids), int(late), place)
        os.waitpid(child, 0)
        os._exit(0)
for _ in pids:
    os.wait()
