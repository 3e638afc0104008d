"""Ranks of a job over Gloo that hang, and a healthy one, twenty-ninth set: `twenty_ninth_ranks.py NAME FOLDER`."""

import collections
import os
import random
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class PreferenceTrainer:
    """Each rank has pairs of answers, some with images. Their tokens must be as many as their images have."""

    def __init__(self):
        self.weights, self.log = torch.ones(64), collections.defaultdict(list)

    def forward(self, batch):
        work_for(0.02)
        if batch["image_tokens"] != batch["features"]:
            raise ValueError(f"{batch['image_tokens']} image tokens, and features for {batch['features']}")
        return self.weights * 0.01 * len(batch)

    def compute_loss(self, batch):
        rows = self.forward(batch)
        for name in ("rewards", "margins"):
            parts = [torch.empty(8) for _ in range(RANKS)]
            dist.all_gather(parts, rows[:8])
            self.log[name].append(float(torch.cat(parts).mean()))
        return rows.sum()

    def step(self, batch):
        error = None
        try:
            loss = self.compute_loss(batch)
        except ValueError as caught:
            loss, error = torch.zeros(()), caught
        failed = torch.tensor([float(error is not None)])
        dist.all_reduce(failed, op=dist.ReduceOp.MAX)
        if failed:
            raise RuntimeError("the forward pass has failed") from error
        self.weights -= loss * 1e-6


def failure_agreed_on_by_all():
    """As huggingface/trl#6862: all ranks agree after each forward pass on whether it has failed somewhere, so that all
    of them stop. Before that the metrics are gathered, and who has failed does not come there."""
    join_group()
    trainer = PreferenceTrainer()
    for number in range(6):
        batch = {"image_tokens": 16, "features": 15 if (RANK, number) == (1, 4) else 16}
        if number == 4:
            at(RANK)
        trainer.step(batch)


class TypedGradients:
    """Gradients are flattened and reduced together, those of one type at a time. Each type has its group."""

    TYPES = (torch.float32, torch.float16)

    def __init__(self):
        self.groups = {kind: dist.new_group() for kind in self.TYPES}

    def buckets(self, gradients):
        made = collections.defaultdict(list)
        for gradient in gradients:
            made[gradient.dtype].append(gradient.flatten())
        kinds = list(made)
        # the order in which a dictionary was gone through was that of the hashes, which each process has of its own
        random.Random(RANK % 2).shuffle(kinds)
        return [(kind, torch.cat(made[kind])) for kind in kinds]

    def reduce(self, gradients):
        for kind, flat in self.buckets(gradients):
            dist.all_reduce(flat, group=self.groups[kind])


def types_in_any_order():
    """As NVIDIA/apex#18: the types of the gradients are the keys of a dictionary, and each type is reduced by itself.
    Once there is more than one of them, a rank begins with another one."""
    join_group()
    reducer = TypedGradients()
    for number in range(5):
        work_for(0.02)
        gradients = [torch.ones(32, 8), torch.ones(32)]
        if number >= 3:
            gradients.append(torch.ones(64, dtype=torch.float16))
        if number == 3:
            at(RANK)
        reducer.reduce(gradients)


class Checkpointer:
    """Saves when so many minutes have gone by since it has done so."""

    MINUTES = 15.0

    def __init__(self):
        self.since = 0.0

    def wants(self, clock):
        return clock - self.since >= self.MINUTES

    def save(self, state, clock):
        self.since = clock
        if RANK == 0:
            torch.save(state, in_folder("checkpoint.pt"))
        dist.barrier()


def saved_after_some_minutes():
    """As speechbrain/speechbrain#2192: each rank saves when its clock says that the interval has gone by. The clock of
    one of them is a little ahead of those of the others, which are in the backward pass of the next batch."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 16))
    checkpointer, clock = Checkpointer(), 0.3 if RANK == 2 else 0.0
    for number in range(12):
        work_for(0.02)
        if number == 8:
            at(RANK)
        model(torch.ones(4, 32)).sum().backward()
        clock += 1.65
        if checkpointer.wants(clock):
            checkpointer.save(model.module.state_dict(), clock)


def write_staged():
    path = in_folder("staged.pt")
    torch.save({f"layer{number}": torch.ones(64, 1024) for number in range(16)}, path)
    return path


def copy_to_slow_place(path):
    """Over a mount for which each piece is a request."""
    size, piece = os.path.getsize(path), 1 << 16
    with open(path, "rb") as source, open(in_folder("destination.pt"), "wb") as target:
        for number in range(10_000_000):
            source.seek(number * piece % (size - piece))
            target.seek(number % 64 * piece)
            target.write(source.read(piece))
            target.flush()
            os.fsync(target.fileno())
            time.sleep(0.01)


def any_rank_failed(failed, group):
    flag = torch.tensor([int(failed)])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=group)
    return bool(flag)


def staged_checkpoint_is_copied():
    """Healthy, as ByteDance-Seed/VeOmni#1176: a checkpoint is written to a disk of the node, and copied from there to a
    much slower place by the first rank. The others wait until they know that this has not failed."""
    join_group()
    group = dist.new_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    for _ in range(4):
        model(torch.ones(4, 64)).sum().backward()
    path = write_staged() if RANK == 0 else ""
    any_rank_failed(False, group)
    at(RANK)
    failed = False
    if RANK == 0:
        try:
            copy_to_slow_place(path)
        except OSError:
            failed = True
    any_rank_failed(failed, group)


PROGRAMS = {
    "agrees-on-failures": failure_agreed_on_by_all,
    "reduces-by-type": types_in_any_order,
    "saves-by-the-clock": saved_after_some_minutes,
    "copies-its-staged-checkpoint": staged_checkpoint_is_copied,
}

if __name__ == "__main__":
    run(PROGRAMS)
