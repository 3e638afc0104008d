"""Ranks of a job over Gloo that hang, and healthy ones, seventeenth set: `seventeenth_ranks.py NAME FOLDER`, each."""

import collections
import contextlib
import itertools
import multiprocessing
import os
import re
import threading
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 6


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class ShardedAdam:
    """Each rank has a part of the moments."""

    def __init__(self, size=48):
        self.weights, self.moments = torch.ones(size), torch.zeros(size // RANKS)

    def step(self):
        gradient = self.weights * 0.01
        work_for(0.02)
        dist.all_reduce(gradient)
        self.moments.mul_(0.9).add_(gradient.chunk(RANKS)[RANK], alpha=0.1)
        self.weights -= gradient

    def state(self):
        parts = [torch.empty_like(self.moments) for _ in range(RANKS)]
        dist.all_gather(parts, self.moments)
        return {"moments": torch.cat(parts)}


def save(optimizer):
    if RANK == 0:
        torch.save(optimizer.state(), in_folder("optimizer.pt"))


def moments_gathered_by_the_first_alone():
    """As EleutherAI/bergson#380: the state of the optimizer is saved by the first rank. All ranks have a part of it,
    and it is gathered; the others are in the next step."""
    join_group()
    optimizer = ShardedAdam()
    for number in range(STEPS):
        optimizer.step()
        if number == 3:
            at(RANK)
            save(optimizer)


class Engine:
    """Of one rank of a tensor parallel model. Each rank has the whole of the logits, and draws the next token."""

    END, SHORTEST = 0, 5

    def __init__(self):
        # of an even choice between two, the second rank gets the first one, and the others the other one
        self.generator = torch.Generator().manual_seed(RANK)
        self.active = []

    def fetch(self):
        request = torch.zeros(1, dtype=torch.int64)
        if RANK == 0:
            request += 7
        dist.broadcast(request, 0)
        self.active.append([int(request)])

    def forward(self, tokens):
        logits = torch.full((16,), -50.0)
        logits[1] = 0.0
        if len(tokens) > self.SHORTEST:
            logits[self.END] = 0.0
        logits /= RANKS
        work_for(0.02)
        dist.all_reduce(logits)
        return logits

    def draw(self, logits):
        probabilities = torch.softmax(logits, 0)
        if float(probabilities.max()) > 0.9:
            return int(probabilities.argmax())
        return int(torch.multinomial(probabilities, 1, generator=self.generator))

    def step(self):
        if not self.active:
            self.fetch()
        tokens = self.active[0]
        tokens.append(self.draw(self.forward(tokens)))
        if tokens[-1] == self.END:
            self.active.clear()
        return len(tokens)


def each_rank_draws_its_token():
    """As NVIDIA/TensorRT-LLM#12024: each rank draws the tokens with random numbers of its own. One has drawn the end of
    the text and wants the next request; the others compute one more token."""
    join_group()
    engine = Engine()
    while True:
        if engine.step() == Engine.SHORTEST + 2:
            at(RANK)


class Runner:
    """Of a rank of data parallel experts. Its steps are recorded for some numbers of tokens."""

    RECORDED = (1, 8, 32)

    def few(self, rows):
        dist.all_reduce(rows)

    def many(self, rows):
        gathered = [torch.empty_like(rows) for _ in range(RANKS)]
        dist.all_gather(gathered, rows)

    def padded(self, tokens):
        counts = [torch.empty(1, dtype=torch.int64) for _ in range(RANKS)]
        dist.all_gather(counts, torch.tensor([tokens]))
        return int(max(counts))

    def replay(self, tokens):
        size = min(size for size in self.RECORDED if size >= tokens)
        layer = self.few if size == 1 else self.many
        for _ in range(4):
            layer(torch.ones(size, 16))

    def execute(self, tokens):
        self.replay(self.padded(tokens))
        work_for(0.01)

    def execute_dummy(self):
        tokens = 1
        self.padded(tokens)
        self.replay(tokens)


def graph_of_its_own_size():
    """As vllm-project/vllm#25906: a rank without requests takes part with a step for nothing. It looks for what was
    recorded for its own number of tokens, and the others for that which was agreed upon; they are not alike."""
    join_group()
    runner = Runner()
    for number in range(STEPS):
        if number == STEPS - 2:
            at(RANK)
        if number == STEPS - 2 and RANK == 1:
            runner.execute_dummy()
        else:
            runner.execute(5 + RANK)


class Coordinated:
    """Tensors are added up when all ranks have handed in one of that name. A thread asks all ranks, again and again."""

    def __init__(self):
        self.changed, self.new, self.tensors = threading.Condition(), [], {}
        self.counts = collections.Counter()
        thread(self.cycle)

    def agree(self, names):
        gathered = [None] * RANKS if RANK == 0 else None
        dist.gather_object(names, gathered, 0)
        ready = []
        if RANK == 0:
            self.counts.update(itertools.chain(*gathered))
            ready = [name for name, count in self.counts.items() if count == RANKS]
            for name in ready:
                del self.counts[name]
        word = [ready]
        dist.broadcast_object_list(word, 0)
        return word[0]

    def cycle(self):
        while True:
            time.sleep(0.05)
            with self.changed:
                names, self.new = self.new, []
            for name in self.agree(names):
                dist.all_reduce(self.tensors[name])
                with self.changed:
                    del self.tensors[name]
                    self.changed.notify_all()

    def allreduce(self, name, tensor):
        with self.changed:
            self.tensors[name] = tensor
            self.new.append(name)
            self.changed.wait_for(lambda: name not in self.tensors)
        return tensor


class Scopes:
    """A model has a name that no other has in this process."""

    def __init__(self):
        self.taken = collections.Counter()

    def name(self, wanted):
        self.taken[wanted] += 1
        return wanted if self.taken[wanted] == 1 else f"{wanted}_{self.taken[wanted] - 1}"


def tensor_of_another_name():
    """As horovod/horovod#100: gradients are matched by their names. One rank has built the model twice, and those of
    the second one have a name that the others do not know."""
    join_group()
    coordinated, scopes = Coordinated(), Scopes()
    coordinated.allreduce("global_step", torch.zeros(1))
    if RANK == 1:
        scopes.name("model")  # to count its weights
    model = scopes.name("model")
    at(RANK)
    for number in range(STEPS):
        work_for(0.02)
        coordinated.allreduce(f"{model}/gradients/{number}", torch.ones(64))


class Stage:
    """Of a pipeline, where shapes go before the tensors. What is sent goes first, whichever rank it is."""

    def exchange(self, send_previous=None, receive_previous=False, send_next=None, receive_next=False):
        received = []
        if send_previous is not None:
            self.send(send_previous, RANK - 1)
        if receive_previous:
            received.append(self.receive(RANK - 1))
        if send_next is not None:
            self.send(send_next, RANK + 1)
        if receive_next:
            received.append(self.receive(RANK + 1))
        return received[0] if received else None

    def send(self, tensor, peer):
        dist.send(torch.tensor(tensor.shape), peer)
        dist.send(tensor, peer)

    def receive(self, peer):
        shape = torch.empty(2, dtype=torch.int64)
        dist.recv(shape, peer)
        tensor = torch.empty(*shape.tolist())
        dist.recv(tensor, peer)
        return tensor

    def forward(self, number):
        rows = torch.ones(8 + number, 32)
        if RANK > 0:
            rows = self.exchange(receive_previous=True)
        work_for(0.02)
        return torch.tanh(rows)

    def run(self, batches):
        first, last = RANK == 0, RANK == RANKS - 1
        for number in range(RANKS - 1 - RANK):
            self.exchange(send_next=self.forward(number))
        rows = self.forward(RANKS - 1 - RANK)
        at(RANK)
        for _ in range(batches):
            gradient = rows if last else self.exchange(send_next=rows, receive_next=True)
            work_for(0.02)
            if not first:
                rows = self.exchange(send_previous=gradient, receive_previous=True)


def stages_send_first():
    """As NVIDIA/Megatron-LM#5100: four stages, one batch forward and one backward in turns. All of them send before
    they receive, so that the last two send to each other, and the others wait behind them."""
    join_group()
    Stage().run(STEPS)


def write_checkpoint(state):
    for number in itertools.count():
        name = in_folder(f"checkpoint{number % 4}.pt")
        with open(name, "wb") as file:
            torch.save({key: tensor.to(torch.float16) for key, tensor in state.items()}, file)
            file.flush()
            os.fsync(file.fileno())


def waits_for_who_saves():
    """Healthy, as TRI-ML/prismatic-vlms#38: the first rank saves the model, which takes longer than one would wait in a
    barrier. The others are in the barrier that comes after it."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 512))
    for _ in range(STEPS):
        model(torch.ones(4, 1024)).sum().backward()
    at(RANK)
    if RANK == 0:
        write_checkpoint(model.module.state_dict())
    dist.barrier()


def tokenize(number):
    known = {}
    text = f"an instruction, number {number}, and an answer to it that is long. " * 400
    return len([known.setdefault(word, len(known)) for word in re.findall(r"\w+|\S", text)])


def map_texts():
    with multiprocessing.get_context("fork").Pool(2) as pool, open(in_folder("cache"), "w") as cache:
        for length in pool.imap(tokenize, range(3_000_000)):
            cache.seek(0)
            cache.write(f"{length}\n")


@contextlib.contextmanager
def first_rank_first():
    if RANK != 0:
        dist.barrier()
    yield
    if RANK == 0:
        dist.barrier()


def texts_mapped_before_the_others():
    """Healthy, as hiyouga/LlamaFactory#2424: there are three million texts, which the first rank maps with a pool of
    processes. The others take them from the cache after that, and wait for half an hour and more."""
    join_group()
    at(RANK)
    with first_rank_first():
        if RANK == 0:
            map_texts()


PROGRAMS = {
    "moments-gathered-by-the-first-alone": moments_gathered_by_the_first_alone,
    "each-rank-draws-its-token": each_rank_draws_its_token,
    "graph-of-its-own-size": graph_of_its_own_size,
    "tensor-of-another-name": tensor_of_another_name,
    "stages-send-first": stages_send_first,
    "waits-for-who-saves": waits_for_who_saves,
    "texts-mapped-before-the-others": texts_mapped_before_the_others,
}

if __name__ == "__main__":
    run(PROGRAMS)
