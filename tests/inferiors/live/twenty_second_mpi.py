"""Ranks of Open MPI by mpi4py, twenty-second set: `mpirun ... twenty_second_mpi.py NAME FOLDER`."""

import math
import os

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Replica:
    """Samples at a temperature of its own when the first rank says so."""

    def __init__(self, comm):
        self.comm, self.state = comm, 4.0

    def sample(self):
        if RANK == 1 and self.state < 2.0:
            at(RANK)
            self.state -= 2.0
        work_for(0.02)
        self.state -= 0.5 * math.sqrt(self.state) / RANK
        return self.state

    def serve(self):
        for number in range(400):
            if number == 3 and RANK == 2:
                at(RANK)
            self.comm.recv(source=0)
            self.comm.send(self.sample() if RANK == 1 else self.state, dest=0)


def exchange(comm, count):
    for number in range(400):
        if number == 3:
            at(RANK)
        for replica in range(1, count):
            comm.send("sample", dest=replica)
        for replica in range(1, count):
            comm.recv(source=replica)


def replica_exchange():
    """As tweag/chainsail#108: one of the replicas raises an error, and ends. At its end it waits for all others, and
    the first one waits for its sample."""
    comm = world()
    if RANK == 0:
        exchange(comm, comm.Get_size())
    else:
        Replica(comm).serve()


def dispatch(comm):
    from mpi4py import MPI

    status, bound, idle = MPI.Status(), 0.0, set(range(1, comm.Get_size()))
    at(RANK)
    while True:
        worker = min(idle)
        comm.send(bound, dest=worker)
        idle.discard(worker)
        bound = comm.recv(source=MPI.ANY_SOURCE, status=status)
        idle.add(status.Get_source())


def solve(comm):
    at(RANK)
    while True:
        bound = comm.recv(source=0)
        work_for(0.5)
        comm.send(bound + 1.0, dest=0)


def branch_and_bound():
    """Healthy, as ghackebeil/pybnb#20: there is one node at a time, which one worker has. The others wait for a node by
    running, as the dispatcher does."""
    comm = world()
    if RANK == 0:
        dispatch(comm)
    else:
        solve(comm)


PROGRAMS = {"replica-exchange": replica_exchange, "branch-and-bound": branch_and_bound}

if __name__ == "__main__":
    run(PROGRAMS)
