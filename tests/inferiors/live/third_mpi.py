"""Ranks of Open MPI by mpi4py that hang, and their healthy twins, third set: `mpirun ... third_mpi.py NAME FOLDER`."""

import numpy
from mpi4py import MPI

from tests.inferiors.live.place import at, read_for_ever, run, work_for

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank


def place():
    WORLD.Barrier()
    at(RANK)


def window_lock_kept():
    """Rank 1 has the lock of rank 0's window while it waits for a file; rank 2 wants it, rank 0 waits for both."""
    window = MPI.Win.Allocate(8, 1, comm=WORLD)
    if RANK == 1:
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
    place()
    if RANK == 1:
        read_for_ever()
    elif RANK == 2:
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        window.Unlock(0)
    WORLD.Barrier()


def window_lock_in_turns():
    """The twin: who has the lock computes for a while and gives it back."""
    window = MPI.Win.Allocate(8, 1, comm=WORLD)
    place()
    while True:
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        work_for(0.02)
        window.Unlock(0)
        WORLD.Barrier()


def barrier_started_by_two():
    """Ranks 1 and 2 start a barrier and wait for its end; rank 0 still waits for a message that nobody sends."""
    place()
    if RANK == 0:
        WORLD.Recv(numpy.zeros(4), source=1, tag=3)
    WORLD.Ibarrier().Wait()


def barrier_overlaps():
    """The twin: all start the barrier, compute, and wait for its end."""
    place()
    while True:
        request = WORLD.Ibarrier()
        work_for(0.02 * (RANK + 1))
        request.Wait()


PROGRAMS = {
    "window-lock-kept": window_lock_kept,
    "window-lock-in-turns": window_lock_in_turns,
    "barrier-started-by-two": barrier_started_by_two,
    "barrier-overlaps": barrier_overlaps,
}

if __name__ == "__main__":
    run(PROGRAMS)
