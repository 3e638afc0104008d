"""Ranks of Open MPI by mpi4py that hang, and a healthy job, tenth set: `mpirun ... tenth_mpi.py NAME FOLDER`."""

import itertools
import os
import sys

import numpy

from tests.inferiors.live.eighth_mpi import RANK, world
from tests.inferiors.live.place import at, run, work_for


def caches(seconds, writers_at):
    """Rank 1 opens its cache to those that write into it, and waits until they have."""
    for part in ("sm", "rdma"):
        os.environ[f"OMPI_MCA_osc_{part}_backing_directory"] = sys.argv[2]
    comm = world()
    from mpi4py import MPI

    window, everybody = MPI.Win.Allocate(3 * 4096, 1, comm=comm), comm.Get_group()
    for number in itertools.count():
        if number == 3:
            at(RANK)
        if RANK == 1:
            window.Post(everybody.Incl(writers_at(number)))
            window.Wait()
        else:
            work_for(seconds)
            window.Start(everybody.Incl([1]))
            window.Put(numpy.full(4096, RANK, numpy.uint8), 1, RANK * 4096)
            window.Complete()
        comm.Barrier()


def window_posted_to_one():
    """In the fourth step rank 1 takes rank 2's request for one that was aborted, and opens its cache to rank 0 only."""
    caches(0.01, lambda number: [0] if number == 3 else [0, 2])


def window_posted_to_both():
    """Healthy: rank 2 needs long for what it writes."""
    caches(1.2 if RANK == 2 else 0.01, lambda number: [0, 2])


class Groups:
    """Communicators of some ranks, made by those ranks alone. The tag tells one that is being made from another one."""

    def __init__(self, comm):
        self.comm, self.made = comm, 0

    def make(self, ranks):
        self.made += 1
        return self.comm.Create_group(self.comm.Get_group().Incl(ranks), self.made)


def counts_own_groups():
    """The tag is the number of groups that a rank has made, and rank 2 has made one of itself alone."""
    groups = Groups(world())
    if RANK == 2:
        groups.make([2])
    at(RANK)
    groups.make([0, 1, 2]).Barrier()


PROGRAMS = {
    "window-posted-to-one": window_posted_to_one,
    "window-posted-to-both": window_posted_to_both,
    "counts-own-groups": counts_own_groups,
}

if __name__ == "__main__":
    run(PROGRAMS)
