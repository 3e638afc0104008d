"""Ranks of Open MPI by mpi4py, twenty-sixth set: `mpirun ... twenty_sixth_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Simulation:
    """Each rank has a mesh. Its input is read in steps, some of which are done by all ranks together."""

    def __init__(self, comm):
        self.comm, self.stop = comm, None
        self.vents = {0: ["supply"], 1: ["supply", "return 2"], 2: []}[RANK]

    def read_mesh(self):
        self.cells = numpy.full(1, 1000.0 * (RANK + 1))
        self.comm.Allreduce(self.cells.copy(), self.cells)

    def read_ducts(self):
        """Those of the own mesh, and then the number of all of them."""
        ducts = numpy.zeros(1)
        for vent in self.vents:
            if not vent.isalpha():
                self.stop = f"ERROR: the duct of {vent} ends in no mesh"
                print(self.stop, flush=True)
                return
            ducts += 1
        self.comm.Allreduce(ducts.copy(), ducts)

    def read(self):
        for step in (self.read_mesh, self.read_ducts):
            step()
            if self.stop:
                return

    def end(self):
        from mpi4py import MPI

        MPI.Finalize()


def reads_the_ducts_of_meshes():
    """As firemodels/fds#8698: only the ranks that have a mesh read what is in it. One of them finds an error in its
    mesh, and returns to the end of the program; after the loop the others add up what they have found."""
    simulation = Simulation(world())
    at(RANK)
    simulation.read()
    simulation.end()


class Laplacian:
    """Of a graph, whose rows are dealt to the ranks. The rows of the last rank are nearly right soon."""

    TOLERANCE = 1e-3

    def __init__(self, comm):
        last = comm.size - 1
        self.comm, self.rate, self.norms = comm, {last: 0.95}.get(RANK, 0.5), []

    def dot(self, left, right):
        total = numpy.zeros(1)
        self.comm.Allreduce(numpy.array([float(left @ right)]), total)
        return float(total[0])

    def refine(self, vector, turns=30):
        for turn in range(turns):
            if turn == 4:
                at(RANK)
            self.norms.append(self.dot(vector, vector) ** 0.5)
            work_for(0.005)
            change = self.rate * vector
            vector = vector - change
            if float(numpy.abs(change).max()) < self.TOLERANCE:
                at(RANK)
                break
        return vector

    def split(self, vector):
        """By the median of the vector, which takes the values of all ranks."""
        return numpy.median(numpy.concatenate(self.comm.allgather(vector)))


def refines_its_vector():
    """As Nek5000/parRSB#44: a loop in which all ranks add up is left by a break, which depends on the rows of the rank.
    One rank has left it and gathers the values of all; the others are in the next turn."""
    laplacian = Laplacian(world())
    laplacian.split(laplacian.refine(numpy.ones(64)))


class Sampler:
    """Points are evaluated on all ranks. The first rank takes the results and tells them to the others."""

    def __init__(self, comm):
        self.comm, self.points = comm, [0.25, 0.5, 0.75]

    def evaluate(self):
        """The point of the last rank is an easy one, which is done before that of the rank before it."""
        from mpi4py import MPI

        value = numpy.array([-((self.points[RANK] - 0.2) ** 2)])
        if RANK == 0:
            results, status, got = [(0, float(value[0]))], MPI.Status(), numpy.zeros(1)
            for _ in range(self.comm.size - 1):
                self.comm.Recv(got, source=MPI.ANY_SOURCE, tag=3, status=status)
                results.append((status.source, float(got[0])))
        else:
            if self.comm.size > RANK + 1:
                self.comm.recv(source=RANK + 1, tag=4)
            work_for(0.02 * (self.comm.size - RANK))
            self.comm.Ssend(value, dest=0, tag=3)
            if RANK > 1:
                self.comm.send("done", dest=RANK - 1, tag=4)
            results = None
        results = self.comm.bcast(results, root=0)
        return [value for _, value in (results if RANK == 0 else sorted(results))]

    def widen(self, values):
        """More points are wanted if the best of the later points is not the first one of them."""
        return values.index(max(values[1:])) != 1

    def sample(self):
        values = self.evaluate()
        at(RANK)
        while self.widen(values):
            values = self.comm.allgather(values[RANK])
        return self.comm.bcast(values if RANK == 0 else None, root=0)


def samples_live_points():
    """As JohannesBuchner/UltraNest#18: the results of the first points are put in the order in which they came, by the
    first rank alone. It finds that more points are wanted, and the others do not."""
    Sampler(world()).sample()


class Columns:
    """Of an atmosphere. Where it is day, the chemistry takes much longer."""

    def __init__(self, comm):
        self.comm, self.ozone = comm, numpy.full(32, 40.0)

    def chemistry(self, seconds):
        self.ozone += 1e-6 * (work_for(seconds) % 7)

    def step(self):
        self.chemistry(20.0 if RANK == 1 else 0.05)
        self.comm.Barrier()


def chemistry_by_day_and_night():
    """Healthy, as geoschem/GCHP#52: much of the time is spent in a barrier, since one rank has the columns where it is
    day. All ranks wait until its chemistry is computed."""
    columns = Columns(world())
    at(RANK)
    while True:
        columns.step()


PROGRAMS = {
    "reads-the-ducts-of-meshes": reads_the_ducts_of_meshes,
    "refines-its-vector": refines_its_vector,
    "samples-live-points": samples_live_points,
    "chemistry-by-day-and-night": chemistry_by_day_and_night,
}

if __name__ == "__main__":
    run(PROGRAMS)
