"""Ranks of a job over Gloo that hang, and a healthy one, twenty-eighth set: `twenty_eighth_ranks.py NAME FOLDER`."""

import itertools
import json
import os
import queue

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class SkipController:
    """Steps with gradients that are far too large are left out. The norm is that of this rank."""

    def __init__(self, most=100.0):
        self.most = most

    def should_skip(self, gradient):
        return float(gradient.norm()) > self.most


class ShardedOptimizer:
    """Each rank has a part of the weights. The gradients of all are reduced, and each rank gets its part of them."""

    def __init__(self, size=48):
        self.shard = torch.ones(size // RANKS)

    def weights(self):
        parts = [torch.empty_like(self.shard) for _ in range(RANKS)]
        dist.all_gather(parts, self.shard)
        return torch.cat(parts)

    def step(self, gradient):
        mine = torch.empty_like(self.shard)
        dist.reduce_scatter_tensor(mine, gradient)
        self.shard -= 0.01 * mine


def steps_with_a_controller():
    """As dylanyunlon/Neuron_SP#154: whether a step is left out is for each rank to say. One of them does, and is at the
    next step; the others are in that of the optimizer."""
    join_group()
    optimizer, controller = ShardedOptimizer(), SkipController()
    for step in itertools.count():
        weights = optimizer.weights()
        work_for(0.02)
        gradient = weights * (1e6 if (RANK, step) == (1, 4) else 0.01)
        if step == 4:
            at(RANK)
        if not controller.should_skip(gradient):
            optimizer.step(gradient)


class ShardedTables:
    """Each rank has some of the rows of a table; a batch is looked up by asking all ranks for theirs."""

    def look_up(self, batch):
        asked = torch.empty_like(batch)
        dist.all_to_all_single(asked, batch)
        found = torch.empty_like(batch)
        dist.all_to_all_single(found, asked * 0.5)
        return found


def validate(tables, count):
    losses = []
    for _ in range(count):
        losses.append(tables.look_up(torch.ones(4 * RANKS)).sum())
        work_for(0.02)
    total = torch.stack(losses).sum()
    dist.all_reduce(total)
    return float(total)


def validation_data_of_each():
    """As meta-pytorch/torchrec#1014: a rank has one batch less to validate. The others ask all for the rows of theirs,
    and it sums up the loss."""
    join_group()
    tables = ShardedTables()
    for epoch in range(3):
        if epoch == 2:
            at(RANK)
        print(validate(tables, 4 if (RANK, epoch) == (1, 2) else 5), flush=True)


class EngineCore:
    """One of several engines that have a part of the requests each. For a batch they agree on how large it may be."""

    def __init__(self, requests):
        self.inputs, self.running = queue.Queue(), list(requests)

    def coordinate(self, tokens):
        sizes = torch.zeros(RANKS, dtype=torch.int64)
        sizes[RANK] = tokens
        dist.all_reduce(sizes)
        return int(sizes.max())

    def execute(self, tokens):
        self.coordinate(tokens)
        work_for(0.02)

    def step(self):
        if self.running:
            self.execute(len(self.running))
            self.running = [left - 1 for left in self.running if left > 1]
        else:
            self.execute(1)


def engine_without_requests():
    """As vllm-project/vllm#28224: towards the end one engine has no requests left, and executes batches that are none.
    For a model without experts the others do not wait for it, so that it is one batch further than they are: they have
    ended, and it agrees about a batch with them."""
    join_group()
    engine = EngineCore([3, 7] if RANK != 2 else [2])
    for _ in range(7):
        engine.step()
    at(RANK)
    if RANK == 2:
        engine.step()
    engine.running.append(engine.inputs.get())


class Verifier:
    """The model looks at all tokens of a draft at once. Those that it would have chosen itself are accepted."""

    def __init__(self):
        self.weights = torch.ones(8)

    def forward(self, tokens):
        logits = torch.zeros(len(tokens), 8)
        logits[torch.arange(len(tokens)), torch.tensor(tokens)] = 1.0
        work_for(0.01)
        dist.all_reduce(logits)
        return logits / RANKS

    def accepted(self, tokens, near):
        logits = self.forward(tokens)
        if near:  # two tokens are as likely; a sum in another order makes one of them more so
            logits[-1, (tokens[-1] + 1) % 8] = logits[-1, tokens[-1]] + (-1e-7 if RANK == 1 else 1e-7)
        chosen = torch.argmax(logits, dim=-1).tolist()
        count = 0
        while count < len(tokens) and chosen[count] == tokens[count]:
            count += 1
        return count


def next_request():
    size = torch.tensor([12 if RANK == 0 else 0])
    dist.broadcast(size, src=0)
    return int(size)


def draft_of_each_rank():
    """As sgl-project/sglang#31478: each rank says by itself which tokens of a draft are accepted. Where two of them are
    as likely, one rank accepts one more than the others do; it is done with the request, and waits for the next one."""
    join_group()
    verifier = Verifier()
    for number in itertools.count():
        left = next_request()
        while left > 0:
            near = number == 2 and left == 4
            if near:
                at(RANK)
            left -= max(1, verifier.accepted([1, 2, 3, 4], near))


def map_samples():
    with open(in_folder("mapped.json"), "w") as file:
        for number in range(1_000_000):
            text = " ".join(str(number * factor % 9973) for factor in range(200))
            words = sorted(set(text.split()))
            encoded = [words.index(word) for word in text.split()]
            json.dump({"number": number, "first": encoded[:4], "length": len(encoded)}, file)
            file.write("\n")


def mapped_by_the_first():
    """Healthy, as huggingface/datasets#2298: the first rank maps all samples, and the others wait in a barrier, to take
    what it has made from the cache."""
    join_group()
    at(RANK)
    if RANK > 0:
        dist.barrier()
    else:
        map_samples()
        dist.barrier()


PROGRAMS = {
    "skips-a-step": steps_with_a_controller,
    "validates-what-it-has": validation_data_of_each,
    "runs-dummy-batches": engine_without_requests,
    "verifies-its-drafts": draft_of_each_rank,
    "maps-on-the-first": mapped_by_the_first,
}

if __name__ == "__main__":
    run(PROGRAMS)
