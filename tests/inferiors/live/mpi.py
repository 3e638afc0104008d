"""Ranks of Open MPI by mpi4py that hang, and healthy ones: `mpirun ... mpi.py NAME FOLDER`."""

import os
import socket
import sys
import threading
import time

import numpy
from mpi4py import MPI

from tests.inferiors.live.place import at, read_for_ever, run, thread, work_for

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size


def place():
    WORLD.Barrier()
    at(RANK)


def one_of(rank, its, others):
    place()
    (its if rank == RANK else others)()


def numbers():
    return numpy.ones(256)


def sum_up():
    WORLD.Allreduce(MPI.IN_PLACE, numbers())


def recv_without_send():
    one_of(0, lambda: WORLD.Recv(numbers(), source=1, tag=7), WORLD.Barrier)


def bcast_and_reduce():
    one_of(1, sum_up, lambda: WORLD.Bcast(numbers(), root=1))


def finalize_early():
    """Rank 2 has come to its end a step before the others."""
    one_of(2, MPI.Finalize, sum_up)


def ssend_both():
    """Ranks 0 and 1 send to each other before they receive; with large messages nobody gets through."""
    place()
    if RANK < 2:
        WORLD.Ssend(numbers(), dest=1 - RANK)
        WORLD.Recv(numbers(), source=1 - RANK)
    WORLD.Barrier()


def split_crossed():
    row, column = WORLD.Dup(), WORLD.Dup()
    place()
    for one in (row, column) if RANK != 1 else (column, row):
        one.Barrier()


def file_does_not_come():
    one_of(1, read_for_ever, sum_up)


def irecv_never_matched():
    """Rank 2 posted a receive with a tag nobody sends."""

    def receive():
        WORLD.Irecv(numbers(), source=0, tag=99).Wait()

    one_of(2, receive, lambda: WORLD.Gather(numbers(), numpy.ones(256 * SIZE) if RANK == 0 else None, root=0))


def locked_out():
    """Rank 0 wants a lock that its own helper holds."""
    lock, held = threading.Lock(), threading.Event()

    def hold():
        with lock:
            held.set()
            read_for_ever()

    def wait():
        thread(hold)
        held.wait()
        lock.acquire()

    one_of(0, wait, sum_up)


def probes_for_work():
    """A farm whose master sent one stop too few: worker 2 probes for work, the others are at the end."""
    one_of(2, lambda: WORLD.Probe(source=0), WORLD.Barrier)


def steps():
    place()
    while True:
        work_for(0.05)
        sum_up()


def farm():
    """Healthy: workers compute a second and ask again."""
    place()
    while True:
        if RANK == 0:
            WORLD.send("work", dest=WORLD.recv(source=MPI.ANY_SOURCE))
        else:
            WORLD.send(RANK, dest=0)
            WORLD.recv(source=0)
            work_for(1.0)


def halo():
    """Healthy: neighbours exchange, each with its own pace."""
    place()
    while True:
        time.sleep(0.02 * (RANK + 1))
        WORLD.Sendrecv(numbers(), (RANK + 1) % SIZE, recvbuf=numbers(), source=(RANK - 1) % SIZE)


def writes_on_first():
    """Healthy: rank 0 writes the state, the others wait at the barrier."""
    block = os.urandom(1 << 23)
    place()
    while True:
        if RANK == 0:
            with open(os.path.join(sys.argv[2], "state"), "wb") as file:
                for _ in range(8):
                    file.write(block)
                os.fsync(file.fileno())
        WORLD.Barrier()


def serves():
    """Healthy: rank 0 waits for a client, the others for what it broadcasts."""
    place()
    while True:
        if RANK == 0:
            with socket.create_server(("127.0.0.1", 0)) as server:
                server.accept()
        WORLD.bcast(None, root=0)


PROGRAMS = {
    "recv-without-send": recv_without_send,
    "bcast-and-reduce": bcast_and_reduce,
    "finalize-early": finalize_early,
    "ssend-both": ssend_both,
    "split-crossed": split_crossed,
    "file-does-not-come": file_does_not_come,
    "irecv-never-matched": irecv_never_matched,
    "locked-out": locked_out,
    "probes-for-work": probes_for_work,
    "steps": steps,
    "farm": farm,
    "halo": halo,
    "writes-on-first": writes_on_first,
    "serves": serves,
}

if __name__ == "__main__":
    run(PROGRAMS)
