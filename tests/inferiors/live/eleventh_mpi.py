"""Ranks of Open MPI by mpi4py that hang, eleventh set: `mpirun ... eleventh_mpi.py NAME FOLDER`."""

import itertools
import time

import numpy

from tests.inferiors.live.eighth_mpi import RANK, world
from tests.inferiors.live.place import at, run, thread

METRICS, PREFILL, DECODE, STOP = 1, 2, 3, 4
STEPS = 5


def buffer_not_drained():
    """Rank 1 gives its metrics to a buffer and goes on. Rank 0 receives them before each step, and does not come to
    those of the last one; at the end rank 1 wants its buffer back, which they are still in."""
    comm = world()
    from mpi4py import MPI

    metrics = numpy.ones(1 << 18)
    if RANK == 1:
        MPI.Attach_buffer(numpy.empty(2 * (metrics.nbytes + MPI.BSEND_OVERHEAD), numpy.uint8))
    for number in range(STEPS):
        if RANK == 0 and number > 0:
            comm.Recv(metrics, 1, METRICS)
        comm.Allreduce(MPI.IN_PLACE, numpy.ones(64))
        if RANK == 1:
            comm.Bsend(metrics, 0, METRICS)
    at(RANK)
    if RANK == 1:
        MPI.Detach_buffer()
    comm.Barrier()


def receive(comm):
    """A thread of a worker: looks what kind of task there is, makes room for it and takes it."""
    from mpi4py import MPI

    status = MPI.Status()
    while True:
        comm.Probe(0, MPI.ANY_TAG, status)
        task = numpy.zeros(1 << 16)
        time.sleep(0.05)
        comm.Recv(task, 0, status.tag)
        if status.tag == STOP:
            at(RANK)
            return
        comm.Send(task, 0, status.tag)


def two_threads_probe_one():
    """Both threads of rank 1 see the prefill that has come. One takes it; the other one waits for a second prefill,
    while only decoding follows, and then the end."""
    comm = world()
    if RANK == 0:
        task = numpy.ones(1 << 16)
        time.sleep(0.5)
        for tag, worker in itertools.product((PREFILL, DECODE, DECODE), (1, 2)):
            comm.Send(task, worker, tag)
            comm.Recv(task, worker, tag)
        for worker in (1, 1, 2):
            comm.Send(numpy.zeros(1), worker, STOP)
        at(RANK)
    else:
        receivers = [thread(receive, comm) for _ in range(2 if RANK == 1 else 1)]
        for one in receivers:
            one.join()
    comm.Barrier()


PROGRAMS = {"buffer-not-drained": buffer_not_drained, "two-threads-probe-one": two_threads_probe_one}

if __name__ == "__main__":
    run(PROGRAMS)
