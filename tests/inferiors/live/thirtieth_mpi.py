"""Ranks of Open MPI by mpi4py that hang, and healthy ones, thirtieth set: `mpirun ... thirtieth_mpi.py NAME FOLDER`."""

import os
import shutil
import sys
import time

import numpy

from tests.inferiors.live.place import at, in_folder, run, wait_for_role, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
STEPS = 4


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class SharedFolder:
    """Of a test: the first rank makes it, and all are at its end before it goes away."""

    def __init__(self, comm, name):
        self.comm, self.name = comm, name

    def __enter__(self):
        path = in_folder(self.name)
        if RANK == 0:
            os.makedirs(path, exist_ok=True)
        return self.comm.bcast(path, root=0)

    def __exit__(self, *_):
        self.comm.Barrier()
        if RANK == 0:
            shutil.rmtree(in_folder(self.name), ignore_errors=True)


def ensure_folder(comm, path):
    """By the first rank of each machine."""
    from mpi4py import MPI

    if RANK == 0:
        os.mkdir(path)
    comm.Barrier()
    at(RANK)
    comm.Split_type(MPI.COMM_TYPE_SHARED).Free()


def test_makes_the_folder(comm):
    with SharedFolder(comm, "new") as folder:
        path = os.path.join(folder, "postpro")
        if RANK == 0:
            comm.recv(source=2)  # that one has looked
        elif RANK == 1:
            while not os.path.exists(path):
                time.sleep(0.01)
        assert not os.path.exists(path), "it is to be made here"
        if RANK == 2:
            comm.send("looked", dest=0)
        ensure_folder(comm, path)


def test_keeps_the_folder(comm):
    if RANK == 1:
        at(RANK)
    with SharedFolder(comm, "kept") as folder:
        assert os.path.exists(folder)


def looks_for_the_folder():
    """As awslabs/palace#838: a test looks that a folder is not there, and makes it with a helper. One rank looks when
    the first one has made it, and fails; the barrier at the end of its test is that of the helper for the others. They
    go on to split the communicator, and it goes on to the next test."""
    comm = world()
    for test in (test_makes_the_folder, test_keeps_the_folder):
        try:
            test(comm)
        except AssertionError as error:
            print(f"{RANK}: {test.__name__} failed: {error}", file=sys.stderr, flush=True)


class Wells:
    """Of one simulator of several that are coupled; each rank has some."""

    def __init__(self, comm):
        self.comm, self.rates = comm, numpy.full(4, 1.0 + RANK)

    def sum(self, value):
        total = numpy.zeros(1)
        self.comm.Allreduce(numpy.array([float(value)]), total)
        return float(total[0])

    def solve(self, length):
        work_for(0.01)
        self.sum(abs(self.rates).sum() * length)
        self.rates *= 0.9

    def send_to_master(self):
        with open(in_folder("group"), "w") as file:
            file.write(f"{self.sum(self.rates.sum())}\n")


def sums_in_the_first_rank():
    """As OPM/opm-simulators#6916: what the groups of wells produce is sent to the master at the end of a report step,
    by the first rank alone. The rates are summed over all ranks on the way; the others are in the next step."""
    comm = world()
    wells = Wells(comm)
    for step in range(1, STEPS + 2):
        if step > STEPS and RANK != 0:
            at(RANK)
        length = comm.bcast(0.1 * step if RANK == 0 else None, root=0)
        wells.solve(length)
        if step == STEPS and RANK == 0:
            at(RANK)
            wells.send_to_master()


def watched_barrier(comm, patience=5.0):
    """Says so where it takes long, and who is there already."""
    there = numpy.zeros(comm.size, dtype="i")
    request = comm.Iallgather(numpy.ones(1, dtype="i"), there)
    began = time.monotonic()
    while not request.Test():
        time.sleep(0.001)
        if time.monotonic() - began > patience:
            began = time.monotonic()
            print(f"rank {RANK} has waited for {patience} s, there are {there.tolist()}", file=sys.stderr, flush=True)


def gravity(particles):
    """Of each to each."""
    total = numpy.zeros(3)
    for particle in particles:
        distance = particles - particle
        square = (distance**2).sum(axis=1) + 0.01
        total += (distance / square[:, None] ** 1.5).sum(axis=0)
    return total


def warns_in_its_barrier():
    """Healthy, as MP-Gadget/MP-Gadget#278: the particles are close together, and most of the work is that of one rank.
    The others are in a barrier that tests whether all have come, and says when that takes long."""
    comm = world()
    particles = numpy.random.default_rng(RANK).random((4000 if RANK == 2 else 200, 3))
    for step in range(1_000_000):
        if step == 1:
            at(RANK)
            wait_for_role("2")
        gravity(particles)
        watched_barrier(comm)


PROGRAMS = {
    "looks-for-the-folder": looks_for_the_folder,
    "sums-in-the-first-rank": sums_in_the_first_rank,
    "warns-in-its-barrier": warns_in_its_barrier,
}

if __name__ == "__main__":
    run(PROGRAMS)
