"""Ranks of Open MPI by mpi4py, eighteenth set: `mpirun ... eighteenth_mpi.py NAME FOLDER`."""

import os
import sys

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


def finalize_process():
    from mpi4py import MPI

    print(f"[{RANK}] at its end", flush=True)
    MPI.Finalize()


def error(text):
    """As in a program of one process: say what is wrong, tidy up and leave."""
    print(f"[{RANK}] {text}", flush=True)
    at(RANK)
    finalize_process()
    sys.exit(1)


class Lattice:
    """Each rank has a part of a gauge field, in a file of its own."""

    def __init__(self, comm):
        self.comm, self.field = comm, numpy.full(32, 1.0 + RANK)
        if RANK != 2:
            numpy.save(self.name(1), self.field)
        numpy.save(self.name(0), self.field)

    def name(self, number):
        return in_folder(f"configuration{number}-{RANK}.npy")

    def plaquette(self):
        total = numpy.zeros(1)
        self.comm.Allreduce(numpy.array([float(self.field.sum())]), total)
        return float(total[0])

    def read(self, number):
        if not os.path.exists(self.name(number)):
            error(f"there is no file for configuration {number}")
        self.field = numpy.load(self.name(number))

    def measure(self):
        for _ in range(10):
            work_for(0.005)
            self.plaquette()


def rank_without_its_file_finalizes():
    """As claudiopica/HiRep#2: one rank cannot read its file. Its error ends MPI on that rank, which waits until all
    others do so as well; they have their files and begin to measure."""
    lattice = Lattice(world())
    for number in range(2):
        lattice.read(number)
        if number == 1:
            at(RANK)
        lattice.measure()


PROGRAMS = {"rank-without-its-file-finalizes": rank_without_its_file_finalizes}

if __name__ == "__main__":
    run(PROGRAMS)
