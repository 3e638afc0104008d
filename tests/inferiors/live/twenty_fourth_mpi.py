"""Ranks of Open MPI by mpi4py, twenty-fourth set: `mpirun ... twenty_fourth_mpi.py NAME FOLDER`."""

import itertools
import os

import numpy

from tests.inferiors.live.place import at, fifo, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Context:
    """Each partition has some ranks. The world is split when the first thing of a simulation is made."""

    def __init__(self, comm, ranks_each):
        self.comm, self.ranks_each, self.partition = comm, ranks_each, None

    def init_read(self, particles):
        self.partition = self.comm.Split(RANK // self.ranks_each, RANK)
        return numpy.asarray(particles, dtype=float)


def read_particles():
    """The script has another source for the last partition."""
    if RANK == 2:
        with open(fifo(), "rb", buffering=0) as file:
            return list(file.read(4))
    return [1.0, 2.0, 3.0, 4.0]


def rank_without_init():
    """As glotzerlab/hoomd-blue#54: each partition runs the script for itself. One of its ranks does not come so far as
    to make its simulation; all others wait for it, as the world is split just then."""
    context = Context(world(), 1)
    at(RANK)
    context.init_read(read_particles())


class Rte:
    """What the two sides of a test tell each other before it."""

    def __init__(self, comm):
        self.comm, self.peer = comm, 1 - RANK

    def post_vec(self, data):
        self.comm.Send(data, dest=self.peer, tag=1)

    def recv(self, data):
        self.comm.Recv(data, source=self.peer, tag=1)


def exchange_endpoints(rte, size):
    mine, other = numpy.full(size, RANK, dtype=numpy.uint8), numpy.empty(size, dtype=numpy.uint8)
    rte.post_vec(mine)
    rte.recv(other)
    return other


def peers_exchange_first():
    """As openucx/ucx#8594: both sides send what the other has to know, and receive after that. It is small most of the
    time; when it is large, a send waits until the other side receives."""
    rte = Rte(world())
    exchange_endpoints(rte, 64)
    at(RANK)
    exchange_endpoints(rte, 1 << 22)


class Regridder:
    """From the grid of a file to that of the model. Each rank has some of the tiles."""

    def __init__(self, comm):
        self.comm = comm

    def weights_of_tiles(self, number):
        random = numpy.random.default_rng(number)
        tile = random.random((64, 64))
        for _ in range(4 * (RANK + 1)):
            work_for(0.2)
            tile = tile @ tile / numpy.linalg.norm(tile)
        return tile

    def store(self, number):
        parts = self.comm.gather(self.weights_of_tiles(number), root=0)
        if RANK == 0:
            work_for(1.5)
            numpy.save(in_folder(f"weights{number % 4}.npy"), numpy.concatenate(parts))
        return self.comm.bcast(number, root=0)


def regridding_weights():
    """Healthy, as geoschem/GCHP#132: before the first step there are weights to make, for each grid of the input. That
    takes hours, and nothing is said about it."""
    regridder = Regridder(world())
    print("ExtData: prefetch", flush=True)
    for number in itertools.count():
        regridder.store(number)
        if number == 0:
            at(RANK)


PROGRAMS = {
    "rank-without-init": rank_without_init,
    "peers-exchange-first": peers_exchange_first,
    "regridding-weights": regridding_weights,
}

if __name__ == "__main__":
    run(PROGRAMS)
