"""Ranks of Open MPI by mpi4py, a hang and a healthy job, eighth set: `mpirun ... eighth_mpi.py NAME FOLDER`."""

import os
import sys

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
TASK, STOP = 1, 2


def world():
    os.environ["OMPI_MCA_btl_vader_backing_directory"] = sys.argv[2]  # noqa: SIM112 - Open MPI spells it so
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


def hand_out(comm, tasks, told):
    """Rank 0: a task for each worker in turns, the answers, and the end for the workers that are to be told."""
    from mpi4py import MPI

    for number in range(tasks):
        for worker in range(1, comm.size):
            comm.Send(numpy.full(64, float(number)), worker, TASK)
        for _ in range(1, comm.size):
            comm.Recv(numpy.empty(64), MPI.ANY_SOURCE, TASK)
    for worker in told:
        comm.Send(numpy.empty(64), worker, STOP)


def work(comm, seconds):
    """A worker, until it is told that there is no more to do."""
    from mpi4py import MPI

    status, numbers = MPI.Status(), numpy.empty(64)
    while True:
        comm.Recv(numbers, 0, MPI.ANY_TAG, status)
        if status.tag == STOP:
            return
        work_for(seconds)
        comm.Send(numbers, 0, TASK)


def last_worker_not_told():
    """Rank 0 tells the workers 1 to size - 2 that all is done: rank 2 waits for a task, the others for rank 2."""
    comm = world()
    at(RANK)
    if RANK == 0:
        hand_out(comm, 3, range(1, comm.size - 1))
    else:
        work(comm, 0.01)
    comm.Barrier()


def all_workers_told():
    """Healthy: round after round; rank 1 needs long for a task, rank 2 has ended its own and waits."""
    comm = world()
    at(RANK)
    while True:
        if RANK == 0:
            hand_out(comm, 2, range(1, comm.size))
        else:
            work(comm, 1.3 if RANK == 1 else 0.01)
        comm.Barrier()


PROGRAMS = {"last-worker-not-told": last_worker_not_told, "all-workers-told": all_workers_told}

if __name__ == "__main__":
    run(PROGRAMS)
