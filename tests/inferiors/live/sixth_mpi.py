"""Ranks of Open MPI by mpi4py, a hang and its healthy twin, sixth set: `mpirun ... sixth_mpi.py NAME FOLDER`."""

from mpi4py import MPI

from tests.inferiors.live.place import at, run, work_for

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
TASK, RESULT = 1, 2


def serve(tasks, results, seconds):
    """A worker takes its tasks from one communicator and answers in the other."""
    at(RANK)
    while True:
        tasks.recv(source=0, tag=TASK)
        work_for(seconds)
        results.send(RANK, 0, tag=RESULT)


def probes_other_communicator():
    """The master looks for results where it sent the tasks, in a duplicate of the world; they are sent in the world."""
    tasks = WORLD.Dup()
    if RANK:
        serve(tasks, WORLD, 0.01)
    for worker in (1, 2):
        tasks.send("task", worker, tag=TASK)
    at(0)
    status = MPI.Status()
    tasks.Probe(MPI.ANY_SOURCE, RESULT, status)
    tasks.recv(source=status.Get_source(), tag=RESULT)


def probes_for_results():
    """The twin: results come where they are looked for, after two seconds of work each."""
    tasks = WORLD.Dup()
    if RANK:
        serve(tasks, tasks, 2.0 if RANK == 2 else 0.5)
    for worker in (1, 2):
        tasks.send("task", worker, tag=TASK)
    at(0)
    status = MPI.Status()
    while True:
        tasks.Probe(MPI.ANY_SOURCE, RESULT, status)
        worker = tasks.recv(source=status.Get_source(), tag=RESULT)
        tasks.send("task", worker, tag=TASK)


PROGRAMS = {"probes-other-communicator": probes_other_communicator, "probes-for-results": probes_for_results}

if __name__ == "__main__":
    run(PROGRAMS)
