"""Ranks of Open MPI by mpi4py, a hang and a healthy job, ninth set: `mpirun ... ninth_mpi.py NAME FOLDER`."""

import itertools

import numpy

from tests.inferiors.live.eighth_mpi import RANK, world
from tests.inferiors.live.place import at, run, work_for


def exchange(seconds, unchanged_at=None):
    """Each rank has requests that are made once and started in every step: what it sends, and what comes to it."""
    comm = world()
    sent, received = numpy.full(4096, float(RANK)), numpy.empty(4096)
    send = comm.Send_init(sent, (RANK + 1) % comm.size)
    receive = comm.Recv_init(received, (RANK - 1) % comm.size)
    for number in itertools.count():
        if number == 3:
            at(RANK)
        work_for(seconds)
        receive.Start()
        if number != unchanged_at:
            send.Start()
        receive.Wait()
        send.Wait()
        comm.Barrier()


def halo_not_started():
    """Rank 1's part has not changed in the fourth step: it does not start its request, and waits for none."""
    exchange(0.01, unchanged_at=3 if RANK == 1 else None)


def halo_started():
    """Healthy: rank 1 computes for long in each step."""
    exchange(1.2 if RANK == 1 else 0.01)


PROGRAMS = {"halo-not-started": halo_not_started, "halo-started": halo_started}

if __name__ == "__main__":
    run(PROGRAMS)
