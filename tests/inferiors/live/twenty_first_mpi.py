"""Ranks of Open MPI by mpi4py, twenty-first set: `mpirun ... twenty_first_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
ITEMS = 32


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class WorkSharing:
    """Copies files. Who has too many chunks of them gives some to the first rank."""

    def __init__(self, comm):
        self.comm = comm

    def chunks(self, batch):
        mine = numpy.arange(ITEMS * (1 + RANK * batch), dtype=numpy.int64)
        return mine, mine[ITEMS * 2 :]

    def give(self, batch):
        _, surplus = self.chunks(batch)
        flags = self.comm.allgather(1 if len(surplus) and RANK else 0)
        if RANK == 0:
            self.take(sum(flags))
        elif len(surplus):
            self.comm.Send(numpy.resize(surplus, ITEMS), dest=0, tag=batch)

    def take(self, senders):
        chunks = numpy.zeros(ITEMS, dtype=numpy.int64)
        for sender in range(1, senders + 1):
            self.comm.Recv(chunks, source=sender)
            work_for(0.01)

    def copy(self, batches):
        for batch in batches:
            work_for(0.02)
            self.give(batch)
            self.comm.Barrier()


def ranks_that_send_work():
    """As hpc/mpifileutils#26: the ranks that send work are taken to be the first ones, as many as there are of them. In
    the last batch it is the third rank that sends; the first one waits for the second."""
    sharing = WorkSharing(world())
    sharing.copy((0, 2))
    at(RANK)
    sharing.copy((1,))


PROGRAMS = {"ranks-that-send-work": ranks_that_send_work}

if __name__ == "__main__":
    run(PROGRAMS)
