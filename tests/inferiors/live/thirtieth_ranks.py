"""Ranks of a job over Gloo that hang, and healthy ones, thirtieth set: `thirtieth_ranks.py NAME FOLDER`, each."""

import itertools
import os
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 5


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class HierarchicalCache:
    """Of a rank: what it has of the prompts, and what it fetches from the storage of all."""

    SHORTEST = 256

    def __init__(self, known):
        self.known, self.ongoing = known, {}

    def prefetch(self, request, length):
        if length - self.known.get(request, 0) >= self.SHORTEST:
            self.ongoing[request] = length

    def can_go_on(self, request):
        if request not in self.ongoing:
            return True
        pages = torch.tensor([self.ongoing[request]])
        dist.all_reduce(pages, op=dist.ReduceOp.MIN)
        self.known[request] = self.ongoing.pop(request) if pages.item() else 0
        return True


class Scheduler:
    """One of a tensor parallel engine; the first rank has the requests, and all do the same with them."""

    def __init__(self, cache):
        self.cache = cache

    def receive(self, requests):
        words = [requests if RANK == 0 else None]
        dist.broadcast_object_list(words, src=0)
        return words[0]

    def run(self, arriving):
        for step, requests in enumerate(arriving):
            for request, length in self.receive(requests):
                self.cache.prefetch(request, length)
                if step == STEPS - 2:
                    at(RANK)
                if self.cache.can_go_on(request):
                    work_for(0.02)


def checks_its_prefetch():
    """As sgl-project/sglang#38284: a rank has most of a prompt, and fetches nothing for it. It leaves out the reduction
    by which all agree how much has come, and takes part in the next broadcast of requests."""
    join_group()
    known = {"third": 900} if RANK == 1 else {}
    arriving = [[(name, 1024)] for name in ("first", "second", "new", "third", "fifth")]
    Scheduler(HierarchicalCache(known)).run(arriving)


GENERATE, SAVE_MODEL, STOP = range(3)


class Stage:
    """Of a pipeline: it takes a request from the stage before, works on it, and sends it on."""

    def receive(self, own):
        words = torch.tensor([next(own), 0])
        if RANK > 0:
            dist.recv(words, RANK - 1)
        return words

    def process(self, words):
        if words[0] == SAVE_MODEL:
            at(RANK)
            dist.barrier()
            torch.save({"stage": RANK}, in_folder(f"stage{RANK}.pt"))
            dist.barrier()
        else:
            work_for(0.02)

    def send(self, words):
        if RANK < RANKS - 1:
            dist.send(words, RANK + 1)

    def run(self, requests):
        own = iter(requests)
        for number in range(len(requests)):
            if number == STEPS - 1 and RANK > 0:
                at(RANK)
            words = self.receive(own)
            self.process(words)
            self.send(words)


def barriers_before_it_sends():
    """As sgl-project/sglang#24962: the first stage of a pipeline is asked to save the model, which all do together. It
    is in the barrier of that before it has sent the request on; the others wait for a request."""
    join_group()
    Stage().run([GENERATE] * (STEPS - 1) + [SAVE_MODEL, STOP])


class NoValidAnchors(ValueError):
    """All samples of a batch are shorter than a block."""


class Draft(torch.nn.Module):
    """Learns blocks that begin at an anchor."""

    BLOCK = 8

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)

    def forward(self, rows):
        if len(rows) < self.BLOCK:
            raise NoValidAnchors
        return self.layer(rows).square().mean()


def skips_a_short_batch():
    """As NVIDIA-NeMo/Automodel#2468: in one rank all samples of a batch are too short, and it goes on to the next one.
    Its backward passes, and the reductions in them, are one less than those of the others, at the end of the epoch."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(Draft())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lengths = [32, 32, 4, 32, 32] if RANK == 2 else [32] * STEPS
    losses = []
    for number, length in enumerate(lengths):
        try:
            loss = model(torch.ones(length, 16))
        except NoValidAnchors:
            continue
        if number == STEPS - 1 and RANK != 2:
            at(RANK)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    at(RANK)
    everyones = [None] * RANKS
    dist.all_gather_object(everyones, losses)


class SymmetricPool:
    """Memory that each rank has at the same place. There is more of it when all have said where they have that."""

    def __init__(self, size):
        self.free, self.segments = size, []

    def take(self, size):
        if size > self.free:
            self.register(max(size, 1 << 16))
        self.free -= size

    def register(self, size):
        places = [None] * RANKS
        dist.all_gather_object(places, (RANK, size))
        self.segments.append(places)
        self.free += size

    def give_back(self, size):
        self.free += size


SCRATCH = {"narrow": 1 << 12, "wide": 1 << 15}


class Tuner:
    """Takes the fastest tactic of a kernel, by the times that it has measured here."""

    def __init__(self, times):
        self.times = times

    def choose(self, batch):
        if batch not in self.times:
            return "narrow"
        return min(self.times[batch], key=self.times[batch].get)


def tunes_on_its_own():
    """As flashinfer-ai/flashinfer#3186: each rank measures the tactics of a kernel for itself, and they are as good as
    each other. For one batch a rank has chosen another one, with scratch memory that it has to register with all."""
    join_group()
    times = {"narrow": 1.02, "wide": 1.01} if RANK == 2 else {"narrow": 1.01, "wide": 1.02}
    tuner, pool = Tuner({144: times}), SymmetricPool(1 << 14)
    for batch in (160, 152, 144, 136):
        scratch = SCRATCH[tuner.choose(batch)]
        if batch == 144:
            at(RANK)
        pool.take(scratch)
        rows = torch.ones(batch, 16)
        work_for(0.02)
        dist.all_reduce(rows)
        pool.give_back(scratch)


def upload(state):
    """What a user wrote: to a store that takes a part at a time."""
    block = torch.cat([tensor.flatten() for tensor in state.values()]).numpy().tobytes()
    for number in itertools.count():
        with open(in_folder(f"part{number % 8}"), "wb") as file:
            file.write(block)
            os.fsync(file.fileno())
        time.sleep(0.2)


def report(state):
    """All ranks do, and go on when the checkpoint is where it should be."""
    if RANK == 0:
        upload(state)
    dist.barrier()


def uploads_its_checkpoint():
    """Healthy, as ray-project/ray#61720: a checkpoint is reported by all ranks and uploaded by the first one, with a
    function of the user. It takes longer than a minute, and one could think that it hangs."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
    for _ in range(STEPS):
        model(torch.ones(4, 256)).sum().backward()
    at(RANK)
    report(model.module.state_dict())


PROGRAMS = {
    "checks-its-prefetch": checks_its_prefetch,
    "barriers-before-it-sends": barriers_before_it_sends,
    "skips-a-short-batch": skips_a_short_batch,
    "tunes-on-its-own": tunes_on_its_own,
    "uploads-its-checkpoint": uploads_its_checkpoint,
}

if __name__ == "__main__":
    run(PROGRAMS)
