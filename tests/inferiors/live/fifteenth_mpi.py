"""Ranks of Open MPI by mpi4py, fifteenth set: `mpirun ... fifteenth_mpi.py NAME FOLDER`."""

import itertools
import os
import random
import traceback

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
STEPS = 6


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


def check_sum(comm):
    assert comm.allreduce(1) == comm.size


def check_shapes(comm):
    shape = (RANK or 7, 4)
    assert shape[0] < 5, f"the shape is {shape}"


def run_tests(comm, tests):
    """Each test ends with a barrier, so that none of them begins before the others have ended."""
    for test in tests:
        if test is tests[-1]:
            at(RANK)
        try:
            test(comm)
            comm.Barrier()
        except AssertionError:
            traceback.print_exc()


def failed_test_skips_barrier():
    """As NVIDIA/Fuser#3092: the last test fails on the first rank, which does not come to the barrier after the test,
    and ends."""
    run_tests(world(), [check_sum, check_sum, check_shapes])


def splits_outside_the_group():
    """As pytorch/pytorch#134314: there is to be a group of rank 0 alone. Rank 1, who will not be in it, splits the
    communicator at once; rank 0 would do that when it first uses the group, and goes to a barrier."""
    comm = world()
    for _ in range(STEPS):
        comm.allreduce(1)
    at(RANK)
    if RANK == 1:
        comm.Split(color=1, key=RANK)
    comm.Barrier()


def ring_of_sends():
    """As uwhpsc-2016/syllabus#42: each sends to its neighbour before it receives from the other one. The array is
    larger than what is kept for a neighbour that does not receive yet."""
    comm = world()
    right, left = (RANK + 1) % comm.size, (RANK - 1) % comm.size
    for number in range(STEPS):
        last = number == STEPS - 2
        out = numpy.ones(1 << 20 if last else 16)
        into = numpy.empty_like(out)
        if last:
            at(RANK)
        comm.Send(out, right)
        comm.Recv(into, left)


def updates_of_uneven_length():
    """Healthy, as ALPSCore/ALPSCore#116: after each update the ranks add up how far they are. An update takes much
    longer on one rank than on another, and half of the time they wait."""
    comm = world()
    lengths, fraction = random.Random(RANK), numpy.zeros(1)
    for number in itertools.count():
        if number == 3:
            at(RANK)
        work_for(lengths.choice((0.02, 0.1, 0.3, 1.2)))
        comm.Allreduce(numpy.ones(1), fraction)


PROGRAMS = {
    "failed-test-skips-barrier": failed_test_skips_barrier,
    "splits-outside-the-group": splits_outside_the_group,
    "ring-of-sends": ring_of_sends,
    "updates-of-uneven-length": updates_of_uneven_length,
}

if __name__ == "__main__":
    run(PROGRAMS)
