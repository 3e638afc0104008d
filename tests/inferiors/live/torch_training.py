"""Training with DDP, loaders, compilers and RPC, healthy or not: `torch_training.py NAME FOLDER`."""

import os
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from tests.inferiors.live.place import LONG, at, read_for_ever, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)

    def forward(self, batch):
        return self.second(torch.relu(self.first(batch))).mean()


def trainer():
    model = DistributedDataParallel(Model())
    return model, torch.optim.SGD(model.parameters(), 0.01)


def step(model, optimizer, batch):
    optimizer.zero_grad()
    model(batch).backward()
    optimizer.step()


def loss_skipped():
    """Rank 1 skips the backward of a bad batch and waits for the others at the end."""
    join_group()
    model, optimizer = trainer()
    for number in range(3):
        if number == 2:
            at(RANK)
            if RANK == 1:
                break
        step(model, optimizer, torch.rand(8, 64))
    at(RANK)
    dist.barrier()


class Slow(Dataset):
    """Each item takes a moment of computing."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        work_for(0.05)
        return torch.rand(64)


class Stuck(Slow):
    """Item 40 lies on a disk that does not answer."""

    def __getitem__(self, index):
        if index == 40:
            at("worker")
            read_for_ever()
        return torch.rand(64)


def loader_stuck():
    """A worker of rank 1's loader waits for a file; DDP's other ranks wait for the gradients of rank 1."""
    join_group()
    model, optimizer = trainer()
    loader = DataLoader(Stuck() if RANK == 1 else Slow(), batch_size=8, num_workers=1)
    for number, batch in enumerate(loader):
        if number == 4:
            at(RANK)
        step(model, optimizer, batch)


CACHE = threading.Lock()


class Cached(Slow):
    def __getitem__(self, index):
        at("worker")
        with CACHE:
            return torch.rand(64)


def loader_forked_with_lock():
    """A thread of the parent holds the cache's lock while the loader forks: its copy in the worker nobody releases."""
    taken = threading.Event()

    def refresh():
        with CACHE:
            taken.set()
            read_for_ever()

    thread(refresh)
    taken.wait()
    at("main")
    for _ in DataLoader(Cached(), batch_size=2, num_workers=1):
        pass


def openmp_after_fork():
    """The parent has OpenMP threads; the child's first parallel region waits for threads that are not there."""
    torch.set_num_threads(2)
    big = torch.rand(1500, 1500)
    big @ big
    torch.sin(torch.rand(1 << 20))
    child = os.fork()
    if child == 0:
        at("child")
        torch.sin(torch.rand(1 << 20))
        big @ big
        read_for_ever()
    at("main")
    os.waitpid(child, 0)


def spawned_rank(rank, world, address, event):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world, timeout=LONG)
    dist.barrier()
    at(str(rank))
    if rank == 1:
        event.wait()
    dist.all_reduce(torch.ones(16))


def spawned_and_never_told():
    """Ranks of mp.spawn; rank 1 waits for an event that its parent sets after the join."""
    handle, path = tempfile.mkstemp(dir=sys.argv[2])
    os.close(handle)
    event = mp.get_context("spawn").Event()
    context = mp.spawn(spawned_rank, (3, f"file://{path}2", event), nprocs=3, join=False)
    at("main")
    while not context.join():
        pass
    event.set()


def nested_rpc():
    """Each of two agents has one thread for requests, and a request that asks back."""
    import torch.distributed.rpc as rpc

    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1, rpc_timeout=86400)
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=2, rpc_backend_options=options)
    at(RANK)
    if RANK == 0:
        rpc.rpc_sync("worker1", ask_back, args=(1, 4))
    rpc.shutdown()


def ask_back(me, depth):
    import torch.distributed.rpc as rpc

    return depth and rpc.rpc_sync(f"worker{1 - me}", ask_back, args=(1 - me, depth - 1))


def train(batches):
    """Healthy: steps of DDP."""
    join_group()
    model, optimizer = trainer()
    for number, batch in enumerate(batches):
        if number == 2:
            at(RANK)
        step(model, optimizer, batch)


def slow_batches():
    while True:
        work_for(0.02)
        yield torch.rand(8, 64)


def accumulate():
    """Healthy: eight local steps, then one with all."""
    join_group()
    model, optimizer = trainer()
    at(RANK)
    while True:
        with model.no_sync():
            for _ in range(8):
                model(torch.rand(256, 64)).backward()
                work_for(0.03)
        step(model, optimizer, torch.rand(8, 64))


def evaluate_on_one():
    """Healthy: rank 0 scores in Python between the epochs, the others wait for the result."""
    join_group()
    score = torch.zeros(1)
    while True:
        if RANK == 0:
            at(RANK)
            score += work_for(4.0) % 7
        at(RANK)
        dist.broadcast(score, src=0)


def compress_checkpoint():
    """Healthy: rank 0 packs the state by gzip's library, the others are at the barrier."""
    import zlib

    join_group()
    state = os.urandom(1 << 20) * 16
    at(RANK)
    while True:
        if RANK == 0:
            with open(os.path.join(sys.argv[2], "state.z"), "wb") as file:
                file.write(zlib.compress(state, 9))
                os.fsync(file.fileno())
        dist.barrier()


def load_checkpoint():
    """Healthy: the ranks load one after the other."""
    join_group()
    path = os.path.join(sys.argv[2], "weights.pt")
    if RANK == 0:
        torch.save({str(number): torch.rand(1 << 20) for number in range(8)}, path)
    dist.barrier()
    at(RANK)
    while True:
        for turn in range(dist.get_world_size()):
            if turn == RANK:
                torch.load(path)
            dist.barrier()


def compile_on_one():
    """Healthy: rank 0 compiles one kernel after the other in a child; the others are in all_reduce."""
    join_group()
    source = os.path.join(sys.argv[2], "kernel.cpp")
    with open(source, "w") as file:
        file.write('#include <regex>\n#include <map>\nint main(){std::regex r("a*");return 0;}\n')
    at(RANK)
    while True:
        if RANK == 0:
            subprocess.run(["g++", "-O2", "-c", source, "-o", source + ".o"], check=True)
        dist.all_reduce(torch.ones(4))


def torch_compile():
    """Healthy: torch.compile of a new function in each round, on every rank."""
    join_group()
    at(RANK)
    round_of = 0
    while True:
        round_of += 1
        torch._dynamo.reset()
        torch.compile(lambda batch, factor=round_of: torch.sin(batch * factor) + factor)(torch.rand(64))
        dist.all_reduce(torch.ones(4))


def pipeline():
    """Healthy: activations from rank to rank, the last one is slow."""
    join_group()
    activation, last = torch.zeros(256), dist.get_world_size() - 1
    at(RANK)
    while True:
        if RANK:
            dist.recv(activation, src=RANK - 1)
        work_for(0.2 if last == RANK else 0.02)
        if last > RANK:
            dist.send(activation, dst=RANK + 1)


def rpc_between_requests():
    """Healthy: a master that asks its workers now and then."""
    import torch.distributed.rpc as rpc

    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=3)
    at(RANK)
    while RANK == 0:
        rpc.rpc_sync("worker1", work_for, args=(0.05,))
        rpc.rpc_sync("worker2", torch.add, args=(torch.ones(2), 1))
        time.sleep(0.3)
    rpc.shutdown()


PROGRAMS = {
    "loss-skipped": loss_skipped,
    "loader-stuck": loader_stuck,
    "loader-forked-with-lock": loader_forked_with_lock,
    "openmp-after-fork": openmp_after_fork,
    "spawned-and-never-told": spawned_and_never_told,
    "nested-rpc": nested_rpc,
    "ddp-steps": lambda: train(slow_batches()),
    "ddp-slow-loader": lambda: train(DataLoader(Slow(), batch_size=8, num_workers=2)),
    "ddp-accumulates": accumulate,
    "evaluates-on-one": evaluate_on_one,
    "compresses-checkpoint": compress_checkpoint,
    "loads-in-turns": load_checkpoint,
    "compiles-on-one": compile_on_one,
    "torch-compile": torch_compile,
    "pipeline-steps": pipeline,
    "rpc-requests": rpc_between_requests,
}

if __name__ == "__main__":
    run(PROGRAMS)
