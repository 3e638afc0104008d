"""Ranks of Open MPI by mpi4py, a hang and a healthy job, twelfth set: `mpirun ... twelfth_mpi.py NAME FOLDER`."""

import itertools

import numpy

from tests.inferiors.live.eighth_mpi import RANK, world
from tests.inferiors.live.place import at, run, work_for


def exchange(comm, layer_of, seconds):
    """Tokens for the experts of some ranks, of which the receivers do not know: each sends so that it is told when its
    tokens were taken, then says so by a barrier that does not block, and takes what comes until all have said so."""
    from mpi4py import MPI

    for number in itertools.count():
        if number == 4:
            at(RANK)
        layer = layer_of(number)
        work_for(seconds)
        tokens = numpy.full(512, float(number))
        sends = [comm.Issend(tokens, (RANK + 1) % comm.size, layer)]
        barrier = None
        while barrier is None or not barrier.Test():
            status = MPI.Status()
            if comm.Iprobe(MPI.ANY_SOURCE, layer, status):
                comm.Recv(numpy.empty(512), status.Get_source(), layer)
            if barrier is None and MPI.Request.Testall(sends):
                barrier = comm.Ibarrier()


def exchange_of_other_layer():
    """In the fifth exchange rank 1 has left a layer out, as the model says that it shares its experts: its tokens are
    for the next one, and nobody takes them for this one."""
    exchange(world(), lambda number: number + 1 if RANK == 1 and number == 4 else number, 0.01)


def exchange_ends():
    """Healthy: rank 2 computes for 1.2 seconds in each layer, while the others look for tokens."""
    exchange(world(), lambda number: number, 1.2 if RANK == 2 else 0.01)


PROGRAMS = {"exchange-of-other-layer": exchange_of_other_layer, "exchange-ends": exchange_ends}

if __name__ == "__main__":
    run(PROGRAMS)
