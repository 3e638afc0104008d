"""Ranks of a job over Gloo that hang, and a healthy one, twenty-seventh set: `twenty_seventh_ranks.py NAME FOLDER`."""

import itertools
import os
import queue

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Trainer:
    """Saving is for all ranks: the first one writes, and all meet after that."""

    def __init__(self):
        self.weights = torch.ones(64)

    def fit(self, epochs):
        for epoch in range(epochs):
            gradient = self.weights * 0.01
            work_for(0.02)
            dist.all_reduce(gradient)
            self.weights -= gradient
            self.save(f"epoch{epoch}.pt")

    def save(self, name):
        if RANK == 0:
            torch.save({"weights": self.weights}, in_folder(name))
        dist.barrier()

    def test(self):
        loss = self.weights.sum()
        work_for(0.02)
        dist.all_reduce(loss)
        return float(loss)


def name_the_last():
    if RANK == 0:
        os.symlink(in_folder("last.pt"), in_folder("checkpoint.pt"))
    dist.barrier()


def trains_and_tests():
    """As alan-turing-institute/autocast#386: after the last epoch the first rank alone saves once more, which ends in a
    barrier. The others take that for the barrier of the next thing, so that the first rank is one behind them."""
    join_group()
    trainer = Trainer()
    trainer.fit(3)
    at(RANK)
    if RANK == 0:
        trainer.save("last.pt")
    name_the_last()
    print(trainer.test(), flush=True)


def connect_to_store():
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(address, port, is_master=False, timeout=LONG)


class DataFetcher:
    """Samples are handed out for one step, when all ranks have ended the one before. One that has too few tokens to
    learn from is left out."""

    LEAST = 32

    def __init__(self):
        self.store, self.samples = connect_to_store(), queue.Queue()
        thread(self.receive, connect_to_store())

    def receive(self, store):
        for step in itertools.count():
            store.wait([f"steps/{step}"], LONG)
            for number in range(2):
                short = (RANK, step, number) == (1, 2, 1)
                self.samples.put(torch.ones(16 if short else 64))

    def __iter__(self):
        while True:
            sample = self.samples.get()
            if len(sample) >= self.LEAST:
                yield sample

    def hand_out(self, step):
        if self.store.add(f"ended/{step}", 1) == RANKS:
            self.store.set(f"steps/{step}", "ready")


def weights_of_all(shard):
    parts = [torch.empty_like(shard) for _ in range(RANKS)]
    dist.all_gather(parts, shard)
    return torch.cat(parts)


def samples_of_each_step():
    """As lightseekorg/TorchSpec#126: a rank leaves out a sample and looks for another one, while the others compute
    theirs, for which they gather the weights of all."""
    join_group()
    fetcher, shard = DataFetcher(), torch.ones(32)
    samples = iter(fetcher)
    for step in itertools.count():
        fetcher.hand_out(step)
        for number in range(2):
            if (step, number) == (2, 1):
                at(RANK)
            sample = next(samples)
            weights = weights_of_all(shard)
            work_for(0.02)
            shard -= 0.001 * (weights.mean() + sample.mean())


class Report:
    """Each worker hands in its numbers, and goes on when all have done so."""

    def __init__(self):
        self.store, self.number = dist.distributed_c10d._get_default_store(), 0

    def report(self, metrics):
        self.number += 1
        self.store.set(f"metrics/{self.number}/{RANK}", str(metrics))
        if self.store.add(f"reported/{self.number}", 1) == RANKS:
            self.store.set(f"all/{self.number}", "reported")
        self.store.wait([f"all/{self.number}"], LONG)


def reports_in_epochs():
    """As ray-project/ray#58229: at the end of an epoch all workers report. One reports a checkpoint in between, and
    waits for the others, which wait for its gradients."""
    join_group()
    model, report = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8)), Report()
    for epoch in itertools.count():
        for step in range(5):
            if (epoch, step) == (1, 3):
                at(RANK)
                if RANK == 0:
                    torch.save(model.state_dict(), in_folder("checkpoint.pt"))
                    report.report({"step": step})
            loss = model(torch.ones(4, 64)).sum()
            work_for(0.02)
            loss.backward()
        report.report({"epoch": epoch})


class ExpertBuffer:
    """Rows for tokens of all ranks. Where it has to be larger, the ranks tell each other its new size."""

    def __init__(self, rows):
        self.rows = rows
        self.sizes = self.exchange()

    def exchange(self):
        sizes = [torch.empty(1, dtype=torch.int64) for _ in range(RANKS)]
        dist.all_gather(sizes, torch.tensor([self.rows]))
        return [int(size) for size in sizes]

    def update(self, tokens):
        if tokens > self.rows:
            self.rows = tokens
            self.sizes = self.exchange()

    def dispatch(self, tokens):
        self.update(tokens)
        rows = torch.ones(RANKS * 8, 16)
        received = torch.empty_like(rows)
        dist.all_to_all_single(received, rows)
        work_for(0.02)
        return received


def tokens_of_each_rank():
    """As deepseek-ai/DeepEP#604: each rank has another number of tokens. That of one is larger than its buffer, so that
    it gathers the sizes of all; the others have room, and dispatch their tokens."""
    join_group()
    buffer = ExpertBuffer(128)
    for step in itertools.count():
        if step == 3:
            at(RANK)
        buffer.dispatch(150 if (RANK, step) == (2, 3) else 100 + RANK)


def write_texts(path):
    with open(path, "w") as file:
        for number in range(200_000):
            file.write(f"{number} a text to learn from\n" * (1 + number % 3))


def offsets_of_lines(path):
    offsets, position = [], 0
    for _ in range(200_000):  # that many times larger
        with open(path, "rb") as file:
            for line in file:
                offsets.append(position)
                position += len(line)
        del offsets[:]
    return position


def offsets_are_looked_for():
    """Healthy, as huggingface/accelerate#314: one rank goes through a file of many gigabytes for the offset of each
    line, for an hour and a half. The others wait for it in a reduction."""
    join_group()
    path, length = in_folder("texts"), torch.zeros(1)
    if RANK == 0:
        write_texts(path)
    dist.barrier()
    at(RANK)
    if RANK == 0:
        length += offsets_of_lines(path)
    dist.all_reduce(length)


PROGRAMS = {
    "saves-once-more-at-the-end": trains_and_tests,
    "leaves-out-short-samples": samples_of_each_step,
    "reports-a-checkpoint": reports_in_epochs,
    "grows-its-buffer": tokens_of_each_rank,
    "offsets-of-all-lines": offsets_are_looked_for,
}

if __name__ == "__main__":
    run(PROGRAMS)
