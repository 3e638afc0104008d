"""Ranks of Open MPI by mpi4py, a hang and its healthy twin, seventh set: `mpirun ... seventh_mpi.py NAME FOLDER`."""

import os
import sys

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def exchange(neighbours, seconds):
    """The halo of a sequence that is cut in pieces: each rank has its list of neighbours."""
    os.environ["OMPI_MCA_btl_vader_backing_directory"] = sys.argv[2]  # noqa: SIM112 - Open MPI spells it so
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    graph = world.Create_dist_graph_adjacent(neighbours, neighbours)
    world.Barrier()
    at(RANK)
    while True:
        ours = numpy.full(len(neighbours), float(RANK))
        graph.Neighbor_alltoall(ours, numpy.empty(len(neighbours)))
        work_for(seconds)
        world.Barrier()


def neighbours_one_sided():
    """Rank 0 has rank 2 for a neighbour, as in a ring; rank 2 has not rank 0, as if the sequence had two ends."""
    exchange({0: [1, 2], 1: [0, 2], 2: [1]}[RANK], 0.01)


def neighbours_in_ring():
    """The twin: everybody is everybody's neighbour, and rank 2 computes for long between the exchanges."""
    exchange([other for other in range(3) if other != RANK], 1.5 if RANK == 2 else 0.01)


PROGRAMS = {"neighbours-one-sided": neighbours_one_sided, "neighbours-in-ring": neighbours_in_ring}

if __name__ == "__main__":
    run(PROGRAMS)
