"""Ranks of Open MPI by mpi4py, sixteenth set: `mpirun ... sixteenth_mpi.py NAME FOLDER`."""

import itertools
import os
import time
import traceback

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
STEPS = 6


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Solver:
    """The first rank looks for parameters, and the others get them from it."""

    def tune(self, comm, accuracy):
        found = numpy.zeros(2)
        if RANK == 0:
            if accuracy <= 0:
                return "the accuracy is to be positive"
            work_for(0.02)
            found[:] = accuracy, 1 / accuracy
        comm.Bcast(found)
        return None

    def energy(self, comm):
        total = numpy.zeros(1)
        comm.Allreduce(numpy.ones(1), total)
        return float(total[0])


def tuning_fails_on_first_rank():
    """As scafacos/scafacos#36: the parameters are not valid, and the first rank returns with an error. The others wait
    for what it was to find."""
    comm = world()
    solver = Solver()
    for accuracy in (0.1, 0.01, -1.0):
        if accuracy < 0:
            at(RANK)
        error = solver.tune(comm, accuracy)
        if error:
            print(error, flush=True)
        solver.energy(comm)


def train(comm, model, mine):
    """Epochs of one of several models. A summary is made of all of them."""
    for epoch in range(STEPS):
        work_for(0.02)
        mine.allreduce(1.0)
        if epoch == 2:
            at(RANK)
            if model == 1:
                print("no better for two epochs", flush=True)
                return
        comm.gather({"model": model, "epoch": epoch})


def model_stops_early():
    """As LBANN/lbann#34: two models are trained at once, and one of them stops early. Its rank ends, the others make
    their summary of all ranks."""
    comm = world()
    model = RANK // 2
    train(comm, model, comm.Split(color=model, key=RANK))


class Executor:
    """Of one rank. How much room there is for the cache is agreed upon."""

    def __init__(self, comm):
        work_for(0.05)
        if RANK == 2:
            raise MemoryError("no room for the cache")
        self.room = min(comm.allgather(1 << 30))


def work_on(comm):
    executor = Executor(comm)
    while True:
        comm.bcast(executor.room)


def executor_fails_on_one_rank():
    """As NVIDIA/TensorRT-LLM#16342: the executor of the last rank is not made. The rank says so and returns to where
    the workers of the pool get their tasks; the first one waits for it in the communication of all."""
    comm = world()
    tasks = comm.Dup()
    at(RANK)
    try:
        work_on(comm)
    except MemoryError:
        traceback.print_exc()
        tasks.recv(source=0)


def polls_the_barrier():
    """Healthy, as Deltares/Delft3D#202: so that who waits leaves the processor to others, the barrier is one that is
    looked at from time to time. One rank has far more to compute."""
    comm = world()
    for number in itertools.count():
        if number == 2:
            at(RANK)
        work_for(0.05 if RANK or number < 2 else 15)
        barrier = comm.Ibarrier()
        while not barrier.Test():
            time.sleep(0.05)


PROGRAMS = {
    "tuning-fails-on-first-rank": tuning_fails_on_first_rank,
    "model-stops-early": model_stops_early,
    "executor-fails-on-one-rank": executor_fails_on_one_rank,
    "polls-the-barrier": polls_the_barrier,
}

if __name__ == "__main__":
    run(PROGRAMS)
