"""Ranks of a job over Gloo that hang, and healthy ones, twenty-fourth set: `twenty_fourth_ranks.py NAME FOLDER`."""

import itertools
import multiprocessing
import os
import random
from multiprocessing.connection import Client, Listener

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from tests.inferiors.live.place import LONG, at, in_folder, run, wait_for_role, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class GenerationWorker:
    """Of the engine that generates. It is in the same world as the trainers, and works for who has its socket."""

    def __init__(self):
        self.address = in_folder("generation.socket")

    def serve(self):
        with Listener(self.address, "AF_UNIX") as listener:
            open(in_folder("listening"), "w").close()
            connection = listener.accept()
        while True:
            prompt = connection.recv()
            work_for(0.05)
            connection.send(prompt + " and so on")
            at(RANK)


class FullyParallelSave:
    """Each rank of a data parallel group writes a part. What each has is told to all of them before."""

    def __init__(self, group):
        self.group = group

    def apply_saving_parallelization(self, names):
        told = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(told, names, group=self.group)
        return sorted(name for names in told for name in names)[RANK :: len(told)]

    def save(self, state):
        mine = self.apply_saving_parallelization(list(state))
        torch.save({name: state[name] for name in mine if name in state}, in_folder(f"part{RANK}.pt"))


def saves_with_inference_workers():
    """As NVIDIA-NeMo/RL#2226: the groups of the trainers come from the whole world, which has the inference worker too.
    A checkpoint is converted by the trainers alone, and what each has is gathered in such a group."""
    join_group()
    data_parallel = dist.new_group(list(range(RANKS)), timeout=LONG)
    if RANK == RANKS - 1:
        GenerationWorker().serve()
    if RANK == 0:
        wait_for_role("listening")
        generation = Client(GenerationWorker().address, "AF_UNIX")
        generation.send("the first prompt")
        print(generation.recv(), flush=True)
    state = {f"layer{RANK}.{number}": torch.ones(8) for number in range(4)}
    at(RANK)
    FullyParallelSave(data_parallel).save(state)


class Metrics:
    """Of a test; what each rank has seen is gathered at its end."""

    def __init__(self):
        self.errors = torch.zeros(4)

    def compute(self):
        told = [torch.empty_like(self.errors) for _ in range(RANKS)]
        dist.all_gather(told, self.errors)
        return float(torch.cat(told).mean())


class Fit:
    """Epochs until the loss has not become less for some of them, which is looked at by the first rank."""

    PATIENCE, LOWEST = 3, 2

    def __init__(self):
        self.weights, self.lowest, self.waited = torch.ones(16), float("inf"), 0

    def take_step(self):
        gradient = self.weights * 0.01
        work_for(0.01)
        dist.all_reduce(gradient)
        self.weights -= gradient / RANKS

    def valid_loss(self, epoch):
        loss = torch.tensor([1.0 / (1 + min(epoch, self.LOWEST))])
        dist.all_reduce(loss)
        return float(loss) / RANKS

    def is_over(self, loss):
        if loss < self.lowest:
            self.lowest, self.waited = loss, 0
            return False
        self.waited += 1
        return self.waited >= self.PATIENCE

    def train(self):
        for epoch in range(100):
            for _ in range(3):
                self.take_step()
            loss = self.valid_loss(epoch)
            if epoch == self.LOWEST + self.PATIENCE:
                at(RANK)
            if RANK == 0 and self.is_over(loss):
                break


def patience_on_the_first():
    """As ACEsuit/mace#1216: the first rank alone looks whether the loss has become less, and leaves the loop. It
    gathers the metrics of the test, and the others are in the next epoch."""
    join_group()
    fit = Fit()
    fit.train()
    print(Metrics().compute(), flush=True)


class Detector(torch.nn.Module):
    """Boxes are computed only for pictures that have some."""

    def __init__(self):
        super().__init__()
        self.body, self.boxes = torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 4, bias=False)

    def forward(self, pictures, has_boxes):
        seen = self.body(pictures)
        loss = seen.square().mean()
        return loss + self.boxes(seen).square().mean() if has_boxes else loss


def average_gradients(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= RANKS


def gather_losses(loss):
    told = [torch.empty(1) for _ in range(RANKS)]
    dist.all_gather(told, loss.detach().reshape(1))
    return torch.cat(told).mean()


def parameter_without_gradient():
    """As pytorch/pytorch#16304: a parameter gets no gradient in a step of one rank, which leaves out its reduction. It
    gathers the losses, and the others reduce what it left out."""
    join_group()
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in itertools.count():
        optimizer.zero_grad(set_to_none=True)
        loss = model(torch.ones(2, 8), has_boxes=step != 4 or RANK != 1)
        loss.backward()
        if step == 4:
            at(RANK)
        average_gradients(model)
        optimizer.step()
        gather_losses(loss)


class Runner:
    """Of one rank of a tensor parallel model. Tasks come to each rank by themselves, and are agreed upon."""

    def __init__(self):
        self.queue, self.maybe_queue = [], []

    def arrives(self, *tasks):
        self.maybe_queue += tasks

    def agree_on_tasks(self):
        told = [None] * RANKS
        dist.all_gather_object(told, self.maybe_queue)
        agreed = sorted(set.intersection(*map(set, told)))
        self.queue += [task for task in self.maybe_queue if task in agreed]
        self.maybe_queue = [task for task in self.maybe_queue if task not in agreed]

    def generate(self):
        for _ in range(4):
            work_for(0.01)
            dist.all_reduce(torch.ones(32))

    def embed(self):
        work_for(0.01)
        parts = [torch.empty(32) for _ in range(RANKS)]
        dist.all_gather(parts, torch.ones(32))

    def work(self):
        while self.queue:
            task = self.queue.pop(0)
            (self.generate if task.startswith("text") else self.embed)()


def agrees_on_tasks():
    """As exo-explore/exo#2048: two requests come at the same time, and in another order to each rank. That both have
    them is agreed upon, and each rank takes them in its own order."""
    join_group()
    runner = Runner()
    for number in range(3):
        tasks = [f"text-{number}", f"embedding-{number}"]
        runner.arrives(*(reversed(tasks) if number == 2 and RANK == 1 else tasks))
        runner.agree_on_tasks()
        if number == 2:
            at(RANK)
        runner.work()


def tokenize_text(number):
    """Pairs of letters become a token, the most frequent ones first, as long as there are some."""
    if not os.path.exists(in_folder("worker")):
        at("worker")
    letters = random.Random(number)
    tokens = [letters.choice("abcdefgh") for _ in range(20000)]
    for _ in range(12):
        counts = {}
        for pair in zip(tokens, tokens[1:]):
            counts[pair] = counts.get(pair, 0) + 1
        best, merged = max(counts, key=counts.get), []
        for token in tokens:
            if merged and (merged[-1], token) == best:
                merged[-1] += token
            else:
                merged.append(token)
        tokens = merged
    return len(tokens)


def map_dataset():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for number, count in enumerate(pool.imap_unordered(tokenize_text, range(10**6))):
            if number % 50 == 0:
                print(f"tokenizing prompts: {number}, {count} tokens", flush=True)


def tokenizes_long_texts():
    """Healthy, as axolotl-ai-cloud/axolotl#2684: the first rank has the texts tokenized, in processes of its own. They
    are long and many, and the other ranks wait in a barrier for half an hour."""
    join_group()
    at(RANK)
    if RANK != 0:
        dist.barrier()
    map_dataset()
    dist.barrier()


class Pictures(Dataset):
    """Each has to be decoded."""

    def __len__(self):
        return 8192

    def __getitem__(self, number):
        role = f"worker{RANK}"
        if not os.path.exists(in_folder(role)):
            at(role)
        work_for(0.02)
        return torch.full((4,), float(number))


def first_batch_of_an_epoch():
    """Healthy, as pytorch/pytorch#8371: a worker makes a whole batch, and not a part of it. The batches are large, and
    the first one of each epoch is waited for, for minutes."""
    join_group()
    loader = DataLoader(Pictures(), batch_size=2048, num_workers=1, multiprocessing_context="fork")
    for _ in range(90):
        batches = iter(loader)
        at(RANK)
        for batch in batches:
            dist.all_reduce(batch.mean())


PROGRAMS = {
    "saves-with-inference-workers": saves_with_inference_workers,
    "patience-on-the-first": patience_on_the_first,
    "parameter-without-gradient": parameter_without_gradient,
    "agrees-on-tasks": agrees_on_tasks,
    "tokenizes-long-texts": tokenizes_long_texts,
    "first-batch-of-an-epoch": first_batch_of_an_epoch,
}

if __name__ == "__main__":
    run(PROGRAMS)
