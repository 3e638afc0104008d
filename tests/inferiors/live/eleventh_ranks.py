"""Ranks of a job over Gloo that hang, and healthy ones, eleventh set: `eleventh_ranks.py NAME FOLDER`, one each."""

import contextlib
import itertools
import os
import threading
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.eighth_ranks import RANK, all_reduce, join_group, replica
from tests.inferiors.live.place import LONG, at, in_folder, run, work_for


def no_sync_too_long():
    """Gradients are summed up over two batches before the ranks exchange them. Rank 1 has its own number from an old
    configuration, four, and is at the end of the epoch two exchanges before the others."""
    model = replica()
    batches = 4 if RANK == 1 else 2
    for number in range(8):
        if number == 5 and RANK != 1:
            at(RANK)
        last = (number + 1) % batches == 0
        with contextlib.nullcontext() if last else model.no_sync():
            model(torch.ones(4, 64)).sum().backward()
    at(RANK)
    dist.barrier()


class Saver:
    """Saves what all ranks have, so many seconds after the last time."""

    def __init__(self, seconds):
        self.seconds, self.since = seconds, time.monotonic()

    def due(self):
        return time.monotonic() - self.since > self.seconds

    def save(self, seconds):
        states = [None] * dist.get_world_size()
        dist.all_gather_object(states, {"rank": RANK, "step": int(all_reduce()[0])})
        if RANK == 0:
            work_for(seconds)
        dist.barrier()
        self.since = time.monotonic()


def saves_by_own_clock():
    """Each rank looks at its own clock, which runs since its weights are loaded; rank 1 has loaded them first."""
    join_group()
    work_for(0.1 if RANK == 1 else 1.6)
    saver = Saver(2.5)
    at(RANK)
    numbers = torch.ones(64)
    while True:
        work_for(0.02)
        dist.broadcast(numbers, 0)
        if saver.due():
            saver.save(0.1)


def saves_by_clock_of_one():
    """Healthy: rank 0 says to all whether it is time, and writes for 1.3 seconds."""
    join_group()
    saver = Saver(0.5)
    at(RANK)
    while True:
        work_for(0.02)
        due = torch.tensor([saver.due()], dtype=torch.uint8)
        dist.broadcast(due, 0)
        if due.item():
            saver.save(1.3)


def file_store_elsewhere():
    """The ranks find each other by a file in the folder for temporary files, and rank 2 has one of its own."""
    folder = in_folder("scratch-of-job" if RANK == 2 else "scratch")
    os.makedirs(folder, exist_ok=True)
    at(RANK)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=RANK, world_size=3, timeout=LONG)
    dist.barrier()


def checkpoint_alone():
    """Rank 1's configuration says that its folder is on a local disk: it saves without the others, who plan together
    who writes what."""
    from torch.distributed import checkpoint

    model = replica()
    for _ in range(3):
        model(torch.ones(4, 64)).sum().backward()
    if RANK == 1:
        checkpoint.save(model.module.state_dict(), checkpoint_id=in_folder("local"), no_dist=True)
    at(RANK)
    if RANK != 1:
        checkpoint.save(model.module.state_dict(), checkpoint_id=in_folder("shared"))
    dist.barrier()


class Gradients:
    """The parameter server: who brings a part of a step waits until all four are there and the weights are new."""

    def __init__(self):
        self.changed, self.parts, self.version = threading.Condition(), 0, 0

    def add(self, part, seconds):
        with self.changed:
            self.parts += 1
            if self.parts == 4:
                work_for(seconds)
                self.parts, self.version = 0, self.version + 1
                self.changed.notify_all()
            else:
                version = self.version
                self.changed.wait_for(lambda: self.version > version)
            return part * 0.5


gradients = Gradients()


def add_part(part, seconds):
    return gradients.add(part, seconds)


def serve_parameters(threads, seconds):
    from torch.distributed import rpc

    torch.set_num_threads(1)
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=threads, rpc_timeout=LONG.total_seconds(), init_method="env://"
    )
    rpc.init_rpc(f"node{RANK}", rank=RANK, world_size=3, rpc_backend_options=options)
    if RANK > 0:
        for number in itertools.count():
            parts = [rpc.rpc_async("node0", add_part, (torch.ones(256), seconds)) for _ in range(2)]
            if number == 0:
                at(RANK)
            torch.futures.wait_all(parts)
    at(RANK)
    rpc.shutdown()


def server_has_two_threads():
    """Each trainer brings two parts. Two threads of the server have one each, and wait for the other two."""
    serve_parameters(2, 0.01)


def server_has_four_threads():
    """Healthy: there is a thread for each part, and a step takes 1.2 seconds."""
    serve_parameters(4, 1.2)


PROGRAMS = {
    "no-sync-too-long": no_sync_too_long,
    "saves-by-own-clock": saves_by_own_clock,
    "saves-by-clock-of-one": saves_by_clock_of_one,
    "file-store-elsewhere": file_store_elsewhere,
    "checkpoint-alone": checkpoint_alone,
    "server-has-two-threads": server_has_two_threads,
    "server-has-four-threads": server_has_four_threads,
}

if __name__ == "__main__":
    run(PROGRAMS)
