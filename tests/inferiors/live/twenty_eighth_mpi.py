"""Ranks of Open MPI by mpi4py, twenty-eighth set: `mpirun ... twenty_eighth_mpi.py NAME FOLDER`."""

import os

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RANKS = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class WaitGuard:
    """A request that is waited for when this goes out of its scope."""

    def __init__(self, request):
        self.request = request

    def __enter__(self):
        return self.request

    def __exit__(self, *_):
        self.request.Wait()


class Packets:
    """What each rank has for others; how many come is known before."""

    def __init__(self, comm, size):
        self.comm, self.packet = comm, numpy.full(size, RANK, dtype=numpy.float64)
        self.destinations = {0: (1, 2), 1: (2,), 2: (0,)}

    def exchange(self):
        for rank in self.destinations[RANK]:
            with WaitGuard(self.comm.Isend(self.packet, dest=rank)):
                pass
        for source, destinations in self.destinations.items():
            if RANK in destinations:
                received = numpy.empty_like(self.packet)
                with WaitGuard(self.comm.Irecv(received, source=source)):
                    pass


def packets_of_any_size():
    """As rsmpi/rsmpi#144: packets are sent with a guard that waits for them at the end of its scope, which is at once.
    Small ones are on their way by then; of the large ones each waits to be received, and nobody has come to that."""
    comm = world()
    Packets(comm, 8).exchange()
    work_for(0.05)
    packets = Packets(comm, 1 << 20)
    comm.Barrier()
    at(RANK)
    packets.exchange()


class Dataset:
    """A file of all ranks, whose rows are written together. A value is written to each row of a block in turn."""

    def __init__(self, comm, path, columns=8):
        from mpi4py import MPI

        self.columns = columns
        self.file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)

    def fill(self, first, last, value):
        row = numpy.full(self.columns, value, dtype=numpy.float64)
        for number in range(first, last):
            self.file.Write_at_all(number * row.nbytes, row)


def scalar_for_each_block():
    """As h5py/h5py#1108: a value is written to a block of rows by one call for each of them, in which all ranks take
    part. The last rank has fewer rows, and is done."""
    comm = world()
    dataset = Dataset(comm, in_folder("values"))
    dataset.fill(4 * RANK, 4 * RANK + 4, 0.5)
    work_for(0.05)
    rows = 10
    first, last = 4 * RANK, min(4 * RANK + 4, rows)
    comm.Barrier()
    at(RANK)
    dataset.fill(first, last, 1.5)
    total = comm.allreduce(last - first)
    print(total, flush=True)


class Service:
    """Ends MPI when the program is left, in whatever way."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        from mpi4py import MPI

        at(RANK)
        MPI.Finalize()


def configure(name):
    if name not in ("tracks", "clusters"):
        raise ValueError(f"there is no module of the name {name}")


def source_with_a_wrong_name():
    """As cms-sw/cmssw#50752: a process has an error in its configuration, and the service ends MPI as it is left, which
    waits for all. Those that want its data would wait for ever, so that the error is never shown."""
    comm = world()
    if RANK == 1:
        with Service():
            configure("tracs")
    at(RANK)
    if RANK == 0:
        comm.recv(source=1)
    comm.Barrier()


PROGRAMS = {
    "sends-its-packets": packets_of_any_size,
    "writes-its-rows": scalar_for_each_block,
    "ends-its-service": source_with_a_wrong_name,
}

if __name__ == "__main__":
    run(PROGRAMS)
