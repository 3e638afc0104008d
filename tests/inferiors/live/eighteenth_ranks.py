"""Ranks of a job over Gloo that hang, eighteenth set: `eighteenth_ranks.py NAME FOLDER`, each."""

import os

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


class Checkpoints:
    """The first rank chooses the name of a file, and tells it to the others."""

    def __init__(self):
        self.count = 0

    def save(self, model, why):
        name = [f"{why}-{self.count}.ckpt" if RANK == 0 else None]
        dist.broadcast_object_list(name, 0)
        self.count += 1
        if RANK == 0:
            torch.save(model.state_dict(), in_folder(name[0]))


class Tagger(torch.nn.Module):
    WORDS = 64

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(self.WORDS, 16)
        self.linear = torch.nn.Linear(16, 4)

    def forward(self, words):
        return self.linear(self.embedding(words)).sum()


class Trainer:
    """Whatever happens, there is a checkpoint of it."""

    BROKEN = 4

    def __init__(self):
        self.model = torch.nn.parallel.DistributedDataParallel(Tagger())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.checkpoints = Checkpoints()

    def batch(self, number):
        words = torch.arange(8) + number
        if number == self.BROKEN and RANK == 1:
            words[3] = Tagger.WORDS  # a word that is not in the list
        return words

    def step(self, number):
        self.optimizer.zero_grad()
        self.model(self.batch(number)).backward()
        work_for(0.02)
        self.optimizer.step()

    def fit(self):
        try:
            for number in range(STEPS):
                if number == self.BROKEN:
                    at(RANK)
                self.step(number)
                if number % 2 == 1:
                    self.checkpoints.save(self.model.module, "step")
        except Exception:
            self.checkpoints.save(self.model.module, "exception")
            raise


def failed_rank_saves_first():
    """As Lightning-AI/pytorch-lightning#6430: a step fails on one rank. Before the error is told there is a checkpoint,
    whose name the first rank would send; that one, as the others, waits for the gradients of the step."""
    join_group()
    Trainer().fit()


class Experts(torch.nn.Module):
    """There is one on each rank, and each word goes to one of them."""

    def __init__(self, width=16):
        super().__init__()
        self.expert = torch.nn.Linear(width, width)

    def exchange(self, rows):
        received = torch.empty_like(rows)
        dist.all_to_all_single(received, rows)
        return received

    def forward(self, rows):
        return self.exchange(torch.tanh(self.expert(self.exchange(rows))))


class Translator:
    """It makes its texts word by word, until the longest of them has an end."""

    LENGTHS = (6, 4, 6)

    def __init__(self):
        self.layers = [Experts() for _ in range(2)]

    def next_word(self, rows):
        for layer in self.layers:
            rows = layer(rows)
        work_for(0.02)
        return rows

    @torch.no_grad()
    def validate(self, longest):
        rows = torch.ones(RANKS * 2, 16)
        for number in range(longest):
            if number == min(self.LENGTHS):
                at(RANK)
            rows = self.next_word(rows)
        return rows.mean()


def one_rank_has_the_shorter_text():
    """As microsoft/Tutel#182: in the validation each rank makes texts of its own. One of them is at its end before the
    others, and adds up the scores; the others make one more word, for which they need its expert."""
    join_group()
    translator = Translator()
    score = translator.validate(3)
    dist.all_reduce(score)
    longest = Translator.LENGTHS[RANK]
    score = translator.validate(longest)
    if longest == min(Translator.LENGTHS):
        at(RANK)
    dist.all_reduce(score)


PROGRAMS = {
    "failed-rank-saves-first": failed_rank_saves_first,
    "one-rank-has-the-shorter-text": one_rank_has_the_shorter_text,
}

if __name__ == "__main__":
    run(PROGRAMS)
