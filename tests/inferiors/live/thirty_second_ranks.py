"""Ranks of a job over Gloo that hang, and healthy ones, thirty-second set: `thirty_second_ranks.py NAME FOLDER`."""

import gzip
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.inferiors.live.place import LONG, at, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Shard(torch.utils.data.IterableDataset):
    """The part of a rank. The rows of a file are given out by turns, so that one rank may have more of them."""

    ROWS, BATCH = 200, 8

    def __iter__(self):
        rows = self.ROWS + (self.BATCH if RANK == RANKS - 1 else 0)
        for number in range(rows):
            yield torch.full((16,), number / rows)


class Estimator:
    def __init__(self):
        torch.manual_seed(0)
        self.model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Linear(32, 1)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.batches = 0

    def train_batch(self, batch):
        self.optimizer.zero_grad()
        loss = self.model(batch).pow(2).mean()
        self.batches += 1
        if self.batches == Shard.ROWS // Shard.BATCH:
            at(RANK)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def train_epoch(self):
        losses = [self.train_batch(batch) for batch in torch.utils.data.DataLoader(Shard(), Shard.BATCH)]
        return sum(losses) / len(losses)

    def fit(self, epochs):
        for _ in range(epochs):
            gathered = [None] * RANKS
            dist.all_gather_object(gathered, {"rank": RANK, "loss": self.train_epoch()})
            if RANK == 0:
                print(gathered, flush=True)


def has_one_batch_more():
    """As intel/ipex-llm#3626: the parts of the ranks have not the same number of batches."""
    join_group()
    Estimator().fit(2)


class Results:
    """What was logged in an epoch, by name; each is made the mean of all ranks."""

    def __init__(self):
        self.sums, self.counts = {}, {}

    def log(self, values):
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
            self.counts[name] = self.counts.get(name, 0) + 1

    def sync(self, name):
        value = torch.tensor([self.sums[name] / self.counts[name]])
        dist.barrier()
        dist.all_reduce(value)
        return float(value) / RANKS

    def reduce(self):
        return {name: self.sync(name) for name in sorted(self.sums)}


class Segmenter:
    """Some pictures have small objects in them, which have a loss of their own."""

    def __init__(self):
        self.weights = torch.ones(128)

    def training_step(self, number):
        work_for(0.02)
        gradient = self.weights * 0.01
        dist.all_reduce(gradient)
        self.weights -= gradient
        losses = {"loss": float(self.weights.sum()), "loss_mask": float(self.weights.mean())}
        if RANK == 1 and number == 17:
            losses["loss_small"] = float(self.weights.min())
        return losses


def save_best(value):
    """All ranks write where the first one says."""
    name = [f"best-{value:.3f}.ckpt" if RANK == 0 else None]
    dist.broadcast_object_list(name, src=0)
    return in_folder(name[0])


def logs_one_thing_more():
    """As Lightning-AI/pytorch-lightning#19106: what is logged depends on what is in the pictures."""
    join_group()
    model = Segmenter()
    for epoch in range(4):
        results = Results()
        for number in range(epoch * 10, epoch * 10 + 10):
            results.log(model.training_step(number))
        if epoch == 1:
            at(RANK)
        save_best(results.reduce()["loss"])


LOCAL_RANKS = 2


def counts_ranks_by_node():
    """As pytorch/pytorch#23074: a node starts two processes and tells each its number there."""
    torch.set_num_threads(1)
    local_rank = RANK % LOCAL_RANKS
    at(RANK)
    dist.init_process_group(
        "gloo", init_method=f"file://{in_folder('rendezvous')}", rank=local_rank, world_size=RANKS, timeout=LONG
    )
    dist.barrier()


def starts_from_a_notebook():
    """As pytorch/pytorch#49846: the cell of a notebook that has the call for the first of two processes."""
    torch.set_num_threads(1)
    at("main")
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=2, timeout=LONG)
    dist.barrier()


def write_artifacts(path):
    """A state of many layers, compressed; it goes to a volume that is not fast."""
    with gzip.open(path, "wb", compresslevel=9) as file:
        for layer in range(2000):
            torch.manual_seed(layer)
            file.write(torch.randn(1 << 18).numpy().tobytes())
            file.flush()
            time.sleep(0.4)


def saves_while_others_go_on():
    """Healthy, as instructlab/training#566: only the first rank saves, and there is no barrier after that."""
    join_group()
    weights = torch.ones(256)
    for number in range(40):
        work_for(0.02)
        gradient = weights * 0.01
        if number == 12:
            at(RANK)
            if RANK == 0:
                write_artifacts(in_folder("artifacts.gz"))
        dist.all_reduce(gradient)
        weights -= gradient


class GraphRunner:
    """Captures what it does for each size of a batch, the largest first."""

    SIZES = tuple(range(256, 0, -4))

    def __init__(self):
        torch.manual_seed(1)
        self.layers = [torch.randn(256, 256) for _ in range(8)]
        self.graphs = {}

    def compile(self, size):
        """As long as a compiler takes for the kernels of a size; one rank has slower storage for what it has made."""
        until = time.monotonic() + 4 + RANK
        while time.monotonic() < until:
            hidden = torch.randn(size, 256)
            for layer in self.layers:
                hidden = torch.tanh(hidden @ layer)
        return hidden

    def capture(self):
        for size in self.SIZES:
            output = self.compile(size).mean(0)
            dist.all_reduce(output)
            self.graphs[size] = output


def captures_each_size():
    """Healthy, as sgl-project/sglang#6830: the start of a server takes very long."""
    join_group()
    runner = GraphRunner()
    at(RANK)
    runner.capture()


PROGRAMS = {
    "has-one-batch-more": has_one_batch_more,
    "logs-one-thing-more": logs_one_thing_more,
    "counts-ranks-by-node": counts_ranks_by_node,
    "starts-from-a-notebook": starts_from_a_notebook,
    "saves-while-others-go-on": saves_while_others_go_on,
    "captures-each-size": captures_each_size,
}

if __name__ == "__main__":
    run(PROGRAMS)
