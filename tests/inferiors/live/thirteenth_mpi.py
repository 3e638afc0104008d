"""Ranks of Open MPI by mpi4py that hang, thirteenth set: `mpirun ... thirteenth_mpi.py NAME FOLDER`."""

import os
import time

import numpy

from tests.inferiors.live.place import at, run, thread

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
STEPS = 5


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


def sends_to_itself():
    """As Chengcheng-Xiao/mpiPyMC#2: rank 0 gives each rank its lattice, itself as well, and receives its own one after
    that. As long as lattices are small, the library keeps them until then."""
    comm = world()
    for number in range(STEPS):
        lattice = numpy.ones(1 << 20 if number == STEPS - 2 else 64)
        if number == STEPS - 2:
            at(RANK)
        if RANK == 0:
            for rank in reversed(range(comm.size)):
                comm.send(lattice, rank, tag=number)
        lattice = comm.recv(source=0, tag=number)
        comm.gather(float(lattice.sum()))


def synchronous_parts_are_probed():
    """As mpi4py/mpi4py#128: an object is sent in parts, each so that the send ends when the part is being received. Who
    receives it probes for all parts before it takes the first one."""
    comm = world()
    parts = [bytearray(200), numpy.ones(1 << 12)]
    if RANK == 0:
        for number in range(STEPS):
            for part in parts:
                if number == STEPS - 1 and part is parts[0]:
                    at(RANK)
                send = comm.Ssend if number == STEPS - 1 else comm.Send
                send(part, 1)
    if RANK == 1:
        for number in range(STEPS):
            if number == STEPS - 1:
                at(RANK)
            for message, part in zip([comm.Mprobe(0) for _ in parts], parts):
                message.Recv(part)
    if RANK == 2:
        at(RANK)
    comm.Barrier()


def reduce_metrics(pair, seconds):
    time.sleep(seconds)
    if RANK == 1:
        at(RANK)
    pair.allreduce(1)


def communicator_and_interpreter():
    """As mpi4py/mpi4py#784: the first sum of objects in a communicator makes another one of it, with the interpreter's
    lock. A thread of rank 1 does so and waits for rank 0, which makes another communicator first, with all ranks; the
    main thread of rank 1 does not come to that, as it has no interpreter."""
    comm = world()
    pair = comm.Split(int(RANK == 2), RANK)
    comm.Barrier()
    if RANK != 2:
        thread(reduce_metrics, pair, 0.3 if RANK == 1 else 1.5)
    time.sleep(1.0)
    if RANK != 1:
        at(RANK)
    comm.Dup()
    comm.Barrier()


PROGRAMS = {
    "sends-to-itself": sends_to_itself,
    "synchronous-parts-are-probed": synchronous_parts_are_probed,
    "communicator-and-interpreter": communicator_and_interpreter,
}

if __name__ == "__main__":
    run(PROGRAMS)
