"""Ranks of Open MPI by mpi4py, twentieth set: `mpirun ... twentieth_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
SIZE = 1 << 15
ROUNDS = 4


def mpi():
    from mpi4py import MPI

    return MPI


class Team:
    """A library of collectives beside that of MPI, with a communicator of its own. It takes what it supports."""

    def __init__(self, comm):
        self.comm = comm.Dup()
        self.rank, self.ranks = comm.Get_rank(), comm.Get_size()

    def supports(self, datatype):
        return datatype.is_predefined

    def scatterv(self, parts, received):
        """The parts go from the first rank to the others, one after the other."""
        if self.rank != 0:
            self.comm.Recv(received, 0)
            return
        for rank in range(1, self.ranks):
            self.comm.Send(parts[rank * SIZE : (rank + 1) * SIZE], rank)
        received[:] = parts[:SIZE]


class Communicator:
    def __init__(self):
        self.world = mpi().COMM_WORLD
        self.world.Barrier()
        self.team = Team(self.world)

    def scatterv(self, parts, received, datatype):
        if self.team.supports(datatype):
            self.team.scatterv(parts, received)
        else:
            count = SIZE * received.itemsize // datatype.Get_size()
            self.world.Scatterv(parts, [received, count, datatype], 0)


def scatter_of_blocks():
    """As openucx/ucc#1300: each rank decides for itself whether the library is used for a collective. One has a derived
    datatype, which the library does not take, and does it by MPI; the others do it by the library."""
    communicator = Communicator()
    parts = numpy.arange(float(SIZE * communicator.world.Get_size())) if RANK == 0 else None
    received = numpy.empty(SIZE)
    blocks = mpi().DOUBLE.Create_contiguous(64).Commit()
    for number in range(ROUNDS):
        work_for(0.05)
        last = number == ROUNDS - 1
        if last:
            at(RANK)
        communicator.scatterv(parts, received, blocks if last and RANK == 1 else mpi().DOUBLE)


PROGRAMS = {"scatter-of-blocks": scatter_of_blocks}

if __name__ == "__main__":
    run(PROGRAMS)
