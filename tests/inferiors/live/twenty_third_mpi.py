"""Ranks of Open MPI by mpi4py, twenty-third set: `mpirun ... twenty_third_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Grid:
    """Elements in rows, some for each rank. When they are dealt anew, some go to other ranks."""

    def __init__(self, comm, counts):
        self.comm, self.ranges = comm, self.dealt(counts)
        self.values = {row: float(row) for row in range(*self.ranges[comm.rank])}

    @staticmethod
    def dealt(counts):
        ends = numpy.cumsum(counts).tolist()
        return list(zip([0, *ends[:-1]], ends))

    def messages(self, ranges):
        """(from, to, row) of each row that goes."""
        for source, (begin, end) in enumerate(self.ranges):
            for row in range(begin, end):
                target = next(rank for rank, (first, last) in enumerate(ranges) if first <= row < last)
                if target != source:
                    yield source, target, row

    def redistribute(self, counts):
        ranges = self.dealt(counts)
        for source, target, row in list(self.messages(ranges)):
            if self.comm.rank == source and row > ranges[target][0]:
                self.comm.send(self.values.pop(row), dest=target, tag=row)
            if self.comm.rank == target:
                self.values[row] = self.comm.recv(source=source, tag=row)
        self.ranges = ranges

    def norm(self):
        work_for(0.02)
        return self.comm.allreduce(sum(value * value for value in self.values.values()))


def message_by_a_condition():
    """As project-asgard/asgard#220: rows go to other ranks when the grid changes. Who sends asks for a condition that
    is not needed, and leaves out a row that the other one receives."""
    comm = world()
    grid = Grid(comm, (6, 4, 2))
    for counts in ((7, 3, 2), (5, 5, 2)):
        grid.norm()
        if counts == (5, 5, 2):
            at(RANK)
        grid.redistribute(counts)
    grid.norm()


def write_rows(comm, name, rows, values):
    """With a stride, each row is a write of its own, in which all ranks of the file take part."""
    from mpi4py import MPI

    file = MPI.File.Open(comm, in_folder(name), MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for row in rows:
        file.Write_at_all(row * values.nbytes, values)
    file.Close()


def rows_with_a_stride():
    """As Unidata/netcdf-c#448: a variable is written with a stride, row by row. One rank has no rows, and so does not
    write at all; each write of the others is one of all ranks."""
    comm = world()
    values = numpy.full(64, float(RANK))
    write_rows(comm, "first.bin", range(RANK, 9, 3), values)
    at(RANK)
    write_rows(comm, "second.bin", range(RANK, 8, 2) if RANK < 2 else (), values)


def find_global_indices(comm, points):
    """The place of each point on a curve through all of them."""
    keys = (points[:, 0] * 1024).astype(numpy.int64) * 1024 + (points[:, 1] * 1024).astype(numpy.int64)
    bounds = numpy.empty(2, dtype=numpy.int64)
    comm.Allreduce(numpy.array([-keys.min(), keys.max()]), bounds)
    order = numpy.argsort(keys, kind="stable")
    counts = comm.allgather(len(keys))
    return order + sum(counts[:RANK])


def indices_for_each_rank():
    """Healthy, as libMesh/libmesh#1468: the indices of all elements are found again for each of very many parts, where
    once would do. It is all the same work, and takes hours."""
    comm = world()
    points = numpy.random.default_rng(RANK).random((200_000, 2))
    for part in range(100_000):
        if part == 5:
            at(RANK)
        find_global_indices(comm, points)


PROGRAMS = {
    "message-by-a-condition": message_by_a_condition,
    "rows-with-a-stride": rows_with_a_stride,
    "indices-for-each-rank": indices_for_each_rank,
}

if __name__ == "__main__":
    run(PROGRAMS)
