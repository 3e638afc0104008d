"""Ranks of Open MPI by mpi4py that hang, and healthy ones, second set: `mpirun ... second_mpi.py NAME FOLDER`."""

import socket
import time

import numpy
from mpi4py import MPI

from tests.inferiors.live.place import at, run, work_for

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size


def place():
    WORLD.Barrier()
    at(RANK)


def numbers():
    return numpy.ones(64)


def other_root():
    """Rank 1 reduces to itself, the others to rank 0."""
    place()
    WORLD.Reduce(numbers(), numpy.zeros(64), root=1 if RANK == 1 else 0)
    WORLD.Barrier()


def split_of_some():
    """Split is for all ranks of the communicator; rank 2 has no work in the group and goes to the barrier."""
    place()
    if RANK < 2:
        WORLD.Split(0, RANK)
    WORLD.Barrier()


def other_tag():
    """Rank 0 receives tag 1, rank 1 sends tag 2 and waits until it was received."""
    place()
    if RANK == 0:
        WORLD.Recv(numbers(), source=1, tag=1)
    elif RANK == 1:
        WORLD.Ssend(numbers(), dest=0, tag=2)
    WORLD.Barrier()


def fence_left_out():
    """Rank 2 has a fence less than the others between its puts."""
    window = MPI.Win.Create(numbers(), comm=WORLD)
    place()
    window.Fence()
    if RANK != 2:
        window.Fence()
    WORLD.Bcast(numbers(), root=0)


def long_sleep():
    """Rank 1 waits for its license, the others for it."""
    place()
    if RANK == 1:
        time.sleep(86400)
    WORLD.Ibarrier().Wait()


def scatter_and_allgather():
    """After a skipped validation rank 0 is a step ahead."""
    place()
    if RANK != 0:
        WORLD.Allgather(numbers(), numpy.zeros(64 * SIZE))
    WORLD.Alltoall(numpy.ones(SIZE), numpy.zeros(SIZE))


def client_leader():
    """Healthy: rank 0 waits for a connection; the others look for a message four times a second."""
    place()
    while True:
        if RANK == 0:
            with socket.create_server(("127.0.0.1", 0)) as server:
                server.accept()
        else:
            while not WORLD.Iprobe(source=0):
                time.sleep(0.25)
            WORLD.recv(source=0)


def uneven_steps():
    """Healthy: rank 1 computes a second for each step."""
    place()
    while True:
        work_for(1.0 if RANK == 1 else 0.05)
        WORLD.Allreduce(MPI.IN_PLACE, numbers())


def barrier_with_test():
    """Healthy: everybody computes while the non-blocking barrier is not through."""
    place()
    while True:
        request = WORLD.Ibarrier()
        while not request.Test():
            work_for(0.02)
        time.sleep(0.05 * RANK)


PROGRAMS = {
    "other-root": other_root,
    "split-of-some": split_of_some,
    "other-tag": other_tag,
    "fence-left-out": fence_left_out,
    "long-sleep": long_sleep,
    "a-step-ahead": scatter_and_allgather,
    "client-leader": client_leader,
    "uneven-steps": uneven_steps,
    "barrier-with-test": barrier_with_test,
}

if __name__ == "__main__":
    run(PROGRAMS)
