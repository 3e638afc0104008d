"""Ranks of a job over Gloo that hang, twentieth set: `twentieth_ranks.py NAME FOLDER`, each."""

import collections
import os
import queue
import threading

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 6


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Executor:
    """Of one rank of a server that computes prompts. Blocks of its cache are free again when they have been sent."""

    BLOCKS = 4

    def __init__(self):
        self.free, self.waiting, self.sending = 12, collections.deque(), []

    def fetch(self, number):
        request = torch.tensor([number if RANK == 0 else 0])
        dist.broadcast(request, 0)
        self.waiting.append(int(request))

    def poll_sends(self, step):
        sent = [until for until in self.sending if until <= step]
        self.sending = [until for until in self.sending if until > step]
        self.free += self.BLOCKS * len(sent)

    def fitting(self):
        return min(len(self.waiting), self.free // self.BLOCKS)

    def check_context_transfer_status(self):
        statuses = [torch.empty(1, dtype=torch.int64) for _ in range(RANKS)]
        dist.all_gather(statuses, torch.tensor([len(self.sending)]))
        return min(int(status) for status in statuses)

    def forward(self):
        hidden = torch.ones(8, 64)
        for _ in range(4):
            work_for(0.01)
            dist.all_reduce(hidden)

    def step(self, number):
        self.fetch(number)
        self.poll_sends(number)
        if number == STEPS:
            at(RANK)
        if self.fitting() == 0:
            self.check_context_transfer_status()
        if self.fitting() > 0:
            self.waiting.popleft()
            self.free -= self.BLOCKS
            self.forward()
            # the network of one rank takes a step longer for some of them
            self.sending.append(number + (4 if RANK == 1 and number > 2 else 3))


def capacity_per_rank():
    """As NVIDIA/TensorRT-LLM#14020: whether a rank asks for the state of the transfers, which takes all ranks, depends
    on its own free blocks. On one of them no request fits; the others compute one."""
    join_group()
    executor = Executor()
    for number in range(2 * STEPS):
        executor.step(number)


class Stage:
    """Of a pipeline. Layers of experts note the loss that balances them."""

    def __init__(self):
        self.layers = ["dense", "dense"] if RANK == 0 else ["moe", "moe"]
        self.tracker = {}

    def forward(self):
        rows = torch.ones(4, 32)
        if RANK > 0:
            dist.recv(rows, RANK - 1)
        for layer in self.layers:
            work_for(0.01)
            rows = torch.tanh(rows)
            if layer == "moe":
                self.tracker.setdefault("load_balancing_loss", []).append(rows.mean())
        if RANK < RANKS - 1:
            dist.send(rows, RANK + 1)

    def reduce_aux_losses(self):
        for values in self.tracker.values():
            dist.all_reduce(torch.stack(values))
        self.tracker.clear()


def losses_of_moe_layers():
    """As NVIDIA/Megatron-LM#1444: the losses of the experts are added up over the pipeline, for each name that a stage
    has noted. The first stage has dense layers only; it has noted none, and goes on with the next step."""
    join_group()
    stage = Stage()
    for _ in range(2):
        for _ in range(STEPS):
            stage.forward()
        at(RANK)
        stage.reduce_aux_losses()


class StoreExchange:
    """Ranks give each other small things by the store. Each round has a number."""

    def __init__(self, store):
        self.store, self.round = dist.PrefixStore("symmetric_memory", store), 0

    def all_gather(self, ranks, value):
        number, self.round = self.round, self.round + 1
        self.store.set(f"{number}/{RANK}", value)
        return [self.store.get(f"{number}/{rank}").decode() for rank in ranks]


def rendezvous(exchange, ranks):
    handles = exchange.all_gather(ranks, f"handle of {RANK}")
    exchange.all_gather(ranks, "mapped")
    return handles


def rendezvous_twice():
    """As pytorch/pytorch#196082: memory is shared by some ranks first, and then by all. The one that did not take part
    has counted fewer rounds; it reads what is there from the first time, and the others wait for its next round."""
    join_group()
    exchange = StoreExchange(dist.distributed_c10d._get_default_store())
    some = range(RANKS - 1)
    if RANK in some:
        rendezvous(exchange, some)
    dist.barrier()
    at(RANK)
    rendezvous(exchange, range(RANKS))
    dist.barrier()


class Communicator:
    """What is sent and received is done by one thread, and the caller has a handle to wait for."""

    def __init__(self):
        self.posted = queue.Queue()
        thread(self.progress)

    def progress(self):
        while True:
            function, tensor, peer, done = self.posted.get()
            function(tensor, peer)
            done.set()

    def post(self, function, tensor, peer):
        done = threading.Event()
        self.posted.put((function, tensor, peer, done))
        return done

    def isend(self, tensor, peer):
        return self.post(dist.send, tensor, peer)

    def irecv(self, tensor, peer):
        return self.post(dist.recv, tensor, peer)


def exchange_with_peer():
    """As intel/torch-ccl#72: both ranks send and receive at once. The library does the one after the other, so that
    each of them sends, and nobody receives."""
    join_group()
    peer, communicator = 1 - RANK, Communicator()
    ours, theirs = torch.full((1 << 18,), float(RANK)), torch.empty(1 << 18)
    dist.all_reduce(ours.clone())
    at(RANK)
    sent = communicator.isend(ours, peer)
    received = communicator.irecv(theirs, peer)
    sent.wait()
    received.wait()


class Parameter:
    """Each rank has a part of it. It is whole for as long as it is used."""

    def __init__(self, size):
        self.part, self.whole = torch.ones(size // RANKS), None

    def fetch(self):
        if self.whole is None:
            parts = [torch.empty_like(self.part) for _ in range(RANKS)]
            dist.all_gather(parts, self.part)
            self.whole = torch.cat(parts)
        return self.whole

    def release(self):
        self.whole = None


class Experts:
    """The weights of the experts are here; their scale is a small parameter that all of them use."""

    def __init__(self):
        self.weights = [torch.ones(48, 48) / 48 for _ in range(4)]
        self.scale = Parameter(48)

    def forward(self, rows, chosen):
        for expert in chosen:
            rows = torch.tanh(rows @ self.weights[expert]) * self.scale.fetch()
            work_for(0.02)
            self.scale.release()
        return rows


def weights_gathered_per_expert():
    """As AgileRL/AgileRL#658: a small parameter is to stay, but is released and gathered again for each use. In one
    batch the tokens of a rank go to more experts than those of the others, who are at the gradients by then."""
    join_group()
    experts = Experts()
    for number in range(STEPS):
        chosen = [number % 4, (number + 1) % 4]
        if number == 4:
            chosen += [3] if RANK == 1 else []
            at(RANK)
        rows = experts.forward(torch.ones(8, 48), chosen)
        dist.all_reduce(rows.mean(0))


class Accelerator:
    def gather_gradients(self, gradient):
        dist.all_reduce(gradient)
        return gradient / RANKS

    def wait_for_everyone(self):
        dist.barrier()


class EarlyStopping:
    """Each process has its own loss."""

    def __init__(self, patience=3):
        self.best, self.misses, self.patience = float("inf"), 0, patience

    def check(self, loss):
        self.misses = 0 if loss < self.best else self.misses + 1
        self.best = min(self.best, loss)
        return self.misses >= self.patience


def early_stopping():
    """As huggingface/accelerate#1940: whether the loop is left is decided by each process for itself. The first one
    has left it and waits for everyone, and the others are in the next batch."""
    join_group()
    accelerator, stopping = Accelerator(), EarlyStopping()
    for number in range(4 * STEPS):
        work_for(0.02)
        accelerator.gather_gradients(torch.ones(256))
        loss = 1.0 / (1 + (min(number, 4) if RANK == 0 else number))
        if number == 7:
            at(RANK)
        if stopping.check(loss):
            break
    accelerator.wait_for_everyone()


PROGRAMS = {
    "capacity-per-rank": capacity_per_rank,
    "losses-of-moe-layers": losses_of_moe_layers,
    "rendezvous-twice": rendezvous_twice,
    "exchange-with-peer": exchange_with_peer,
    "weights-gathered-per-expert": weights_gathered_per_expert,
    "early-stopping": early_stopping,
}

if __name__ == "__main__":
    run(PROGRAMS)
