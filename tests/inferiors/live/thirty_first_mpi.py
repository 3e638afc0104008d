"""Ranks of Open MPI by mpi4py that hang, and healthy ones, thirty-first set: `mpirun ... thirty_first_mpi.py ...`."""

import os
import queue

import numpy

from tests.inferiors.live.place import at, in_folder, run, thread, wait_for_role, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
ASK, TASK, RESULT, HALO = 1, 2, 3, 4


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Statistics:
    """Are added up beside the steps of the simulation, in a thread and with a communicator of their own."""

    def __init__(self, comm):
        self.comm, self.steps = comm, queue.Queue()
        thread(self.work)

    def work(self):
        while True:
            step = self.steps.get()
            total = self.comm.allreduce({"step": step, "cells": 1000 + RANK}["cells"])
            print(f"{RANK}: {total} cells after step {step}", flush=True)


def step(comm, size, field):
    """Each rank gives its edge to the one before it; the first one to the last."""
    edge = numpy.empty(16)
    comm.Sendrecv(field[:16], (RANK - 1) % size, HALO, edge, (RANK + 1) % size, HALO)
    field[-16:] = edge


def first_pickled_reduction():
    """As mpi4py/mpi4py#784: the first pickled reduction on a communicator duplicates it, which keeps the interpreter's
    lock. The first rank comes to that when its step is done. Its neighbour is there already, by a thread; its main
    thread is about to send what the step of the first rank needs."""
    comm = world()
    pair = comm.Split(0 if RANK < 2 else 1)
    field = numpy.full(64, float(RANK))
    for _ in range(3):
        step(comm, comm.size, field)
    statistics = Statistics(pair) if RANK < 2 else None
    comm.Barrier()
    at(RANK)
    if RANK == 1:
        statistics.steps.put(4)
        work_for(1.0)
    step(comm, comm.size, field)
    if RANK == 0:
        statistics.steps.put(4)
    for _ in range(100):
        step(comm, comm.size, field)


class DataCollector:
    """A file of all ranks. Each one has a part of each dataset, and all of them open, read and close together."""

    def __init__(self, comm, name):
        from mpi4py import MPI

        self.comm, self.mpi = comm, MPI
        self.file = MPI.File.Open(comm, in_folder(name), MPI.MODE_CREATE | MPI.MODE_RDWR)

    def write(self, offset, values):
        self.file.Write_at_all(offset * 8, values)
        self.comm.Barrier()

    def read(self, offset, count):
        if count == 0:
            return numpy.empty(0)
        self.agree_on_the_mode()
        values = numpy.empty(count)
        self.file.Read_at_all(offset * 8, values)
        return values

    def agree_on_the_mode(self):
        """Whether all parts can be read in one go."""
        mode = numpy.ones(1, dtype="i")
        self.comm.Allreduce(self.mpi.IN_PLACE, mode, op=self.mpi.MIN)
        return bool(mode[0])

    def close(self):
        self.comm.Barrier()
        self.file.Close()


def reads_nothing():
    """As ComputationalRadiationPhysics/libSplash#148: the particles of a simulation are read again when it goes on. A
    rank has none of one kind, and comes back from that at once."""
    comm = world()
    collector = DataCollector(comm, "checkpoint.h5")
    collector.write(RANK * 32, numpy.full(32, float(RANK)))
    electrons = collector.read(RANK * 32, 32)
    at(RANK)
    ions = collector.read(RANK * 32, 0 if RANK == 2 else 16)
    print(f"{RANK}: {electrons.sum()} {ions.sum()}", flush=True)
    collector.close()


class Master:
    """Gives a task to whom asks for one, and None when there are no more."""

    def __init__(self, comm, tasks):
        self.comm, self.tasks = comm, list(tasks)

    def run(self):
        from mpi4py import MPI

        status = MPI.Status()
        for _ in range(len(self.tasks) + self.comm.size - 1):
            self.comm.recv(source=MPI.ANY_SOURCE, tag=ASK, status=status)
            self.comm.send(self.tasks.pop() if self.tasks else None, status.source, TASK)


class Worker:
    """Asks for a task, and works on it. Where tasks are long it asks for the next one before that."""

    def __init__(self, comm, ahead):
        self.comm, self.ahead = comm, ahead

    def run(self):
        done = 0
        self.comm.send("ask", 0, ASK)
        while True:
            task = self.comm.recv(source=0, tag=TASK)
            if self.ahead:
                self.comm.send("ask", 0, ASK)
            if task is None:
                return done
            work_for(1.0 if self.ahead else 0.05)
            done += task
            if not self.ahead:
                self.comm.send("ask", 0, ASK)


def two_runs_of_a_master():
    """As keichi/mpEDM#64: a master and its workers are used twice in one program. A worker has asked once more than it
    was answered in the first run; in the second one that is taken for a new request, and it is told twice that there
    is nothing more to do. The master thinks that it has told all of them."""
    comm = world()
    for tasks in (range(3), range(4)):
        second = len(tasks) == 4
        comm.Barrier()
        if second:
            at(RANK)
        if RANK == 0:
            Master(comm, tasks).run()
        else:
            work_for(1.0 if RANK == 1 and second else 0.01)  # it reads what it needs
            done = Worker(comm, ahead=RANK == 2 and not second).run()
            print(f"{RANK}: {done}", flush=True)
    comm.Barrier()


class Walker:
    """Of a Monte Carlo simulation."""

    def __init__(self):
        self.random, self.energy = numpy.random.default_rng(RANK), 0.0

    def update(self):
        """A cluster is small mostly, and very large now and then."""
        cluster = 40_000 if self.random.random() < 0.3 else 200
        for _ in range(cluster * 10):
            self.energy += 0.1 if self.random.random() < 0.5 else -0.1


def updates_of_uneven_length():
    """Healthy, as ALPSCore/ALPSCore#116: all add up how far they are after each update. What an update needs differs
    much, and most of the time is waited for the one that is in a long update."""
    comm = world()
    walker, fraction, total = Walker(), numpy.zeros(1), numpy.zeros(1)
    for number in range(10_000_000):
        walker.update()
        fraction[0] += 1e-9
        comm.Allreduce(fraction, total)
        if number == 2:
            at(RANK)
            wait_for_role("0")


PROGRAMS = {
    "first-pickled-reduction": first_pickled_reduction,
    "reads-nothing": reads_nothing,
    "two-runs-of-a-master": two_runs_of_a_master,
    "updates-of-uneven-length": updates_of_uneven_length,
}

if __name__ == "__main__":
    run(PROGRAMS)
