"""Ranks of Open MPI by mpi4py, nineteenth set: `mpirun ... nineteenth_mpi.py NAME FOLDER`."""

import collections
import os

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RANKS = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Events:
    """Tasks of a step. One that has others before it is started by whoever looks at the queue after these."""

    def __init__(self):
        self.queue = collections.deque()

    def add(self, start, ready=lambda: True):
        self.queue.append({"start": start, "ready": ready, "done": None})
        return self.queue[-1]

    def progress(self):
        for task in list(self.queue):
            if task["done"] is None and task["ready"]():
                task["done"] = task["start"]()
            if task["done"] is not None and task["done"]():
                self.queue.remove(task)

    def wait_for(self, task):
        while task in self.queue:
            self.progress()

    def wait_for_all(self):
        while self.queue:
            self.progress()


class Grid:
    """A part of the simulation, with the border of the part before it."""

    def __init__(self, comm):
        self.comm, self.events = comm, Events()
        self.mine, self.border = numpy.full(32, 1.0 + RANK), numpy.empty(32)
        self.copied = []

    def send_border(self, step):
        if RANK == 0:
            return
        copy = self.events.add(lambda: self.copied.append(step) or (lambda: True))
        to = RANK - 1
        self.events.add(lambda: self.comm.Isend(self.mine, to, step).Test, lambda: copy not in self.events.queue)

    def receive_border(self, step):
        if RANK == RANKS - 1:
            return None
        return self.events.add(lambda: self.comm.Irecv(self.border, RANK + 1, step).Test)

    def plugin(self):
        parts = numpy.empty(RANKS)
        self.comm.Allgather(numpy.array([self.mine.sum()]), parts)
        return parts.sum()


def send_still_behind_a_copy():
    """As ComputationalRadiationPhysics/picongpu#1326: a rank waits for the border of the next part before it takes part
    in an operation of all. The next rank is in that operation; its send was to come after a copy, and nobody looks at
    its queue."""
    grid = Grid(world())
    for step in range(4):
        received = grid.receive_border(step)
        grid.send_border(step)
        work_for(0.01)
        if step < 3:
            grid.events.wait_for_all()
        else:
            at(RANK)
        if received is not None:
            grid.events.wait_for(received)
        grid.plugin()


class Device:
    """Memory for windows has to be registered, and there is not the same room on all nodes."""

    def __init__(self, room):
        self.room = room

    def register(self, size):
        if size > self.room:
            raise MemoryError(f"no room to register {size} bytes")
        self.room -= size
        return bytearray(size)


class Window:
    """Made by all ranks together, and freed by all together."""

    def __init__(self, comm, device, size):
        self.comm, self.keys = comm, numpy.empty(RANKS, dtype="i8")
        try:
            self.memory = device.register(size)
        except MemoryError:
            self.free()
            raise
        comm.Allgather(numpy.array([id(self.memory)], dtype="i8"), self.keys)

    def free(self):
        self.comm.Barrier()


def window_freed_where_it_failed():
    """As open-mpi/ompi#6740: windows are made, one after the other. On one node no more memory can be registered; the
    rank there frees the window, for which it waits for all. The others gather the keys of that window."""
    comm, windows = world(), []
    device = Device(room=(5 if RANK == 1 else 50) * 4096)
    for number in range(8):
        if number == 5:
            at(RANK)
        work_for(0.01)
        windows.append(Window(comm, device, 4096))


PROGRAMS = {
    "send-still-behind-a-copy": send_still_behind_a_copy,
    "window-freed-where-it-failed": window_freed_where_it_failed,
}

if __name__ == "__main__":
    run(PROGRAMS)
