"""Ranks of a job over Gloo that hang, fourteenth set: `fourteenth_ranks.py NAME FOLDER`, one each."""

import atexit
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


class Scheduler:
    """Of a rank that has requests of its own. Before each batch the ranks tell each other how large theirs is."""

    def __init__(self):
        self.waiting, self.grammar_queue = [], []

    def receive(self, number):
        self.waiting.append({"id": number, "schema": None})
        if RANK == 1 and number == STEPS - 2:
            self.grammar_queue.append({"id": STEPS, "schema": '{"type": "object"}'})
            at(RANK)
        elif number == STEPS - 2:
            at(RANK)

    def move_ready_grammar_requests(self):
        """So many grammars as are ready on all ranks."""
        ready = torch.tensor([len(self.grammar_queue)])
        dist.all_reduce(ready, op=dist.ReduceOp.MIN)
        self.waiting += self.grammar_queue[: int(ready)]
        del self.grammar_queue[: int(ready)]

    def next_batch(self):
        if self.grammar_queue:
            self.move_ready_grammar_requests()
        batch, self.waiting = self.waiting, []
        return batch

    def prepare_sync_batch(self, batch):
        sizes = [torch.empty(1, dtype=torch.int64) for _ in range(RANKS)]
        dist.all_gather(sizes, torch.tensor([len(batch)]))
        return sizes


def grammar_on_one_rank():
    """As sgl-project/sglang#3600: the ranks agree about grammars only when there are such requests, and with data
    parallel attention rank 1 alone has one."""
    join_group()
    scheduler = Scheduler()
    for number in range(STEPS):
        scheduler.receive(number)
        scheduler.prepare_sync_batch(scheduler.next_batch())
        work_for(0.01)


class Partitioned(torch.nn.Module):
    """Layers of which each rank has a part; the whole weight is gathered for each call."""

    def __init__(self, layers, size):
        super().__init__()
        self.size = size
        self.parts = torch.nn.ParameterList(torch.ones(size // RANKS, size) for _ in range(layers))

    def forward(self, rows):
        for part in self.parts:
            weight = [torch.empty_like(part) for _ in range(RANKS)]
            dist.all_gather(weight, part.detach())
            rows = torch.tanh(rows @ torch.cat(weight))
        return rows


def generate(student, longest, stops):
    rows = torch.ones(1, student.size)
    for position in range(longest):
        rows = student(rows)
        if position + 1 == stops:
            break
    return position + 1


def score(teacher, length):
    """The answers of all ranks are padded to the longest one."""
    longest = torch.tensor([length])
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return teacher(torch.ones(int(longest), teacher.size)).mean()


def one_rank_ends_its_answer():
    """As deepspeedai/DeepSpeed#8262: the student writes an answer on each rank, and its weights are gathered for each
    token. The answer of rank 1 is at its end before the others', and it goes on to the teacher."""
    join_group()
    student, teacher = Partitioned(4, 48), Partitioned(2, 96)
    for number in range(STEPS):
        if number == STEPS - 2:
            at(RANK)
        stops = 5 if RANK == 1 and number == STEPS - 2 else 8
        score(teacher, generate(student, 8, stops))


def others_wait_while_first_saves():
    """As huggingface/accelerate#2690: the first rank saves the model and goes on with the next step; the others wait
    for everyone in the other branch."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    for number in range(STEPS):
        model(torch.ones(4, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if number == STEPS - 3:
            at(RANK)
            if RANK == 0:
                torch.save(model.module.state_dict(), in_folder("model.pt"))
            else:
                dist.barrier()


def leave_coordinator(store):
    """At exit, each process tells the coordinator and waits until all have."""
    store.set(f"shutdown/{RANK}", "1")
    if RANK:
        at(RANK)
    store.wait([f"shutdown/{rank}" for rank in range(RANKS)], LONG)


def second_host_has_no_sum():
    """As jax-ml/jax#22740: the program of the second host prints how many devices there are and ends; that of the first
    has a sum over all of them after that."""
    join_group()
    atexit.register(leave_coordinator, dist.distributed_c10d._get_default_store())
    counts = [None] * RANKS
    dist.all_gather_object(counts, 8)
    print("devices:", sum(counts), "of them here:", 8, flush=True)
    if RANK == 0:
        at(RANK)
        dist.all_reduce(torch.ones(8))


def world_of_more_than_started():
    """As pytorch/pytorch#52848: each of them is told that there are eight workers; two have been started."""
    torch.set_num_threads(1)
    at(RANK)
    dist.init_process_group("gloo", timeout=LONG, rank=RANK, world_size=8)


PROGRAMS = {
    "grammar-on-one-rank": grammar_on_one_rank,
    "one-rank-ends-its-answer": one_rank_ends_its_answer,
    "others-wait-while-first-saves": others_wait_while_first_saves,
    "second-host-has-no-sum": second_host_has_no_sum,
    "world-of-more-than-started": world_of_more_than_started,
}

if __name__ == "__main__":
    run(PROGRAMS)
