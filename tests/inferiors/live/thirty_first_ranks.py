"""Ranks of a job over Gloo that hang, and healthy ones, thirty-first set: `thirty_first_ranks.py NAME FOLDER`, each."""

import concurrent.futures
import os
import random
import re
import threading

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, thread, wait_for_role, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class NoDuplicatesBatchSampler:
    """No sample twice in a batch; how many batches there are is said as if there were no duplicates at all."""

    def __init__(self, samples, size):
        self.samples, self.size = samples, size

    def __len__(self):
        return len(self.samples) // self.size

    def __iter__(self):
        left = list(self.samples)
        while len(left) >= self.size:
            batch = list(dict.fromkeys(left))[: self.size]
            if len(batch) < self.size:
                return
            for sample in batch:
                left.remove(sample)
            yield batch


class SentenceTrainer:
    """Each rank has a part of the samples; gradients are averaged after each batch."""

    def __init__(self, sampler):
        self.sampler, self.weights = sampler, torch.nn.Parameter(torch.ones(16))
        self.optimizer = torch.optim.SGD([self.weights], lr=0.01)

    def training_step(self, batch):
        inputs = torch.tensor([[float(len(sample))] * 16 for sample in batch])
        loss = (inputs @ self.weights).square().mean()
        loss.backward()
        dist.all_reduce(self.weights.grad)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss.detach())

    def evaluate(self, losses):
        mine = torch.tensor([sum(losses), float(len(losses))])
        parts = [torch.zeros(2) for _ in range(RANKS)]
        dist.all_gather(parts, mine)
        return sum(float(part[0]) for part in parts)

    def train(self):
        losses = []
        for number, batch in enumerate(self.sampler):
            if number == len(self.sampler) - 1:
                at(RANK)
            losses.append(self.training_step(batch))
            work_for(0.02)
        if RANK == 1:
            at(RANK)
        print(f"{RANK}: {self.evaluate(losses)}", flush=True)


def leaves_out_duplicates():
    """As huggingface/sentence-transformers#3348: no sample is twice in a batch. Some samples of one rank are the same,
    so that it has a batch less than its sampler says, and is done with the epoch before the others."""
    join_group()
    samples = [f"{'a' * (number % 7)} sentence {number}" for number in range(24)]
    if RANK == 1:
        samples[-4:] = [samples[-5]] * 4
    SentenceTrainer(NoDuplicatesBatchSampler(samples, 4)).train()


class Stream:
    """Of a device: what is launched is done one after the other."""

    def __init__(self):
        self.executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="stream")

    def launch(self, work, *arguments, **words):
        return self.executor.submit(work, *arguments, **words)


class HybridSharded:
    """Parameters are gathered within a node, and gradients reduced between nodes; a thread does each of these."""

    def __init__(self):
        self.stream = Stream()
        self.within, self.between = dist.new_group(), dist.new_group()
        self.turn = {"gather": threading.Event(), "reduce": threading.Event()}

    def gather(self, step):
        shard = torch.full((8,), float(RANK))
        parts = [torch.empty(8) for _ in range(RANKS)]
        return self.stream.launch(dist.all_gather, parts, shard, group=self.within)

    def reduce(self, step):
        return self.stream.launch(dist.all_reduce, torch.full((8,), float(step)), group=self.between)

    def prefetch(self, step, before):
        if before:
            before.wait()
        launched = self.gather(step)
        self.turn["gather"].set()
        launched.result()

    def synchronize(self, step, before):
        if before:
            before.wait()
        launched = self.reduce(step)
        self.turn["reduce"].set()
        launched.result()

    def step(self, number, reduce_first):
        """Which of the two threads is the first one depends upon the machine."""
        for event in self.turn.values():
            event.clear()
        first = self.turn["reduce"] if reduce_first else None
        second = None if reduce_first else self.turn["gather"]
        helper = thread(self.prefetch, number, first)
        self.synchronize(number, second)
        helper.join()


def launches_by_two_threads():
    """As ROCm/rccl#1600: two threads of the host have a communicator each, and share a stream. It is not said which of
    them launches first; on one rank it is the other one."""
    join_group()
    model = HybridSharded()
    for number in range(4):
        work_for(0.02)
        if number == 3:
            at(RANK)
        model.step(number, reduce_first=number == 3 and RANK == 1)


class RendezvousServer:
    """Of the master: it plans which hosts make a group, and what their ranks are in it."""

    def __init__(self, store):
        self.store, self.round = store, 0

    def plan(self, hosts):
        self.round += 1
        self.store.set(f"plan/{self.round}", ",".join(map(str, hosts)))
        self.store.set("round", str(self.round))


class Worker:
    """Asks for its rank, and meets the others by that."""

    def __init__(self, store, host):
        self.store, self.host = store, host

    def get_rank(self):
        number = int(self.store.get("round"))
        hosts = [int(host) for host in self.store.get(f"plan/{number}").split(b",")]
        return number, hosts.index(self.host), len(hosts)

    def init(self, number, rank, size):
        torch.set_num_threads(1)
        store = dist.PrefixStore(f"group/{number}", self.store)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=LONG)


def meets_by_an_old_plan():
    """As sql-machine-learning/elasticdl#2264: a worker has got its rank of the group of two. Before it joins that, a
    third host comes, and there is a plan for three; the first worker has not asked before, and gets the new plan."""
    port = int(os.environ["MASTER_PORT"])
    store = dist.TCPStore("127.0.0.1", port, None, RANK == 0, timeout=LONG, wait_for_workers=False)
    server, worker = RendezvousServer(store), Worker(store, RANK)
    if RANK == 0:
        server.plan([0, 1])
        store.wait(["asked", "arrived"])
        server.plan([0, 1, 2])
        store.set("planned", "1")
    elif RANK == 1:
        store.wait(["round"])
    else:
        store.set("arrived", "1")
        store.wait(["planned"])
    rank = worker.get_rank()
    if RANK == 1:
        store.set("asked", "1")
        work_for(0.5)  # it loads its model
    at(RANK)
    worker.init(*rank)
    dist.all_reduce(torch.ones(1))


class Interleaved:
    """A schedule of a pipeline whose ranks have two stages each; each action has its stage and its part of the batch.
    Stage n + 1 is always at the other rank."""

    def __init__(self, actions):
        self.actions, self.values = [re.fullmatch(r"(\d)([A-Z_]+?)_?F?(\d)", action).groups() for action in actions], {}

    def run(self):
        for number, (stage, what, part) in enumerate(self.actions):
            getattr(self, what.lower().rstrip("_"))(int(stage), int(part))
            yield number

    def f(self, stage, part):
        """Forward."""
        work_for(0.02)
        value = self.values.pop((stage, part), torch.full((4096,), float(part)))
        self.values[stage + 1, part] = value * 1.01

    def send(self, stage, part):
        dist.send(self.values.pop((stage + 1, part)), 1 - RANK, tag=10 * (stage + 1) + part)

    def recv(self, stage, part):
        value = torch.empty(4096)
        dist.recv(value, 1 - RANK, tag=10 * stage + part)
        self.values[stage, part] = value


ONE_PART = (
    ["0F0", "0SEND_F0", "2RECV_F0", "2F0", "2SEND_F0"],
    ["1RECV_F0", "1F0", "1SEND_F0", "3RECV_F0", "3F0"],
)
TWO_PARTS = (
    ["0F0", "0SEND_F0", "0F1", "0SEND_F1", "2RECV_F0", "2F0", "2SEND_F0", "2RECV_F1", "2F1", "2SEND_F1"],
    ["1RECV_F0", "1F0", "1SEND_F0", "1RECV_F1", "1F1", "1SEND_F1", "3RECV_F0", "3F0", "3RECV_F1", "3F1"],
)


def interleaves_its_stages():
    """As pytorch/pytorch#172668: what is to be received is waited for right before it is used. With two parts of a
    batch, both ranks send what they have first."""
    join_group()
    for _ in Interleaved(ONE_PART[RANK]).run():
        pass
    at(RANK)
    for number in Interleaved(TWO_PARTS[RANK]).run():
        print(f"{RANK}: {TWO_PARTS[RANK][number]}", flush=True)


class Tokenizer:
    """Words to numbers, by what was seen most often together."""

    def __init__(self, seed=3):
        rows = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz "
        self.merges = {a + b: rows.random() for a in letters for b in letters}

    def encode(self, text):
        parts = list(text)
        while len(parts) > 1:
            scores = [self.merges.get(a + b, 0.0) for a, b in zip(parts, parts[1:])]
            best = max(range(len(scores)), key=scores.__getitem__)
            if scores[best] < 0.5:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return parts


def texts(count):
    letters = random.Random(1)
    for _ in range(count):
        yield "".join(letters.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(200))


def prepares_the_dataset_first():
    """Healthy, as NVIDIA/nccl#708: the main process prepares a large dataset, and the others wait in a barrier until
    they can read what it has written."""
    join_group()
    tokenizer = Tokenizer()
    at(RANK)
    if RANK == 0:
        with open(in_folder("tokens"), "w") as file:
            for text in texts(10_000_000):
                file.write(f"{len(tokenizer.encode(text))}\n")
    dist.barrier()


class Detector:
    """Boxes in images."""

    def __init__(self):
        self.layer = torch.nn.Conv2d(3, 16, 5)

    @torch.no_grad()
    def detect(self, image):
        return int(self.layer(image).mean(dim=1).argmax())


def has_more_images_than_others():
    """Healthy, as facebookresearch/maskrcnn-benchmark#172: at the end of an evaluation all synchronize, and the first
    process has much more images than the others."""
    join_group()
    detector, found = Detector(), []
    for number in range(10_000_000 if RANK == 0 else 20):
        found.append(detector.detect(torch.rand(1, 3, 240, 320)))
        if number == 10 and RANK == 0:
            at(RANK)
    if RANK > 0:
        wait_for_role("0")
        at(RANK)
    dist.barrier()


PROGRAMS = {
    "leaves-out-duplicates": leaves_out_duplicates,
    "launches-by-two-threads": launches_by_two_threads,
    "meets-by-an-old-plan": meets_by_an_old_plan,
    "interleaves-its-stages": interleaves_its_stages,
    "prepares-the-dataset-first": prepares_the_dataset_first,
    "has-more-images-than-others": has_more_images_than_others,
}

if __name__ == "__main__":
    run(PROGRAMS)
