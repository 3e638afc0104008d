"""Ranks of Open MPI by mpi4py, seventeenth set: `mpirun ... seventeenth_mpi.py NAME FOLDER`."""

import json
import os

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RUNS = 2


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Problem:
    """Each rank has a part of the design, and the objective is that of all parts."""

    def __init__(self, comm):
        self.comm, self.design = comm, numpy.full(8, 1.0 + RANK)

    def objective(self):
        total = numpy.zeros(1)
        self.comm.Allreduce(numpy.array([float(self.design @ self.design)]), total)
        return float(total[0])

    def optimize(self):
        for _ in range(20):
            work_for(0.005)
            self.objective()
            self.design *= 0.9

    def whole_design(self):
        return [part.tolist() for part in self.comm.allgather(self.design)]


def report(problem):
    if RANK != 0:
        return
    with open(in_folder("report.json"), "w") as file:
        json.dump({"design": problem.whole_design()}, file)


def report_with_collectives():
    """As OpenMDAO/OpenMDAO#2596: a report is made after the run, and all ranks but the first return at once. What the
    first puts into it is on all ranks, and to get it takes all of them; they are in the next run."""
    problem = Problem(world())
    for _ in range(RUNS):
        problem.optimize()
        at(RANK)
        report(problem)


PROGRAMS = {"report-with-collectives": report_with_collectives}

if __name__ == "__main__":
    run(PROGRAMS)
