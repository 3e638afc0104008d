"""A rank with numpy arrays in a Python frame; says "ready" and waits. The argument is its number.

Other allocations come first in rank 1, and there a thread of its own does the work.
"""

import sys
import threading

import numpy

rank = int(sys.argv[1])


class Worker:
    def __init__(self):
        self.kv = [numpy.zeros(2), numpy.array([[7.0, 8.0]])]

    def step(self, hidden):
        batch = {"ids": numpy.arange(4) + rank * 0}
        if rank:
            batch["ids"] = numpy.arange(4) + 1
        elsewhere = numpy.ones(3, dtype=numpy.float16)
        if not rank:
            only = numpy.zeros(1)
        wait()
        return hidden, batch, elsewhere, only


def wait():
    print("ready", flush=True)
    sys.stdin.read()


before = [numpy.zeros(1000 + number) for number in range(50 * rank)]
if rank:
    threading.Thread(target=Worker().step, args=(numpy.arange(6.0),)).start()
else:
    list(map(Worker().step, [numpy.arange(6.0)]))  # C calls Python: an eval frame of its own
