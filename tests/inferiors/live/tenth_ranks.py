"""Ranks of a job over Gloo that hang, and healthy ones, tenth set: `tenth_ranks.py NAME FOLDER`, one process each."""

import ctypes
import fcntl
import gc
import itertools
import os
import signal
import socket
import threading
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.eighth_ranks import RANK, all_reduce, join_group, replica
from tests.inferiors.live.place import LONG, at, child_of, in_folder, run, thread, wait_for_role, work_for
from tests.inferiors.live.tenth_extension import extension

STEPS = 6


def shared_store():
    return dist.distributed_c10d._get_default_store()


def preempted_alone():
    """The cluster tells rank 1's node that it will be taken away, and no other. Rank 1 leaves the loop to save what
    each has; the others make their next step."""
    told = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: told.set())
    join_group()
    for number in itertools.count():
        if number == STEPS:
            at(RANK)
            if RANK == 1:
                os.kill(os.getpid(), signal.SIGUSR1)
        if told.is_set():
            break
        all_reduce()
    plans = [None] * 3
    dist.all_gather_object(plans, {"rank": RANK, "tensors": 64})


def key_deleted_too_soon():
    """Rank 0 tells by a key where the tokenizer is. Rank 1 reads it and deletes it, to leave a clean store; rank 2
    wants it only after the first step."""
    join_group()
    store = shared_store()
    if RANK == 0:
        store.set("tokenizer", "/cache/tokenizer")
    if RANK == 1:
        store.get("tokenizer")
        store.delete_key("tokenizer")
    all_reduce()
    at(RANK)
    if RANK == 2:
        store.wait(["tokenizer"], LONG)
    dist.barrier()


def mesh_of_other_shape():
    """Rank 3 takes the size of its node for the size of a replica: four replicas of one rank each are to it one
    replica of four, where the others have two of two."""
    from torch.distributed.device_mesh import init_device_mesh

    join_group()
    at(RANK)
    shape = (4, 1) if RANK == 3 else (2, 2)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
    dist.all_reduce(torch.ones(256), group=mesh.get_group("tensor"))
    dist.barrier()


class StoreLock:
    """One rank at a time, by a key of the store."""

    def __init__(self, name):
        self.store, self.name, self.mine = shared_store(), name, f"rank {RANK}"

    def acquire(self):
        while self.store.compare_set(self.name, "free", self.mine).decode() != self.mine:
            time.sleep(0.05)

    def release(self):
        self.store.set(self.name, "free")


def load_kernels(lock, names):
    lock.acquire()
    kernels = [{"attention": 1, "norm": 2}[name] for name in names]
    lock.release()
    return kernels


def lock_in_store_kept():
    """Rank 2 loads its kernels first. One is not there: it goes on without, and with the lock. Rank 1 is next."""
    join_group()
    lock = StoreLock("kernels")
    if RANK == 0:
        lock.release()
    dist.barrier()
    if RANK == 2:
        try:
            load_kernels(lock, ["attention", "rotary"])
        except KeyError as error:
            print("no kernel for", error, flush=True)
    all_reduce()
    at(RANK)
    if RANK == 1:
        load_kernels(lock, ["attention", "norm"])
    all_reduce()


class Job:
    """Ranks 0 and 1 train, ranks 2 and 3 generate. A trainer wants some rollouts for each version of the weights, and
    the generators make so many for each version that they have."""

    def __init__(self):
        join_group()
        self.trainers, self.generators = dist.new_group([0, 1]), dist.new_group([2, 3])
        self.sends = []

    def send(self, numbers, rank):
        """The latest ones are not waited for: the other side may send too."""
        self.sends.append(dist.isend(numbers, rank))
        if len(self.sends) > 4:
            self.sends.pop(0).wait()

    def train(self, wanted, seconds):
        batch = torch.ones(512)
        for _ in range(wanted):
            if RANK == 0:
                dist.recv(batch, 2)
            dist.broadcast(batch, 0, group=self.trainers)
        work_for(seconds)
        dist.all_reduce(batch, group=self.trainers)
        if RANK == 0:
            self.send(batch * 0.5, 2)

    def generate(self, number):
        for _ in range(number):
            rollout = torch.ones(512)
            dist.all_reduce(rollout, group=self.generators)
            if RANK == 2:
                self.send(rollout, 0)
        weights = torch.ones(512)
        if RANK == 2:
            dist.recv(weights, 0)
        dist.broadcast(weights, 2, group=self.generators)

    def run(self, wanted, seconds):
        for version in itertools.count():
            if version == 4:
                at(RANK)
            if RANK < 2:
                self.train(wanted(version), seconds)
            else:
                self.generate(2)


def batch_grows_for_one_side():
    """The trainers' batches grow with the fifth version of the weights. The generators' do not."""
    Job().run(lambda version: 2 if version < 4 else 3, 0.01)


def batch_stays():
    """Healthy: the trainers need a second for each version, and the generators wait for their weights."""
    Job().run(lambda version: 2, 1.0)


def collect_metrics(listens):
    """The agent: connections one after the other, each until its end."""
    at("agent")
    while True:
        with listens.accept()[0] as client:
            while client.recv(4096):
                client.sendall(b"+")


def connected():
    made = socket.socket(socket.AF_UNIX)
    made.connect(in_folder("agent.sock"))
    return made


WAITING = 8
"""Connections that the agent's socket has room for."""


def agent_has_no_room():
    """Rank 0 reports to the agent of its node by a connection that it keeps. Rank 1 makes one for each step, and ends
    it: they wait until it is their turn, as long as there is room for one more."""
    if RANK == 0:
        listens = socket.socket(socket.AF_UNIX)
        listens.bind(in_folder("agent.sock"))
        listens.listen(WAITING)
        child_of(collect_metrics, listens)
        listens.close()
        wait_for_role("agent")
        kept = connected()
        kept.sendall(b"begins")
        kept.recv(1)
    join_group()
    for number in range(WAITING + 2):
        if number == WAITING + 1:
            at(RANK)
        if RANK == 1:
            with connected() as made:
                made.sendall(b"loss 0.25")
        all_reduce()


def load_adapters(has_lock):
    """Under the lock of the cache, which other processes want as well."""
    with open(in_folder("cache.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        has_lock.set()
        work_for(3.0)


def file_lock_and_interpreter():
    """A thread of rank 1 loads adapters with the lock of the cache. C++ wants that lock for the kernels and waits for
    it with the interpreter's lock, which the thread needs to go on."""
    library, has_lock = extension(ctypes.PyDLL), threading.Event()
    join_group()
    for _ in range(STEPS):
        all_reduce()
    if RANK == 1:
        thread(load_adapters, has_lock)
        has_lock.wait()
    at(RANK)
    if RANK == 1:
        with open(in_folder("cache.lock"), "w") as file:
            library.cache_lock(file.fileno())
    all_reduce()


def steps_with_shards(is_used):
    """Each rank has the optimizer's states of some weights, and sends these weights to the others after each step."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = replica()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.01)
    for number in itertools.count():
        if number == STEPS:
            at(RANK)
        optimizer.zero_grad()
        loss = model(torch.ones(4, 64)).sum()
        if RANK == 1 and number == STEPS:
            loss = loss + float("inf")
        loss.backward()
        if is_used(loss):
            optimizer.step()


def inf_on_one_rank():
    """Rank 1 has an infinite loss and leaves the optimizer's step out, as it looks at its own loss only."""
    steps_with_shards(torch.isfinite)


def collects_garbage():
    """Healthy: each rank collects its garbage by itself after each step, and rank 1 has many objects."""
    join_group()
    gc.disable()
    table = [[number] for number in range(2_000_000 if RANK == 1 else 100)]
    at(RANK)
    while True:
        table[0] = [table]
        gc.collect()
        all_reduce()


def spare_waits():
    """Healthy: ranks 0 and 1 train. Rank 2 is there to take over should one of them fail."""
    join_group()
    pair = dist.new_group([0, 1])
    at(RANK)
    if RANK == 2:
        shared_store().wait(["failed"], LONG)
    while True:
        work_for(0.2)
        dist.all_reduce(torch.ones(256), group=pair)


PROGRAMS = {
    "preempted-alone": preempted_alone,
    "key-deleted-too-soon": key_deleted_too_soon,
    "mesh-of-other-shape": mesh_of_other_shape,
    "lock-in-store-kept": lock_in_store_kept,
    "batch-grows-for-one-side": batch_grows_for_one_side,
    "batch-stays": batch_stays,
    "agent-has-no-room": agent_has_no_room,
    "file-lock-and-interpreter": file_lock_and_interpreter,
    "inf-on-one-rank": inf_on_one_rank,
    "collects-garbage": collects_garbage,
    "spare-waits": spare_waits,
}

if __name__ == "__main__":
    run(PROGRAMS)
