"""Ranks of Open MPI by mpi4py that hang, and a healthy twin, fourth set: `mpirun ... fourth_mpi.py NAME FOLDER`."""

import os
import sys

import numpy
from mpi4py import MPI

from tests.inferiors.live.place import at, run, work_for

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank


def place():
    WORLD.Barrier()
    at(RANK)


def wrong_neighbour():
    """A shift to the right around the ring; rank 1 shifts to the left."""
    place()
    right, left = (RANK + 1) % 3, (RANK + 2) % 3
    if RANK == 1:
        right, left = left, right
    WORLD.Sendrecv(numpy.ones(64), right, 5, numpy.zeros(64), left, 5)
    WORLD.Barrier()


def shared_file():
    return MPI.File.Open(WORLD, os.path.join(sys.argv[2], "state"), MPI.MODE_CREATE | MPI.MODE_RDWR)


def file_resized_by_two():
    """The size of the common file is set by all; rank 1 has no part of the state and leaves it out."""
    file = shared_file()
    place()
    if RANK != 1:
        file.Set_size(1 << 20)
        file.Write_at(RANK * 4096, numpy.ones(512))
    WORLD.Allreduce(MPI.IN_PLACE, numpy.ones(4))


def file_written_by_all():
    """The twin: each writes its part with the others, an empty one as well, and the steps go on."""
    file = shared_file()
    place()
    step = 0
    while True:
        file.Set_size(1 << 20)
        file.Write_at_all(RANK * 4096, numpy.ones(0 if step % 3 == RANK else 512))
        work_for(0.03 * (RANK + 1))
        WORLD.Allreduce(MPI.IN_PLACE, numpy.ones(4))
        step += 1


PROGRAMS = {
    "wrong-neighbour": wrong_neighbour,
    "file-resized-by-two": file_resized_by_two,
    "file-written-by-all": file_written_by_all,
}

if __name__ == "__main__":
    run(PROGRAMS)
