"""Ranks of Open MPI by mpi4py, thirty-second set: `mpirun ... thirty_second_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class WellModel:
    """Wells of this rank's part of the reservoir, and the network that all of them are in."""

    TOLERANCE = 0.05

    def __init__(self, comm):
        self.comm = comm
        self.pressures = numpy.linspace(1.0, 2.0, 8) + comm.rank
        self.change, self.rates = 1.0, 0.5

    def update_network(self, iteration):
        """Whether it has to be updated once more."""
        nodes = self.comm.allgather(float(self.pressures.mean()))
        self.pressures += 0.1 * (sum(nodes) / len(nodes) - self.pressures)
        self.change = self.rates / 4**iteration
        return self.change > self.TOLERANCE

    def update_controls(self, step):
        self.rates = 2.0 if step == 3 and self.comm.rank == 1 else 0.5  # a well there is shut in that step
        iteration, more = 0, True
        while more:
            work_for(0.02)
            iteration += 1
            if step == 3 and iteration == 3:
                at(self.comm.rank)
            more = self.update_network(iteration)

    def converged(self):
        residual = numpy.zeros(1)
        self.comm.Allreduce(numpy.array([self.change]), residual)
        return residual[0] < 1e-6


def updates_its_network_again():
    """As OPM/opm-simulators#7190: each rank looks at its own change of the network."""
    wells = WellModel(world())
    for step in range(8):
        wells.update_controls(step)
        if step == 3:
            at(wells.comm.rank)
        wells.converged()


class Walkers:
    """A Markov chain on each rank. The first one collects what the chains have seen, its own as well."""

    def __init__(self, comm, size):
        self.comm, self.size = comm, size
        self.trace = numpy.zeros(size)

    def walk(self):
        generator = numpy.random.default_rng(self.comm.rank)
        self.trace = generator.normal(size=self.size).cumsum()
        work_for(0.05)

    def collect(self):
        self.comm.Send(self.trace, dest=0, tag=11)
        if self.comm.rank != 0:
            return None
        traces = [numpy.empty(self.size) for _ in range(self.comm.size)]
        for source, trace in enumerate(traces):
            self.comm.Recv(trace, source=source, tag=11)
        return traces


def sends_to_itself():
    """As Chengcheng-Xiao/mpiPyMC#2: every rank sends its trace to the first one, which receives them afterwards."""
    comm = world()
    for size in (16, 64, 1 << 20):  # a short one is on its way without a receiver
        walkers = Walkers(comm, size)
        walkers.walk()
        comm.Barrier()
        if size > 64:
            at(comm.rank)
        walkers.collect()
    comm.Barrier()


class WorkQueue:
    """Work is shared between the ranks. A token goes round the ring to find out that nobody has any."""

    WORK, TOKEN, END = 21, 22, 23

    def __init__(self, comm):
        from mpi4py import MPI

        self.comm, self.mpi = comm, MPI
        partner = comm.rank - 1
        self.partner = partner if partner >= 0 else MPI.PROC_NULL
        self.items = list(range(40)) if comm.rank == 2 else []

    def wait_for_token(self):
        token = numpy.zeros(1, dtype="i")
        self.comm.Recv(token, source=self.partner, tag=self.TOKEN)

    def say_end(self):
        for other in range(1, self.comm.size):
            self.comm.send("end", dest=other, tag=self.END)

    def wait_for_end(self):
        self.comm.recv(source=0, tag=self.END)

    def work(self):
        while self.items:
            self.items.pop()
            work_for(0.02)
            if len(self.items) == 20:
                self.share(to=1)

    def share(self, to):
        half = numpy.array(self.items[:10], dtype="i")
        at(self.comm.rank)
        self.comm.Issend(half, dest=to, tag=self.WORK).Wait()
        self.items = self.items[10:]


def sends_work_after_the_end():
    """As hpc/libcircle#10: the partner of the first rank in the ring is the one before it."""
    queue = WorkQueue(world())
    if queue.comm.rank == 0:
        queue.wait_for_token()
        queue.say_end()
    elif queue.comm.rank == 2:
        queue.work()
    else:
        queue.wait_for_end()
    at(queue.comm.rank)
    queue.comm.Barrier()


class Mesh:
    """Each rank has the whole of it."""

    def __init__(self, cells):
        generator = numpy.random.default_rng(3)
        self.nodes = generator.integers(0, cells, size=(cells, 8))

    def find_neighbors(self, first, count):
        """For each cell those that share a node with it, by looking at all of them."""
        found = 0
        for cell in range(first, first + count):
            shared = numpy.isin(self.nodes, self.nodes[cell]).any(axis=1)
            found += int(shared.sum())
        return found


def prepares_a_large_mesh():
    """Healthy, as libMesh/libmesh#2706: the neighbours are found for all cells before a step is done."""
    comm = world()
    mesh = Mesh(20_000)
    at(comm.rank)
    for part in range(10_000):
        found = mesh.find_neighbors(part, 400 * (comm.rank + 1))
        comm.allreduce(found)


PROGRAMS = {
    "updates-its-network-again": updates_its_network_again,
    "sends-to-itself": sends_to_itself,
    "sends-work-after-the-end": sends_work_after_the_end,
    "prepares-a-large-mesh": prepares_a_large_mesh,
}

if __name__ == "__main__":
    run(PROGRAMS)
