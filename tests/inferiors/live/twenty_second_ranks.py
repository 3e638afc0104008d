"""Ranks of a job over Gloo that hang, and healthy ones, twenty-second set: `twenty_second_ranks.py NAME FOLDER`."""

import itertools
import multiprocessing
import os
import queue
import socket
import threading
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, child_of, in_folder, run, thread, wait_for_role, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Mesh:
    """The ranks of one modality. Each axis has a group."""

    def __init__(self, ranks, axes):
        self.ranks = ranks
        self.groups = {axis: dist.new_group(ranks) for axis in axes} if len(ranks) > 1 else {}


class Plan:
    """A model of images and text, each of which is on ranks of its own."""

    MODALITIES = (("vision", [0]), ("language", [1, 2]))

    def materialize(self):
        for name, ranks in self.MODALITIES:
            if RANK in ranks:
                self.name, self.mesh = name, Mesh(ranks, ("tensor", "data"))
        self.pipeline = dist.new_group(list(range(RANKS)))
        return self

    def step(self):
        rows = torch.ones(8, 16)
        if self.name == "language":
            dist.all_reduce(rows, group=self.mesh.groups["tensor"])
        work_for(0.02)
        dist.broadcast(rows, 0, group=self.pipeline)


def mesh_of_its_members():
    """As cornstarch-org/Cornstarch#76: the groups of a mesh are made by those that are in them. To make one takes all
    ranks, and those of the other modality do not; the next group that is made has another number on them."""
    join_group()
    at(RANK)
    plan = Plan().materialize()
    for _ in range(400):
        plan.step()


class EpochLoader:
    """All ranks draw the order of an epoch from the same seed, which is the first one's."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        seed = torch.tensor([torch.seed() % 1000])
        dist.broadcast(seed, 0)
        order = torch.randperm(len(self.batches), generator=torch.Generator().manual_seed(int(seed)))
        return iter([self.batches[number] for number in order])


def skips_bad_batches():
    """As huggingface/accelerate#2258: batches that are bad are left out as they come. One rank has two of them, and
    begins the next epoch while the others reduce their gradients."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
    batches = [torch.ones(4, 16) for _ in range(6)]
    loader = EpochLoader(batches)
    for epoch in range(3):
        if epoch == 1:
            at(RANK)
            if RANK == 1:
                loader.batches = [*batches[:4], batches[4] * float("nan"), batches[5] * float("nan")]
        for batch in loader:
            if torch.isnan(batch).any():
                continue
            work_for(0.02)
            model(batch).sum().backward()


class Scheduler:
    """Of one rank of a tensor parallel model. The first one gives the requests to the others; how long a request has
    been there is measured by each of them."""

    LIMIT = 3.0

    def __init__(self):
        self.running = []

    def receive(self, requests):
        box = [requests]
        dist.broadcast_object_list(box, 0)
        self.running += [(request, time.monotonic()) for request in box[0]]

    def write_metrics(self):
        rows = []
        until = time.monotonic() + self.LIMIT + 0.1
        while time.monotonic() < until:
            rows.append(sum(number * number for number in range(2000)))
        with open(in_folder("metrics"), "w") as file:
            file.write(f"{len(rows)} rows, {len(self.running)} requests\n")

    def abort_late(self):
        now = time.monotonic()
        self.running = [(request, since) for request, since in self.running if now - since < self.LIMIT]

    def forward(self):
        work_for(0.01)
        dist.all_reduce(torch.ones(len(self.running), 32))


def aborts_late_requests():
    """As sgl-project/sglang#27164: a request that takes too long is aborted. One rank sees that the time is over and
    has nothing to do; for the others it was not over yet, and they compute the next token."""
    join_group()
    scheduler = Scheduler()
    for step in range(200):
        scheduler.receive(["a prompt"] if step == 0 else [])
        if step == 4:
            if RANK == 1:
                scheduler.write_metrics()
            at(RANK)
        scheduler.abort_late()
        if scheduler.running:
            scheduler.forward()


class Executor:
    """Computes in a thread of its own. Who wants a result takes it from a queue."""

    def __init__(self):
        self.results, self.tables = queue.Queue(), {number: number * 2 for number in range(8)}
        self.loop = thread(self.run)

    def run(self):
        for step in itertools.count():
            if RANK == 1 and step == 5:
                self.tables.pop(step)
            total = torch.full((8,), float(self.tables[step % 8]))
            work_for(0.02)
            dist.all_reduce(total)
            self.results.put(total.sum())


def executor_per_rank():
    """As NVIDIA/TensorRT-LLM#16592: the loop of one rank's executor ends with an error. Its process stays, and the
    others are in a collective operation."""
    join_group()
    executor = Executor()
    for step in range(100):
        if step == 5:
            at(RANK)
        executor.results.get()


def write_shards(wanted, written):
    while True:
        name, tensor = wanted.get()
        with open(name, "wb") as file:
            torch.save(tensor, file)
        written.put(name)


class AsyncWriter:
    """One process that writes checkpoints for as long as the training goes."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.wanted, self.written = context.Queue(), context.Queue()
        self.process = child_of(write_shards, self.wanted, self.written)

    def save(self, name, tensor):
        self.wanted.put((name, tensor))

    def finalize(self):
        self.written.get()
        done = torch.ones(1)
        dist.all_reduce(done)
        return done


def checkpoint_writer():
    """As NVIDIA/Megatron-LM#6970: the process that writes has died by an error, and has not said that it is done. Its
    rank waits for that, and the others are in the operation that ends the checkpoint."""
    torch.set_num_threads(1)
    writer = AsyncWriter()
    join_group()
    weights = torch.ones(64, 64)
    for step in range(3):
        for _ in range(3):
            work_for(0.02)
            dist.all_reduce(weights)
            weights /= RANKS
        folder = "common/" if RANK == 0 and step == 1 else ""
        writer.save(in_folder(f"{folder}shard{RANK}-{step}"), weights)
        if step == 1:
            at(RANK)
        writer.finalize()


def factors_on_the_first():
    """Healthy, as EleutherAI/bergson#444: after the gradients are collected, the first rank factors the matrices and
    writes them, which takes long. The others are in the reduction that comes after that."""
    join_group()
    matrices = [torch.eye(160) + torch.rand(160, 160) for _ in range(4)]
    for matrix in matrices:
        dist.all_reduce(matrix)
    at(RANK)
    if RANK == 0:
        for number in itertools.count():
            values, vectors = torch.linalg.eigh(matrices[number % 4] + matrices[number % 4].T)
            with open(in_folder("factors"), "wb") as file:
                torch.save((values, vectors), file)
    dist.all_reduce(torch.ones(1))


def send_shard(connection):
    rank = connection.recv(1)[0]
    for number in itertools.count():
        connection.sendall(bytes(512))
        if rank != 2 and number == 20:
            break
        time.sleep(0.05 if rank == 2 else 0.0)
    connection.close()


def serve_store(listener):
    at("store")
    while True:
        threading.Thread(target=send_shard, args=(listener.accept()[0],), daemon=True).start()


def restores_last():
    """Healthy, as marin-community/marin#8538: each rank restores its part of a checkpoint, and one of them gets it from
    a disk that is slow. The others have theirs, and are in the barrier."""
    if RANK == 0:
        listener = socket.create_server(("127.0.0.1", 0))
        child_of(serve_store, listener)
        with open(in_folder("port.part"), "w") as file:
            file.write(str(listener.getsockname()[1]))
        os.rename(in_folder("port.part"), in_folder("port"))
    join_group()
    wait_for_role("store")
    with open(in_folder("port")) as file:
        connection = socket.create_connection(("127.0.0.1", int(file.read())))
    connection.sendall(bytes([RANK]))
    at(RANK)
    with open(in_folder(f"restored{RANK}"), "wb") as file:
        while data := connection.recv(4096):
            file.write(data)
            file.flush()
    dist.barrier()
    work_for(3600)


PROGRAMS = {
    "mesh-of-its-members": mesh_of_its_members,
    "skips-bad-batches": skips_bad_batches,
    "aborts-late-requests": aborts_late_requests,
    "executor-per-rank": executor_per_rank,
    "checkpoint-writer": checkpoint_writer,
    "factors-on-the-first": factors_on_the_first,
    "restores-last": restores_last,
}

if __name__ == "__main__":
    run(PROGRAMS)
