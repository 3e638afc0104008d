"""Ranks of Open MPI by mpi4py, thirty-fourth set: `mpirun ... thirty_fourth_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Series:
    """A file of all ranks. What is in it is set up by all of them; a chunk is written by who has it."""

    def __init__(self, comm, path):
        self.comm, self.path, self.datasets, self.chunks = comm, path, {}, []

    def set_up(self, name, length):
        if name not in self.datasets:
            lengths = self.comm.allgather(length)
            self.datasets[name] = (sum(lengths), sum(lengths[: self.comm.rank]))

    def store_chunk(self, name, values):
        self.set_up(name, len(values))
        self.chunks.append((name, self.datasets[name][1], values))

    def close(self):
        written = numpy.zeros(1)
        for name, offset, values in self.chunks:
            numpy.save(f"{self.path}-{name}-{offset}", values)
        self.comm.Allreduce(numpy.array([float(len(self.chunks))]), written)
        return int(written[0])


def density(comm, iteration):
    """The part of the grid that this rank has; after some steps the last rank has none."""
    planes = 4 if iteration < 2 or comm.rank < comm.size - 1 else 0
    return numpy.full(planes * 16, 1.0 + comm.rank)


def stores_chunks_where_it_has_some():
    """As cp2k/cp2k#4942: the density is written in each iteration, by the ranks that have planes of it."""
    comm = world()
    for iteration in range(4):
        work_for(0.05)
        series = Series(comm, in_folder(f"density-{iteration}"))
        values = density(comm, iteration)
        if iteration == 2:
            at(RANK)
        if len(values):
            series.store_chunk("density", values)
        print(f"iteration {iteration}: {series.close()} chunks", flush=True)


class Tags:
    """Numbers for messages, which start again after a while."""

    FIRST, CYCLE = 5000, 1001

    def __init__(self):
        self.used = 0

    def next(self):
        self.used += 1
        return self.FIRST + (self.used - 1) % self.CYCLE


class PeriodicBoundary:
    """Each rank sends a layer of its cells to both of its neighbours."""

    def __init__(self, comm):
        self.comm, self.tags, self.cells = comm, Tags(), numpy.full(10, float(comm.rank))
        self.left, self.right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size

    def apply(self):
        to_left, to_right = self.tags.next(), self.tags.next()
        sends = [
            self.comm.Isend(self.cells[1:2].copy(), dest=self.left, tag=to_left),
            self.comm.Isend(self.cells[-2:-1].copy(), dest=self.right, tag=to_right),
        ]
        self.comm.Recv(self.cells[-1:], source=self.right, tag=to_right - 1)
        self.comm.Recv(self.cells[:1], source=self.left, tag=to_left + 1)
        for send in sends:
            send.Wait()


def starts_its_tags_again():
    """As IPPL-framework/ippl#90: after many steps the tags of a periodic boundary start again, in the middle of an
    exchange."""
    boundary = PeriodicBoundary(world())
    for step in range(2000):
        boundary.cells[1:-1] += 0.1 * (boundary.cells[2:] - 2 * boundary.cells[1:-1] + boundary.cells[:-2])
        if step == Tags.CYCLE // 2:
            at(RANK)
        boundary.apply()


def creates_a_group_of_some():
    """As open-mpi/ompi#12530: the ranks above the first two want a communicator of their own."""
    comm = world()
    work_for(0.1 * (RANK + 1))
    at(RANK)
    if RANK > 1:
        some = comm.Create(comm.Get_group().Incl(list(range(2, comm.size))))
        print(f"rank {RANK} is {some.rank} of {some.size}", flush=True)


def spectrum(sightline, bins=400):
    total = numpy.zeros(bins)
    for particle in range(20_000):
        centre = (particle * 37 + sightline * 11) % bins
        total += numpy.exp(-0.5 * ((numpy.arange(bins) - centre) / 3.0) ** 2)
    return total


def one_rank_after_the_other():
    """As sbird/fake_spectra#22, healthy: each rank has sightlines, and they take turns."""
    comm = world()
    at(RANK)
    for snapshot in range(1000):
        for turn in range(comm.size):
            if comm.rank == turn:
                for sightline in range(20):
                    spectrum(sightline + 100 * snapshot)
                print(f"rank {turn} is done", flush=True)
            comm.Barrier()


PROGRAMS = {
    "stores-chunks-where-it-has-some": stores_chunks_where_it_has_some,
    "starts-its-tags-again": starts_its_tags_again,
    "creates-a-group-of-some": creates_a_group_of_some,
    "one-rank-after-the-other": one_rank_after_the_other,
}

if __name__ == "__main__":
    run(PROGRAMS)
