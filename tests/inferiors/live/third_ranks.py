"""Gloo ranks that hang, and their healthy twins, third set: `third_ranks.py NAME FOLDER`, one process each."""

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from tests.inferiors.live.place import LONG, at, read_for_ever, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))


def place():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()
    at(RANK)


def exchange(tokens):
    """Each rank sends so many tokens to each of the others, as a layer of experts does."""
    sizes = torch.full((3,), tokens, dtype=torch.long)
    incoming = torch.empty_like(sizes)
    dist.all_to_all_single(incoming, sizes)
    received = torch.empty(int(incoming.sum()))
    dist.all_to_all_single(received, torch.ones(3 * tokens), incoming.tolist(), sizes.tolist())


def expert_without_tokens():
    """Rank 1 has no tokens for this layer and leaves the exchange out."""
    place()
    if RANK != 1:
        exchange(4)
    dist.all_reduce(torch.ones(64))


def experts_with_no_tokens():
    """The twin: a rank without tokens exchanges none, and the layers go on."""
    place()
    step = 0
    while True:
        exchange(0 if step % 3 == RANK else 4)
        work_for(0.02 * (RANK + 1))
        step += 1


def left_before_barrier():
    """Rank 2 has done its part and ends; the others count arrivals in the store and wait for three."""
    place()
    store = dist.distributed_c10d._get_default_store()
    if RANK == 2:
        os._exit(0)
    if store.add("arrived", 1) == 3:
        store.set("all-arrived", "yes")
    store.wait(["all-arrived"], LONG)


class Metrics:
    """What a step has measured, written out by a thread."""

    def __init__(self):
        self.lock, self.taken = threading.Lock(), threading.Event()

    def write_for_ever(self):
        with self.lock:
            self.taken.set()
            read_for_ever()

    def write_in_turns(self):
        while True:
            with self.lock:
                work_for(0.01)


def metrics_lock():
    """Rank 1 wants the lock of its metrics, which its writing thread has while it waits for a disk."""
    place()
    metrics = Metrics()
    if RANK == 1:
        thread(metrics.write_for_ever)
        metrics.taken.wait()
        with metrics.lock:
            pass
    dist.all_reduce(torch.ones(64))


def metrics_lock_in_turns():
    """The twin: the writer lets go between its lines."""
    place()
    metrics = Metrics()
    thread(metrics.write_in_turns)
    while True:
        with metrics.lock:
            work_for(0.01)
        dist.all_reduce(torch.ones(64))


def upload(read):
    """Rank 0 sends what it has saved to a server, the others wait at the end of the step."""
    place()
    if RANK == 0:
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        thread(read, server.accept()[0])
    while True:
        if RANK == 0:
            client.sendall(bytes(1 << 24))
        dist.all_reduce(torch.ones(64))


def reads_nothing(connection):
    """The server's disk is full: it takes nothing from the connection."""
    read_for_ever()
    connection.close()


def reads_slowly(connection):
    while connection.recv(1 << 22):
        work_for(0.005)


def upload_not_read():
    upload(reads_nothing)


def upload_drained():
    """The twin: the server takes its time and takes all."""
    upload(reads_slowly)


class Decoded(Dataset):
    """Samples that a pool of threads decodes: the parent's, which a forked worker has without its threads, or one of
    the worker's own."""

    def __init__(self, pool):
        self.pool = pool

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        pool = self.pool
        if pool is None:
            pool = self.pool = ThreadPoolExecutor(1)
            at("worker")
        elif os.getpid() != PARENT:
            at("worker")
        return pool.submit(torch.full, (4,), index).result()


PARENT = os.getpid()


def loader_inherits_pool():
    """The pool was warmed up in the parent; the loader's worker has its queue and no thread that reads it."""
    pool = ThreadPoolExecutor(1)
    data = Decoded(pool)
    data[0]
    loader = iter(DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="fork"))
    at("main")
    next(loader)


def loader_with_own_pool():
    """The twin: each worker makes a pool of its own, and the steps go on."""
    loader = iter(DataLoader(Decoded(None), batch_size=4, num_workers=1, multiprocessing_context="fork"))
    next(loader)
    at("main")
    for _ in loader:
        work_for(0.02)


PROGRAMS = {
    "expert-without-tokens": expert_without_tokens,
    "experts-with-no-tokens": experts_with_no_tokens,
    "left-before-barrier": left_before_barrier,
    "metrics-lock": metrics_lock,
    "metrics-lock-in-turns": metrics_lock_in_turns,
    "upload-not-read": upload_not_read,
    "upload-drained": upload_drained,
    "loader-inherits-pool": loader_inherits_pool,
    "loader-with-own-pool": loader_with_own_pool,
}

if __name__ == "__main__":
    run(PROGRAMS)
