"""Ranks of Open MPI by mpi4py, twenty-ninth set: `mpirun ... twenty_ninth_mpi.py NAME FOLDER`."""

import os
import random

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RANKS = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Arnoldi:
    """Looks for eigenvalues. What the machine can tell apart is found out once, the first time."""

    first, epsilon = True, numpy.zeros(1)

    def machine_constants(self, comm):
        from mpi4py import MPI

        comm.Allreduce(numpy.array([numpy.finfo(float).eps]), Arnoldi.epsilon, op=MPI.MAX)

    def solve(self, comm, size):
        if Arnoldi.first:
            self.machine_constants(comm)
            Arnoldi.first = False
        vector = numpy.ones(size) if comm.rank == 0 else numpy.empty(size)
        comm.Bcast(vector, root=0)
        for _ in range(10):
            work_for(0.005)
            norm = numpy.zeros(1)
            comm.Allreduce(numpy.array([float(vector @ vector)]), norm)
            vector /= numpy.sqrt(norm[0]) + Arnoldi.epsilon[0]
        return norm[0]


def eigenvalues_on_a_part_and_on_all():
    """As opencollab/arpack-ng#46: some ranks solve a problem on a communicator of their own, and all of them another
    one after that. For those that were in the first one it is not the first time, and the others find out what the
    machine can do, with a reduction over all."""
    from mpi4py import MPI

    comm = world()
    part = comm.Split(1 if RANK == 2 else MPI.UNDEFINED)
    if part != MPI.COMM_NULL:
        Arnoldi().solve(part, 64)
    comm.Barrier()
    at(RANK)
    Arnoldi().solve(comm, 256)


class SharedFile:
    """Is written by all ranks together; the one that aggregates has read what the file system should be used like."""

    def __init__(self, comm):
        self.comm, self.tuned = comm, 0

    def read_hints(self):
        if self.comm.rank == 0:
            self.tuned = 1

    def exchange_requests(self, offsets):
        counts = numpy.full(RANKS, len(offsets) // RANKS)
        others = numpy.empty_like(counts)
        self.comm.Alltoall(counts, others)
        received = numpy.empty(int(others.sum()), dtype=offsets.dtype)
        if self.tuned:
            self.comm.Alltoallv([offsets, counts], [received, others])
        else:
            received = numpy.concatenate(self.comm.allgather(offsets))[RANK::RANKS]
        return received

    def write_all(self, offsets):
        work_for(0.02)
        return len(self.exchange_requests(offsets))


def written_with_a_flag_of_one_rank():
    """As pmodels/mpich#5604: how the ranks tell each other what they will write depends on a flag of the library. It is
    set where the settings of the file system are read, which the aggregator alone has done."""
    comm = world()
    file, offsets = SharedFile(comm), numpy.arange(3 * RANKS, dtype=numpy.int64)
    for _ in range(3):
        file.write_all(offsets)
    file.read_hints()
    comm.Barrier()
    at(RANK)
    file.write_all(offsets)


def make_elements(count):
    """Boxes of eight corners each."""
    choice = random.Random(29)
    return [tuple(choice.randrange(count) for _ in range(8)) for _ in range(count)]


def facial_adjacency(elements):
    """Which elements have a face together, by their corners."""
    faces = {}
    for number, corners in enumerate(elements):
        for face in range(6):
            key = frozenset(corners[(face + step) % 8] for step in range(4))
            faces.setdefault(key, []).append(number)
    return [group for group in faces.values() if len(group) > 1]


def partition(elements, levels=10_000):
    """Of the mesh as it is after it was refined so often; the adjacency is found out for each level."""
    for level in range(levels):
        adjacency = facial_adjacency(elements)
        parts = [[] for _ in range(RANKS)]
        for number in range(len(elements)):
            parts[(number + len(adjacency) + level) % RANKS].append(number)
    return parts


def mesh_partitioned_by_the_first():
    """Healthy, as illinois-ceesd/mirgecom#202: the start takes long. The first rank makes the mesh, finds out which
    elements have a face together, and deals them to all; the others wait for their parts."""
    comm = world()
    elements = make_elements(30_000) if RANK == 0 else None
    comm.Barrier()
    at(RANK)
    parts = partition(elements) if RANK == 0 else None
    comm.scatter(parts, root=0)


PROGRAMS = {
    "solves-on-a-part-first": eigenvalues_on_a_part_and_on_all,
    "writes-with-its-own-tuning": written_with_a_flag_of_one_rank,
    "partitions-the-mesh": mesh_partitioned_by_the_first,
}

if __name__ == "__main__":
    run(PROGRAMS)
