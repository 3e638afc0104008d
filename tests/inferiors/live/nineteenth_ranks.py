"""Ranks of a job over Gloo that hang, and healthy ones, nineteenth set: `nineteenth_ranks.py NAME FOLDER`, each."""

import hashlib
import os
import re
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 6


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class OutOfMemory(RuntimeError):
    """Of the accelerator."""


class Trainer:
    """It splits a batch into more and smaller parts, until one of them fits into the memory."""

    ROOM = 4096  # numbers in one part

    def __init__(self):
        self.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 64))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.parts = 1

    def forward(self, rows):
        if rows.numel() > self.ROOM:
            raise OutOfMemory(f"{rows.numel()} numbers")
        return self.model(rows).square().mean()

    def train_parts(self, batch):
        *first, last = batch.chunk(self.parts)
        with self.model.no_sync():
            for rows in first:
                self.forward(rows).backward()
        self.forward(last).backward()

    def any_failed(self, failed):
        flags = [torch.empty(1, dtype=torch.int64) for _ in range(RANKS)]
        dist.all_gather(flags, torch.tensor([int(failed)]))
        return any(map(int, flags))

    def train_batch(self, batch):
        while True:
            self.optimizer.zero_grad()
            failed = False
            try:
                self.train_parts(batch)
            except OutOfMemory:
                failed = True
            if not self.any_failed(failed):
                break
            self.parts *= 2
        self.optimizer.step()


def tells_of_its_full_memory():
    """As mosaicml/composer#1690: a batch is split further when the memory of any rank is full. The rank where it was
    too much has not come to the backward pass, and goes on to tell the others, who add up gradients."""
    join_group()
    trainer = Trainer()
    for number in range(STEPS):
        rows = 64 if number == 3 and RANK == 1 else 16
        if number == 3:
            at(RANK)
        work_for(0.02)
        trainer.train_batch(torch.ones(rows, 256))


class SharedFolder:
    """As a client of a network file system sees it: that a file is not there is remembered for some time."""

    REMEMBERED = 60

    def __init__(self):
        self.absent = {}

    def exists(self, name):
        if time.monotonic() < self.absent.get(name, 0):
            return False
        found = os.path.exists(in_folder(name))
        if not found:
            self.absent[name] = time.monotonic() + self.REMEMBERED
        return found


class CheckpointManager:
    def __init__(self):
        self.folder = SharedFolder()

    def save(self, step):
        if RANK == 0:
            torch.save({"step": step}, in_folder("train_state.pt"))
        dist.barrier()

    def load(self):
        state = [{"step": 0}]
        if self.folder.exists("train_state.pt"):
            if RANK == 0:
                state = [torch.load(in_folder("train_state.pt"))]
            dist.broadcast_object_list(state, 0)
        return state[0]["step"]


def train_step(gradient):
    work_for(0.02)
    dist.all_reduce(gradient)


def checkpoint_that_one_does_not_see():
    """As KempnerInstitute/KempnerForge#50: each rank looks for the state of the training for itself. One of them still
    knows of no such file; it begins to train, and the others wait for it to get what the first one has read."""
    join_group()
    manager = CheckpointManager()
    if RANK == 2:
        manager.folder.exists("train_state.pt")
    dist.barrier()
    gradient = torch.ones(128)
    for _ in range(3):
        train_step(gradient)
    manager.save(3)
    at(RANK)
    step = manager.load()
    while step < STEPS:
        train_step(gradient)
        step += 1


class ShardedLayer:
    """Its weights are on all ranks, a part on each. They are gathered for each forward pass."""

    def __init__(self, width=96):
        self.width, self.part = width, torch.ones(width * width // RANKS)

    def forward(self, rows):
        parts = [torch.empty_like(self.part) for _ in range(RANKS)]
        dist.all_gather(parts, self.part)
        return torch.tanh(rows @ torch.cat(parts).view(self.width, self.width))


def packed_texts(lengths, width=96):
    """Rows of as many words as the model takes at once, from texts of all lengths."""
    left = 0
    for length in lengths:
        left += length
        while left >= width:
            left -= width
            yield torch.full((1, width), 0.01)


class Validator:
    def __init__(self, layer, lengths, steps=-1):
        self.layer, self.lengths, self.steps = layer, lengths, steps

    def validate(self):
        losses = []
        for number, rows in enumerate(packed_texts(self.lengths)):
            if number == self.steps:
                break
            losses.append(self.layer.forward(rows).mean())
            if number == 2 and self.steps < 0:
                at(RANK)
            work_for(0.01)
        loss = torch.stack(losses).mean()
        dist.all_reduce(loss)
        return float(loss) / RANKS


def validation_set_at_its_end():
    """As pytorch/torchtitan#1618: the validation goes on until the set is at its end. From texts of other lengths, the
    ranks get other numbers of rows; one has had its last one and adds up the loss, while the others want the weights
    for one more."""
    join_group()
    layer = ShardedLayer()
    lengths = [70, 200, 40] * 4 if RANK != 1 else [30, 110, 50] * 4
    print(Validator(layer, lengths, steps=2).validate(), flush=True)
    print(Validator(layer, lengths).validate(), flush=True)


class Transport:
    """A connection to a peer is made when it is first wanted: each sends its address, and takes that of the other."""

    def __init__(self):
        self.peers, self.sent = {}, []

    def materialize(self, peer):
        mine = torch.tensor([RANK, os.getpid()])
        self.sent.append((mine, dist.isend(mine, peer)))
        address = torch.empty(2, dtype=torch.int64)
        dist.recv(address, peer)
        self.peers[peer] = int(address[1])


def connects_to_one_peer_after_the_other():
    """As meta-pytorch/torchcomms#2566: in a ring, each rank makes the connection to the one before it first, and then
    that to the next one. It waits for the address of the one before, who would send it as the second thing."""
    join_group()
    transport = Transport()
    at(RANK)
    transport.materialize((RANK - 1) % RANKS)
    transport.materialize((RANK + 1) % RANKS)


def prepare_texts(signal_file):
    seen = set()
    with open(in_folder("prepared.bin"), "wb") as file:
        for number in range(50_000):
            text = f"a prompt, number {number}, with an answer of some words. " * 200
            words = re.findall(r"\w+|\S", text)
            seen.update(words)
            file.seek(0)
            file.write(hashlib.sha256(" ".join(words).encode()).digest())
    open(signal_file, "w").close()


def signal_file_of_the_first():
    """Healthy, as mosaicml/llm-foundry#716: the first rank of the node prepares the texts, which takes very long. The
    others look again and again for a file that says that it is done, and come to the barrier after that."""
    join_group()
    signal_file = in_folder(".node_0_local_rank0_data_prep_completed")
    at(RANK)
    if RANK == 0:
        prepare_texts(signal_file)
    else:
        while not os.path.exists(signal_file):
            time.sleep(0.2)
    dist.barrier()


PROGRAMS = {
    "tells-of-its-full-memory": tells_of_its_full_memory,
    "checkpoint-that-one-does-not-see": checkpoint_that_one_does_not_see,
    "validation-set-at-its-end": validation_set_at_its_end,
    "connects-to-one-peer-after-the-other": connects_to_one_peer_after_the_other,
    "signal-file-of-the-first": signal_file_of_the_first,
}

if __name__ == "__main__":
    run(PROGRAMS)
