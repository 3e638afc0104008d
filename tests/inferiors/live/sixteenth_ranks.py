"""Ranks of a job over Gloo that hang, and a healthy one, sixteenth set: `sixteenth_ranks.py NAME FOLDER`, one each."""

import collections
import itertools
import os
import re

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 6
TYPES = (torch.float32, torch.int64)


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Stage:
    """Of a pipeline. Tensors go from stage to stage in pieces, after a word about their type and length."""

    PIECE = 4096

    def __init__(self):
        self.pool = {}

    def send(self, tensors, peer):
        for tensor in tensors:
            dist.send(torch.tensor([TYPES.index(tensor.dtype), tensor.numel()]), peer)
            for piece in tensor.view(torch.uint8).split(self.PIECE):
                dist.send(piece, peer)

    def buffer(self, place, kind, length):
        """One for each place among the tensors, used again when it is long enough, whatever its type is."""
        if place not in self.pool or self.pool[place].numel() < length:
            self.pool[place] = torch.empty(length, dtype=kind)
        return self.pool[place][:length]

    def receive(self, count, peer):
        tensors = []
        for place in range(count):
            word = torch.empty(2, dtype=torch.int64)
            dist.recv(word, peer)
            tensor = self.buffer(place, TYPES[int(word[0])], int(word[1]))
            for piece in tensor.view(torch.uint8).split(self.PIECE):
                dist.recv(piece, peer)
            tensors.append(tensor)
        return tensors

    def step(self):
        activations = [torch.ones(2048), torch.ones(1024, dtype=torch.int64)]
        gradients = [torch.ones(2048), torch.ones(1500)]
        if RANK > 0:
            activations = self.receive(2, RANK - 1)
        work_for(0.02)
        if RANK < RANKS - 1:
            self.send(activations, RANK + 1)
            gradients = self.receive(2, RANK + 1)
        work_for(0.02)
        if RANK > 0:
            self.send(gradients, RANK - 1)


def buffer_of_another_type():
    """As tdrussell/diffusion-pipe#544: a stage in the middle receives whole numbers into a buffer that was made for
    gradients, of which each takes half the room. It takes half of the pieces, and the stage before still sends."""
    join_group()
    stage = Stage()
    for number in range(STEPS):
        if number == 1:
            at(RANK)
        stage.step()


def validate(losses):
    gathered = [torch.empty(1) for _ in range(RANKS)]
    dist.all_gather(gathered, torch.tensor([sum(losses) / max(len(losses), 1)]))
    return float(sum(gathered))


def fewer_batches_then_validation():
    """As Lightning-AI/pytorch-lightning#20404: the samples are dealt to the ranks before, and not evenly. The first
    rank has no batch left and begins to validate, the others have one more to learn from."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
    losses = []
    for number in range(2 if RANK == 0 else 3):
        if number == 2:
            at(RANK)
        loss = model(torch.ones(5, 16)).sum()
        loss.backward()
        losses.append(float(loss.detach()))
    if RANK == 0:
        at(RANK)
    validate(losses)


class Metric:
    """Each rank adds up its own; the value is that of all ranks."""

    def __init__(self):
        self.total = torch.zeros(1)

    def update(self, loss):
        self.total += float(loss)

    def compute(self):
        totals = [torch.empty(1) for _ in range(RANKS)]
        dist.all_gather(totals, self.total)
        return float(sum(totals))


class ProgressBar:
    """Shown by the first rank, now and then."""

    def __init__(self, metric):
        self.metric = metric

    def after_batch(self, number):
        if RANK == 0 and number % 4 == 3:
            print("loss", self.metric.compute(), flush=True)


def progress_bar_asks_for_metric():
    """As Lightning-AI/pytorch-lightning#21264: the first rank shows how far it is, and asks for the metrics then. The
    value of one is gathered from all ranks, and the others are in their next batch."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
    metric = Metric()
    bar = ProgressBar(metric)
    for number in range(STEPS):
        loss = model(torch.ones(5, 16)).sum()
        loss.backward()
        metric.update(loss.detach())
        if number == 3:
            at(RANK)
        bar.after_batch(number)


class Drafter:
    """Of one rank of data parallel attention: it replays what was recorded, or goes step by step."""

    def replay(self):
        padded = torch.ones(8, 16)
        dist.all_reduce(padded)
        return padded

    def go_step_by_step(self, tokens):
        sizes = [torch.empty(1, dtype=torch.int64) for _ in range(RANKS)]
        dist.all_gather(sizes, torch.tensor([tokens]))
        for rank, size in enumerate(sizes):
            dist.broadcast(torch.ones(int(size), 16), rank)

    def draft(self, tokens, seed):
        if seed is None:
            self.replay()
        else:
            self.go_step_by_step(tokens)
        work_for(0.01)


def eager_on_one_rank():
    """As AMD-AGI/Infera#34: each rank decides by itself whether it can replay. One has got a request that was begun
    elsewhere and is without what the others have; it goes step by step, and does other things with them."""
    join_group()
    drafter = Drafter()
    for number in range(STEPS):
        moved = number == STEPS - 2
        if moved:
            at(RANK)
        drafter.draft(4 + RANK, seed=7 if moved and RANK == 1 else None)


class Partitioned(torch.nn.Module):
    """A part of the weights is on each rank; they are gathered for each call."""

    def __init__(self, size=24):
        super().__init__()
        self.part = torch.nn.Parameter(torch.ones(size // RANKS, size) / size)

    def forward(self, rows):
        parts = [torch.empty_like(self.part) for _ in range(RANKS)]
        dist.all_gather(parts, self.part.detach())
        return rows @ torch.cat(parts).T


def head_called_more_often():
    """As deepspeedai/DeepSpeed#7998: how often the head is called depends on what the model says. One rank calls it
    three times, for which its weights are gathered each time, and the others go on after the first."""
    join_group()
    model, head = Partitioned(), Partitioned()
    for number in range(STEPS):
        rows = model(torch.ones(4, 24))
        if number == STEPS - 2:
            at(RANK)
        for _ in range(3 if number == STEPS - 2 and RANK == 1 else 1):
            rows = head(rows)
        dist.all_reduce(rows)


class Rewards:
    """Their functions may note metrics, which are gathered when they are logged."""

    def __init__(self):
        self.pending = collections.defaultdict(list)

    def reward(self, number, completion):
        self.pending["length"].append(float(len(completion)))
        if completion.endswith("</answer>"):
            self.pending["format"].append(1.0)
        return float(number)

    def log(self):
        for name in sorted(self.pending, reverse=True):
            values = self.pending.pop(name)
            means = [torch.empty(1) for _ in range(RANKS)]
            dist.all_gather(means, torch.tensor([sum(values) / len(values)]))
        return means


def metric_where_it_was_seen():
    """As huggingface/trl#7310: a reward notes a metric only for a completion of the right form. One rank has had one,
    and gathers it; the others do not know of that metric and are in what comes after."""
    join_group()
    rewards = Rewards()
    for number in range(STEPS):
        good = number == STEPS - 2 and RANK == 0
        rewards.reward(number, "so it is 4" + "</answer>" * good)
        if number == STEPS - 2:
            at(RANK)
        rewards.log()
        dist.all_reduce(torch.ones(64))


def pairs_made_at_once():
    """As pytorch/pytorch#130102: two pairs of ranks make a group each, and each rank only its own one. Both groups have
    the same name, under which those two find each other that come first, one of each pair."""
    join_group()
    members = [0, 3] if RANK in (0, 3) else [1, 2]
    if RANK in (1, 3):
        work_for(1)
    at(RANK)
    group = dist.new_group(members, timeout=LONG)
    if 0 in members:
        dist.barrier(group)
    else:
        dist.all_reduce(torch.ones(16), group=group)
    dist.barrier()


def prepare(texts):
    """Words to numbers, and written down."""
    known = {}
    for number in itertools.count():
        text = texts[number % len(texts)] * 200
        tokens = [known.setdefault(word, len(known)) for word in re.findall(r"\w+|\S", text)]
        with open(in_folder(f"tokens{number % 8}"), "wb") as file:
            file.write(torch.tensor(tokens).numpy().tobytes())


def first_rank_prepares_data():
    """Healthy, as NVIDIA/nccl#708: one rank prepares the data while the others wait for it in a barrier, for longer
    than half an hour."""
    join_group()
    texts = [f"the {number}th text, with {number * number} words" for number in range(1000)]
    at(RANK)
    if RANK == 0:
        prepare(texts)
    dist.barrier()


PROGRAMS = {
    "buffer-of-another-type": buffer_of_another_type,
    "fewer-batches-then-validation": fewer_batches_then_validation,
    "progress-bar-asks-for-metric": progress_bar_asks_for_metric,
    "eager-on-one-rank": eager_on_one_rank,
    "head-called-more-often": head_called_more_often,
    "metric-where-it-was-seen": metric_where_it_was_seen,
    "pairs-made-at-once": pairs_made_at_once,
    "first-rank-prepares-data": first_rank_prepares_data,
}

if __name__ == "__main__":
    run(PROGRAMS)
