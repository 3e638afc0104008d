"""Ranks of Open MPI by mpi4py, twenty-seventh set: `mpirun ... twenty_seventh_mpi.py NAME FOLDER`."""

import itertools
import os
import pickle
import socket

import numpy

from tests.inferiors.live.place import at, in_folder, run, work_for

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
RANKS = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Collectives:
    """The root of a broadcast has begun it when it returns. It goes on whenever MPI is called."""

    def __init__(self, comm):
        self.comm, self.begun = comm, []

    def broadcast(self, data):
        if RANK == 0:
            self.begun += [self.comm.Isend(data, dest=rank, tag=3) for rank in range(1, RANKS)]
        else:
            self.comm.Recv(data, source=0, tag=3)


class Communicator:
    """Of another library. The first rank listens, and all others tell it who they are."""

    def __init__(self, listener, address):
        self.peers = []
        if RANK == 0:
            while len(self.peers) < RANKS - 1:
                self.peers.append(listener.accept()[0])
            for peer in self.peers:
                peer.sendall(b"ready")
        else:
            self.peers.append(socket.create_connection(address))
            self.peers[0].recv(5)


def id_on_its_way():
    """As NVIDIA/cuDecomp#24: the id of a communicator is broadcast, and all ranks start it with the id. The first rank
    waits for the others there and does not call MPI any more, so that the broadcast does not end."""
    os.environ.update(OMPI_MCA_btl_vader_single_copy_mechanism="none")  # the sender has to see to each part
    comm = world()
    identity, listener, address = numpy.zeros(1 << 23, dtype=numpy.uint8), None, None
    if RANK == 0:
        listener = socket.create_server(("127.0.0.1", 0))
        address = pickle.dumps(listener.getsockname())
        identity[: len(address)] = list(address)
    collectives = Collectives(comm)
    at(RANK)
    collectives.broadcast(identity)
    address = pickle.loads(identity.tobytes())
    Communicator(listener, address)


class Atoms:
    """Each rank has a part of the box and sends those that have left it to the next one, their count first."""

    def __init__(self, comm):
        self.comm, self.count = comm, 100 + RANK

    def exchange(self):
        count = numpy.zeros(1, dtype=numpy.int32)
        self.comm.Ssend(numpy.array([self.count], dtype=numpy.int32), dest=(RANK + 1) % RANKS)
        self.comm.Recv(count, source=(RANK - 1) % RANKS)
        return int(count[0])


def atoms_move_on():
    """As Mantevo/miniMD#8: all ranks send a count to the next rank, and receive one after that. To send may wait until
    it is received, even for four bytes, and here it does."""
    atoms = Atoms(world())
    work_for(0.05)
    at(RANK)
    atoms.exchange()


def write_boundaries(file, step):
    for number in range(200):
        file.write(os.urandom(4096))
        file.flush()
        os.fsync(file.fileno())
        work_for(0.02)
    file.seek(0)
    return step


def state_written_by_the_first():
    """Healthy, as MFlowCode/MFC#1358: the first rank alone writes the state of the boundaries, part after part. The
    others wait for it."""
    comm = world()
    with open(in_folder(f"boundaries{RANK}"), "wb") as file:
        at(RANK)
        for step in itertools.count():
            if RANK == 0:
                for _ in range(500):
                    write_boundaries(file, step)
            comm.Barrier()


PROGRAMS = {
    "shares-its-unique-id": id_on_its_way,
    "sends-counts-around": atoms_move_on,
    "writes-the-boundaries": state_written_by_the_first,
}

if __name__ == "__main__":
    run(PROGRAMS)
