"""Ranks of a job over Gloo that hang, and healthy ones, twenty-fifth set: `twenty_fifth_ranks.py NAME FOLDER`, each."""

import fcntl
import itertools
import os
import threading
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Scheduler:
    """Of one rank of a tensor parallel model. What a request needs of the cache is fetched before it can be run."""

    ROOM = 4

    def __init__(self):
        self.waiting, self.running, self.written = [], [], []

    def receive(self, number):
        requests = [[number] if RANK == 0 else None]
        dist.broadcast_object_list(requests, 0)
        self.waiting += requests[0]

    def has_room(self):
        return len(self.running) + len(self.written) < self.ROOM

    def fetched(self, request):
        done = torch.tensor([request >= 0], dtype=torch.int32)
        dist.all_reduce(done, dist.ReduceOp.MIN)
        return bool(done)

    def next_batch(self):
        for request in list(self.waiting):
            if not self.has_room():
                break
            if self.fetched(request):
                self.waiting.remove(request)
                self.running.append(request)

    def step(self, number):
        self.receive(number)
        self.next_batch()
        work_for(0.02)
        if len(self.running) == self.ROOM:
            # the blocks of who has ended are free when they are written back, which each rank learns by itself
            ended = self.running.pop(0)
            if RANK != 0:
                self.written.append(ended)


def checks_what_was_fetched():
    """As sgl-project/sglang#30760: all ranks look whether the waiting requests have been fetched, and agree upon each.
    They stop when there is no room, of which each rank knows for itself. One asks about one more request; the others
    are in their next step."""
    join_group()
    scheduler = Scheduler()
    for number in itertools.count():
        if number == Scheduler.ROOM:
            at(RANK)
        scheduler.step(number)


class AsyncCheckpointer:
    """A thread plans the save with all ranks, and writes."""

    def __init__(self):
        self.planning, self.dispatched = threading.Event(), threading.Event()

    def write(self, state):
        if RANK != 0:
            self.dispatched.wait()  # it copies the state first, which takes longer there
        plans = [torch.empty(1) for _ in range(RANKS)]
        work = dist.all_gather(plans, torch.tensor([float(len(state))]), async_op=True)
        self.planning.set()
        work.wait()
        torch.save(state, in_folder(f"shard{RANK}.pt"))

    def save(self, state):
        thread(self.write, state)
        if RANK == 0:
            self.planning.wait()  # it removes the oldest checkpoint first
        work = dist.barrier(async_op=True)
        self.dispatched.set()
        work.wait()


def saves_beside_the_steps():
    """As KempnerInstitute/KempnerForge#104: a save goes on in a thread, which plans it with the other ranks. The main
    thread comes to a barrier of the same group at its end; which of the two comes first is not the same everywhere."""
    join_group()
    gradient = torch.ones(64)
    for _ in range(4):
        work_for(0.02)
        dist.all_reduce(gradient)
    at(RANK)
    AsyncCheckpointer().save({"weights": gradient})


class Device:
    """Two processes share it, and what one has begun there ends before the other's."""

    def __init__(self, name):
        self.file = open(in_folder(name), "w")  # noqa: SIM115

    def __enter__(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        fcntl.flock(self.file, fcntl.LOCK_UN)


def buckets_to_the_rollout():
    """As RLinf/RLinf#1540: all three that train put a bucket of weights together, and the first one sends it to the
    rollout. The others are in the next bucket, for which they need the first one. The rollout has its device together
    with one of them, and gets no turn there."""
    join_group()
    trainers, senders = dist.new_group([0, 1, 2]), dist.new_group([0, 3])
    device = Device("device1" if RANK in (1, 3) else f"device-of-{RANK}")
    bucket, parts = torch.ones(1024), [torch.empty(1024) for _ in range(3)]
    if RANK == 3:
        dist.broadcast(torch.empty(3), 0, senders)
        while not os.path.exists(in_folder("1")):
            time.sleep(0.02)
    for number in range(4):
        if number == 0 and RANK == 3:
            at(RANK)
        if RANK < 3:
            with device:
                if number == 1 and RANK in (1, 2):
                    at(RANK)
                dist.all_gather(parts, bucket, trainers)
        if number == 0 and RANK == 0:
            dist.broadcast(torch.tensor([4.0, 1024.0, 0.0]), 0, senders)
            at(RANK)
        if RANK in (0, 3):
            with device:
                dist.broadcast(bucket, 0, senders)


class TrainPipeline:
    """The rows of the next batch are on their way to the ranks that have their tables during a step."""

    def __init__(self, batches):
        self.batches, self.next = iter(batches), None
        self.start()

    def start(self):
        ids = next(self.batches, None)
        if ids is None:
            self.next = None
            return
        rows = torch.empty_like(ids)
        self.next = (rows, dist.all_to_all_single(rows, ids, async_op=True))

    def progress(self):
        if self.next is None:
            raise StopIteration
        rows, work = self.next
        work.wait()
        self.start()
        work_for(0.02)
        return float(rows.sum())


def batches_of_each_rank():
    """As meta-pytorch/torchrec#4158: one rank has two batches fewer. It is at the end of the epoch and gathers the
    losses, while the others send the ids of one more batch to all ranks."""
    join_group()
    count = 6 if RANK == 2 else 8
    pipeline = TrainPipeline(torch.full((RANKS * 8,), float(number)) for number in range(count))
    losses = []
    try:
        while True:
            losses.append(pipeline.progress())
            if len(losses) == 5:
                at(RANK)
    except StopIteration:
        gathered = [torch.empty(1) for _ in range(RANKS)]
        dist.all_gather(gathered, torch.tensor([sum(losses)]))


def write_parts(rank):
    """To a storage that takes so much in a second."""
    for number in itertools.count():
        data = os.urandom(1 << 18)
        with open(in_folder(f"__{rank}_{number % 4}.distcp"), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        time.sleep(0.1)


def parts_of_the_first_rank():
    """Healthy, as verl-project/verl#2860: each rank writes its parts of a checkpoint. Those of the first one are there
    more than an hour after the others', who wait for it."""
    join_group()
    model = torch.nn.Linear(512, 512)
    for _ in range(4):
        dist.all_reduce(model.weight.detach().clone())
        work_for(0.02)
    torch.save(model.state_dict(), in_folder(f"__{RANK}.distcp"))
    at(RANK)
    if RANK == 0:
        write_parts(RANK)
    dist.barrier()


PROGRAMS = {
    "checks-what-was-fetched": checks_what_was_fetched,
    "saves-beside-the-steps": saves_beside_the_steps,
    "buckets-to-the-rollout": buckets_to_the_rollout,
    "batches-of-each-rank": batches_of_each_rank,
    "parts-of-the-first-rank": parts_of_the_first_rank,
}

if __name__ == "__main__":
    run(PROGRAMS)
