"""Ranks of Open MPI by mpi4py that hang, fourteenth set: `mpirun ... fourteenth_mpi.py NAME FOLDER`."""

import os
import queue
import signal
import sys
import threading
import time

import numpy

from tests.inferiors.live.place import at, run, thread

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
STEPS = 6


def world():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    return MPI.COMM_WORLD


class Reducer:
    """A thread talks to those of the other ranks: the first rank learns what each has to sum, and says what all have;
    that is summed then."""

    def __init__(self, comm):
        self.comm, self.pending, self.guard = comm, {}, threading.Lock()
        thread(self.loop)

    def loop(self):
        while True:
            time.sleep(0.005)
            self.run_once()

    def run_once(self):
        with self.guard:
            names = sorted(self.pending)
        gathered = self.comm.gather(names)
        common = sorted(set(gathered[0]).intersection(*gathered[1:])) if RANK == 0 else None
        for name in self.comm.bcast(common):
            with self.guard:
                tensor, done = self.pending.pop(name)
            tensor[:] = self.comm.allreduce(tensor)
            done.set()

    def allreduce(self, name, tensor):
        done = threading.Event()
        with self.guard:
            self.pending[name] = tensor, done
        done.wait()
        return tensor


def batches():
    """Rank 1 has fewer rows than the others."""
    for number in range(STEPS - 2 if RANK == 1 else STEPS):
        yield number, numpy.full(64, float(number))


def fewer_batches_by_background_thread():
    """As horovod/horovod#3980: the data is not the same number of batches for each rank. Rank 1 is at the end of its
    own and wants the mean of the losses, the others the next sum of gradients."""
    reducer = Reducer(world())
    for number, gradient in batches():
        if number == STEPS - 2:
            at(RANK)
        reducer.allreduce(f"gradient.{number}", gradient)
    if RANK == 1:
        at(RANK)
    reducer.allreduce("loss.mean", numpy.zeros(1))


def exits_as_if_well():
    """As ai2cm/ace#1068: rank 1 is told to end, and does so as one that has done its work, so that nobody ends the
    others. They wait for it in the next sum."""
    comm = world()

    def preempted(signum, frame):
        at(RANK)
        sys.exit(0)

    signal.signal(signal.SIGTERM, preempted)
    for number in range(STEPS):
        gradient = numpy.ones(1024)
        if number == STEPS - 2:
            if RANK == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            at(RANK)
        comm.Allreduce(gradient.copy(), gradient)


class Stream:
    """Does what was launched, one after the other."""

    def __init__(self):
        self.kernels = queue.Queue()
        thread(self.execute)

    def execute(self):
        while True:
            kernel, buffer, peer, done = self.kernels.get()
            kernel(buffer, peer)
            done.set()

    def launch(self, kernel, buffer, peer):
        done = threading.Event()
        self.kernels.put((kernel, buffer, peer, done))
        return done


def kernels_of_two_communicators():
    """As NVIDIA/nccl#584: activations and gradients have a communicator each, and a device does its kernels in the
    order of their launch. Who sends is done when the other has received; here both launch what they send first."""
    comm = world()
    forward, backward, peer = comm.Dup(), comm.Dup(), 1 - RANK
    sends, receives = (forward, backward) if RANK == 0 else (backward, forward)
    stream = Stream()
    for number in range(STEPS):
        out, into = numpy.ones(1 << 16), numpy.empty(1 << 16)
        kernels = [(sends.Ssend, out, peer), (receives.Recv, into, peer)]
        if RANK == 1 and number < STEPS - 2:
            kernels.reverse()
        launched = [stream.launch(*kernel) for kernel in kernels]
        if number == STEPS - 2:
            at(RANK)
        for done in launched:
            done.wait()


PROGRAMS = {
    "fewer-batches-by-background-thread": fewer_batches_by_background_thread,
    "exits-as-if-well": exits_as_if_well,
    "kernels-of-two-communicators": kernels_of_two_communicators,
}

if __name__ == "__main__":
    run(PROGRAMS)
