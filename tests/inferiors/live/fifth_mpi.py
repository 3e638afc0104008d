"""Ranks of Open MPI by mpi4py, a hang and its healthy twin, fifth set: `mpirun ... fifth_mpi.py NAME FOLDER`."""

import itertools

from mpi4py import MPI

from tests.inferiors.live.place import at, run, work_for

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
TASK, RESULT, ERROR = 1, 2, 3


def score(task):
    if task == "bad":
        raise ValueError(task)
    work_for(0.01)
    return len(task)


def serve():
    """A worker: an error has a tag of its own, so that the master can tell it from a result."""
    for number in itertools.count():
        if number == 2:
            at(RANK)
        task = WORLD.recv(source=0, tag=TASK)
        try:
            answer, tag = score(task), RESULT
        except ValueError as error:
            answer, tag = str(error), ERROR
        WORLD.send(answer, 0, tag=tag)


def error_by_other_tag():
    """The master takes results alone; worker 2 has sent an error and waits for its next task."""
    if RANK:
        serve()
    for batch in (["one", "two"], ["three", "bad"]):
        for worker, task in enumerate(batch, 1):
            WORLD.send(task, worker, tag=TASK)
        if "bad" in batch:
            at(0)
        for _ in batch:
            WORLD.recv(source=MPI.ANY_SOURCE, tag=RESULT)
    WORLD.Barrier()


def long_tasks():
    """The twin: worker 2 has a task of five seconds each time, and the batch ends when it is done."""
    WORLD.Barrier()
    at(RANK)
    for _ in itertools.count():
        if RANK:
            WORLD.recv(source=0, tag=TASK)
            work_for(5.0 if RANK == 2 else 0.1)
            WORLD.send(RANK, 0, tag=RESULT)
        else:
            for worker in (1, 2):
                WORLD.send("task", worker, tag=TASK)
            for _ in (1, 2):
                WORLD.recv(source=MPI.ANY_SOURCE, tag=RESULT)


PROGRAMS = {"error-by-other-tag": error_by_other_tag, "long-tasks": long_tasks}

if __name__ == "__main__":
    run(PROGRAMS)
