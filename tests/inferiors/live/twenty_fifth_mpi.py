"""Ranks of Open MPI by mpi4py, twenty-fifth set: `mpirun ... twenty_fifth_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class SharedFile:
    """All ranks open it; the first one finds out how long it is and tells the others."""

    def __init__(self, comm, name):
        from mpi4py import MPI

        self.comm = comm
        self.file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
        try:
            length = numpy.zeros(1, dtype="i8")
            if RANK == 0:
                length[0] = self.size()
            self.comm.Bcast(length, root=0)
            self.length = int(length[0])
        except OSError as error:
            print(f"rank {RANK}: {error}", flush=True)
            self.file.Close()
            raise

    def size(self):
        raise OSError("the size of the file is not known: stale file handle")


def opens_with_all_ranks():
    """As HDFGroup/hdf5#118: the first rank gets an error when it asks for the size of a file, and closes the file,
    which all ranks do together. The others wait for the size."""
    comm = world()
    at(RANK)
    SharedFile(comm, in_folder("particles.h5"))


class Configurations:
    """The particles of all ranks, put together on the first one."""

    def __init__(self, comm, count):
        self.comm, self.count = comm, count
        self.ids, self.positions = numpy.arange(count), numpy.zeros((count, 3))

    def collect(self):
        for rank in range(1, self.comm.size):
            for values in (self.ids, self.positions, self.positions):
                self.comm.Recv(numpy.empty_like(values), source=rank, tag=1)
            self.comm.Send(self.ids, dest=rank, tag=2)
            self.comm.Send(self.positions, dest=rank, tag=2)
            self.comm.Send(self.positions, dest=rank, tag=2)

    def take_part(self):
        replies = [
            self.comm.Irecv(numpy.empty_like(self.ids), source=0, tag=2),
            self.comm.Irecv(numpy.empty_like(self.positions), source=0, tag=2),
        ]
        for values in (self.ids, self.positions, self.positions):
            self.comm.Send(values, dest=0, tag=1)
        for reply in replies:
            reply.Wait()

    def gather(self):
        if RANK == 0:
            self.collect()
        else:
            self.take_part()


def gathers_configurations():
    """As espressopp/espressopp#252: each of the others gets three messages from the first rank, and has asked for two.
    They go on with the next step."""
    comm = world()
    configurations, energy = Configurations(comm, 100_000), numpy.zeros(1)
    at(RANK)
    for _ in range(3):
        configurations.gather()
        work_for(0.02)
        comm.Allreduce(numpy.ones(1), energy)


class DofMap:
    """Numbers of the unknowns. Each rank numbers those of its own elements, and tells how many there are."""

    def __init__(self, comm):
        self.comm = comm

    def reinit(self, elements):
        known = {}
        for number in range(elements):
            for node in (number * 7 % 5000, number * 11 % 5000, number * 13 % 5000):
                known.setdefault(node, len(known))
        return len(known)

    def distribute(self, elements):
        count = self.reinit(elements)
        counts = numpy.empty(self.comm.size, dtype="i8")
        self.comm.Allgather(numpy.array([count]), counts)
        return counts


def numbers_unknowns():
    """Healthy, as libMesh/libmesh#1088: the unknowns of a large problem are numbered, for which some ranks need hours
    more than the others."""
    comm = world()
    unknowns = DofMap(comm)
    unknowns.distribute(1000)
    at(RANK)
    unknowns.distribute(10**11 if RANK == 1 else 1000)


PROGRAMS = {
    "opens-with-all-ranks": opens_with_all_ranks,
    "gathers-configurations": gathers_configurations,
    "numbers-unknowns": numbers_unknowns,
}

if __name__ == "__main__":
    run(PROGRAMS)
