"""Ranks of Open MPI by mpi4py, thirty-third set: `mpirun ... thirty_third_mpi.py NAME FOLDER`."""

import collections
import os
import zlib

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RANKS = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Ewald:
    """The sum of the forces between charges in a box, a part of it in each space. How far each part goes is tuned."""

    OK, NOT_ACHIEVABLE = 0, 2

    def __init__(self, comm, tolerance):
        self.comm, self.tolerance = comm, tolerance
        self.cutoffs = numpy.zeros(3)

    def search(self):
        for alpha in numpy.linspace(0.1, 2.0, 40):
            work_for(0.002)
            error = float(numpy.exp(-((alpha * 6.0) ** 2))) + 1e-9
            if error < self.tolerance:
                return numpy.array([alpha, 6.0, 12.0])
        return None

    def tune(self):
        """The first rank looks for the parameters, all others get them."""
        if RANK == 0:
            found = self.search()
            if found is None:
                return self.NOT_ACHIEVABLE
            self.cutoffs[:] = found
        self.comm.Bcast(self.cutoffs, root=0)
        return self.OK

    def report(self, status):
        words = self.comm.gather((RANK, status), root=0)
        if RANK == 0:
            print(words, flush=True)


def tunes_on_the_first():
    """As scafacos/scafacos#36: the accuracy that is asked for can't be had. The first rank finds that, and returns with
    an error at once; what it would have told is waited for by the others."""
    comm = world()
    for tolerance in (1e-4, 1e-12):
        solver = Ewald(comm, tolerance)
        if tolerance < 1e-9:
            at(RANK)
        solver.report(solver.tune())


class SharedCounter:
    """Each rank owns one, with a lock. Who wants it asks the owner, who answers when it makes progress."""

    ASK, GRANT, RELEASE = 11, 12, 13

    def __init__(self, comm):
        self.comm, self.holder = comm, None
        self.waiting = collections.deque()

    def progress(self):
        """Answers one message that has come, if any."""
        from mpi4py import MPI

        status = MPI.Status()
        for tag in (self.ASK, self.RELEASE):
            if not self.comm.iprobe(source=MPI.ANY_SOURCE, tag=tag, status=status):
                continue
            rank = self.comm.recv(source=status.source, tag=tag)
            if tag == self.ASK:
                self.waiting.append(rank)
            else:
                self.holder = None
        if self.holder is None and self.waiting:
            self.holder = self.waiting.popleft()
            self.comm.send(RANK, dest=self.holder, tag=self.GRANT)

    def lock(self, owner):
        self.comm.send(RANK, dest=owner, tag=self.ASK)
        return self.comm.recv(source=owner, tag=self.GRANT)

    def unlock(self, owner):
        self.comm.send(RANK, dest=owner, tag=self.RELEASE)


def update_in_turns(comm, counter):
    """One rank after the other updates the counter of the next one; those whose turn it is not make progress."""
    for turn in range(RANKS):
        owner = (turn + 1) % RANKS
        done = None
        if turn == RANK:
            counter.lock(owner)
            work_for(0.01)
            counter.unlock(owner)
        else:
            done = comm.irecv(source=turn, tag=14)
            while not done.test()[0]:
                counter.progress()
        if turn == RANK:
            for other in range(RANKS):
                if other != RANK:
                    comm.send(turn, dest=other, tag=14)
        comm.Barrier()
        counter.progress()


def asks_for_the_other_lock():
    """As open-mpi/ompi#6688: while it obtains a lock that is another rank's it makes no progress with what others ask
    of it. Two ranks want the locks of each other at the same time."""
    comm = world()
    counter = SharedCounter(comm)
    update_in_turns(comm, counter)
    comm.Barrier()
    at(RANK)
    if RANK < 2:
        owner = 1 - RANK
        counter.lock(owner)
        counter.unlock(owner)
    comm.Barrier()


class Border:
    """A task: cells at the border of this rank for its neighbour, or those of the neighbour."""

    def __init__(self, comm, neighbour, cells, sends):
        self.comm, self.neighbour, self.cells, self.sends = comm, neighbour, cells, sends

    def execute(self):
        if self.sends:
            self.comm.Send(self.cells, dest=self.neighbour, tag=5)
        else:
            self.comm.Recv(self.cells, source=self.neighbour, tag=5)


class EventSystem:
    """Tasks that were started, in their order. They run when somebody waits for them."""

    def __init__(self):
        self.tasks = []

    def start(self, task):
        self.tasks.append(task)

    def wait_for_finished(self):
        for task in self.tasks:
            task.execute()
        self.tasks.clear()


class Simulation:
    """Particles that go from rank to rank, and a dump of all of them now and then."""

    def __init__(self, comm):
        self.comm, self.events = comm, EventSystem()
        self.particles = 500 * (3 - RANK)
        self.cells = numpy.zeros(4096)

    def exchange(self):
        if RANK + 1 < RANKS:
            self.events.start(Border(self.comm, RANK + 1, self.cells.copy(), sends=True))
        if RANK > 0:
            self.events.start(Border(self.comm, RANK - 1, self.cells, sends=False))

    def step(self):
        work_for(0.02)
        self.exchange()
        self.events.wait_for_finished()

    def dump(self):
        """A rank without particles has nothing to prepare."""
        if self.particles:
            self.events.wait_for_finished()
            self.particles_of_cells = numpy.sort(numpy.random.default_rng(RANK).random(self.particles))
        total = numpy.zeros(1)
        self.comm.Allreduce(numpy.array([float(self.particles)]), total)
        return int(total[0])


def leaves_a_task_behind():
    """As ComputationalRadiationPhysics/picongpu#5060: tasks must have ended before what all ranks call. A rank that has
    no particles any more does not wait for its own, by which a neighbour would get a border."""
    simulation = Simulation(world())
    for _ in range(4):
        simulation.step()
    simulation.dump()
    if RANK == 0:
        simulation.particles = 0
    simulation.exchange()
    at(RANK)
    simulation.dump()


class Grid:
    """Each rank writes its cells, in many files of a few blocks."""

    BLOCKS = 300

    def __init__(self, comm):
        self.comm, self.cells = comm, os.urandom(1 << 12)

    def write(self, number):
        with open(in_folder(f"bulk{RANK}.{number % 4}"), "wb") as file:
            for block in range(self.BLOCKS * (1 + RANK)):
                work_for(0.003)
                file.write(zlib.compress(self.cells) + block.to_bytes(4, "little"))
                file.flush()
                os.fsync(file.fileno())


def writes_small_files():
    """Healthy, as fmihpc/vlasiator#332: small files come to the file system very slowly, each block by itself. That
    some ranks have more of them than others makes these wait."""
    comm = world()
    grid = Grid(comm)
    at(RANK)
    for number in range(400):
        grid.write(number)
        comm.allgather(number)


PROGRAMS = {
    "tunes-on-the-first": tunes_on_the_first,
    "asks-for-the-other-lock": asks_for_the_other_lock,
    "leaves-a-task-behind": leaves_a_task_behind,
    "writes-small-files": writes_small_files,
}

if __name__ == "__main__":
    run(PROGRAMS)
