"""Ranks of a job over Gloo that hang, and healthy ones, twenty-third set: `twenty_third_ranks.py NAME FOLDER`, each."""

import itertools
import os
import queue
import subprocess

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, child_of, in_folder, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Trainer:
    """Epochs over the rank's own shard, which need not be as long as another one's."""

    SAMPLES, BATCH = 100, 8

    def __init__(self):
        self.shard = list(range(self.SAMPLES))[RANK * 40 : (RANK + 1) * 40]
        self.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def batches(self):
        for start in range(0, len(self.shard), self.BATCH):
            yield torch.ones(self.BATCH, 16) * len(self.shard[start : start + self.BATCH])

    def train_epoch(self):
        losses = []
        for number, batch in enumerate(self.batches()):
            if number == 2:
                at(RANK)
            loss = self.model(batch).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            work_for(0.02)
        return sum(losses) / len(losses)

    def report(self, loss):
        gathered = [None] * RANKS
        dist.all_gather_object(gathered, {"rank": RANK, "loss": loss})
        print(gathered, flush=True)


def shards_of_unlike_length():
    """As microsoft/PyMarlin#80: a hundred samples are dealt to the ranks, and the last one gets fewer. It is at the end
    of its epoch while the others reduce the gradients of one more batch."""
    join_group()
    trainer = Trainer()
    for _ in range(3):
        trainer.report(trainer.train_epoch())


class Expert:
    """Its weights are in parts, one on each rank. They are put together when it is used, and only then."""

    def __init__(self, width):
        self.part = torch.ones(width * width // RANKS) / width
        self.width = width

    def __call__(self, tokens):
        parts = [torch.empty_like(self.part) for _ in range(RANKS)]
        dist.all_gather(parts, self.part)
        weights = torch.cat(parts).view(self.width, self.width)
        return torch.tanh(tokens @ weights)


class Experts:
    """Each token goes to one of them."""

    def __init__(self, count=3, width=24):
        self.experts = [Expert(width) for _ in range(count)]

    def __call__(self, tokens, choice):
        result = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            chosen = choice == number
            if chosen.any():
                result[chosen] = expert(tokens[chosen])
        return result


def experts_gathered_when_used():
    """As pytorch/pytorch#126616: each expert is sharded by itself, and gathered in the forward pass of who uses it. The
    tokens of one rank go to two of three experts; it reduces the loss while the others gather the third one."""
    join_group()
    layer = Experts()
    for step in range(4):
        choice = torch.arange(32) % 3
        if step == 2:
            at(RANK)
            if RANK == 1:
                choice = torch.arange(32) % 2
        loss = layer(torch.ones(32, 24), choice).square().sum()
        work_for(0.02)
        dist.all_reduce(loss)


class Messages:
    """A batch of them is begun when all who take part in it are there, and have begun it as well."""

    HERE, BEGUN, DATA = 1, 2, 3

    def signal(self, peers, tag):
        words = [torch.ones(1) for _ in peers]
        works = [dist.isend(torch.ones(1), peer, tag=tag) for peer in peers]
        works += [dist.irecv(word, peer, tag=tag) for word, peer in zip(words, peers)]
        for work in works:
            work.wait()

    def batch(self, sends, receives):
        peers = sorted({*sends, *receives})
        if not peers:
            return
        self.signal(peers, self.HERE)
        self.signal(peers, self.BEGUN)
        works = [dist.isend(tensor, peer, tag=self.DATA) for peer, tensor in sends.items()]
        works += [dist.irecv(tensor, peer, tag=self.DATA) for peer, tensor in receives.items()]
        for work in works:
            work.wait()


class Stage:
    """Of a pipeline of three. What the first one computes goes to the second and, past that one, to the third."""

    SOURCES = ((), (0,), (0, 1))

    def __init__(self):
        self.messages = Messages()
        self.sources = self.SOURCES[RANK]
        self.targets = [rank for rank, sources in enumerate(self.SOURCES) if RANK in sources]

    def forward(self, inputs):
        work_for(0.05)
        return sum(inputs.values()) if inputs else torch.ones(8, 16)

    def step(self, together):
        inputs = {source: torch.empty(8, 16) for source in self.sources}
        if together:
            self.messages.batch({}, inputs)
        else:
            for source in self.sources:
                self.messages.batch({}, {source: inputs[source]})
        output = self.forward(inputs)
        if together:
            self.messages.batch(dict.fromkeys(self.targets, output), {})
        else:
            for target in self.targets:
                self.messages.batch({target: output}, {})


def batched_for_all_peers():
    """As pytorch/PiPPy#1000: a stage puts all its messages into one batch, whoever they are for. The third stage's has
    one from the second, which computes only after its message from the first; and that is in a batch with the one
    for the third."""
    join_group()
    stage = Stage()
    stage.step(together=False)
    at(RANK)
    stage.step(together=True)


class Connection:
    """Of an engine, to the coordinator. What comes is put into a queue by a thread."""

    def __init__(self):
        import zmq

        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.identity = str(RANK).encode()
        self.socket.connect(f"ipc://{in_folder('coordinator.socket')}")
        self.outgoing = zmq.Context.instance().socket(zmq.DEALER)
        self.outgoing.identity = f"{RANK}-out".encode()
        self.outgoing.connect(f"ipc://{in_folder('coordinator.socket')}")
        self.inbox = queue.Queue()
        thread(self.receive)

    def tell(self, *word):
        self.outgoing.send_json(word)

    def receive(self):
        self.socket.send_json(["hello", 0])
        while True:
            self.inbox.put(self.socket.recv_json())


def coordinate():
    """Of the engines: it gives requests to one of them, and wakes those that are to take part."""
    import zmq

    router = zmq.Context().socket(zmq.ROUTER)
    router.bind(f"ipc://{in_folder('coordinator.socket')}")
    engines = set()
    while len(engines) < RANKS:
        engines.add(router.recv_multipart()[0])
    for engine in engines:
        router.send_multipart([engine, b'["start", 0]'])
    router.send_multipart([b"0", b'["request", 0]'])
    while True:
        sender, word = router.recv_multipart()
        if b"complete" in word:
            router.send_multipart([b"0", b'["request", 0]'])
        elif b"wake" in word:
            for engine in engines - {sender.partition(b"-")[0]}:
                router.send_multipart([engine, b'["start", 1]'])
            at("coordinator")


class Engine:
    """Of one rank of two. All of them step, or none; in each step they agree on how many tokens there are."""

    def __init__(self):
        self.connection, self.running, self.wave = Connection(), False, 0
        self.left = self.steps = 0

    def handle(self, kind, wave):
        if kind == "start" and not self.running:
            self.running = True
            if wave == 1:
                at(RANK)
        elif kind == "request":
            self.left = 8
            if not self.running and wave < self.wave:
                self.connection.tell("wake", self.wave)
                at(RANK)

    def step(self):
        tokens = torch.tensor([self.left])
        self.left = max(0, self.left - 1)
        work_for(0.02)
        dist.all_reduce(tokens)
        if int(tokens) == 0 and self.steps > 10:
            self.running, self.wave = False, self.wave + 1
            if RANK == 0:
                self.connection.tell("complete", self.wave)

    def run(self):
        while True:
            while not self.running:
                self.handle(*self.connection.inbox.get())
            while not self.connection.inbox.empty():
                self.handle(*self.connection.inbox.get())
            self.steps += 1
            self.step()


def wakes_the_others():
    """As vllm-project/vllm#39366: a late request comes to an engine that is at rest. It asks the coordinator to wake
    all engines, which leaves out the one that has asked; the other one steps, and waits for it."""
    if RANK == 0:
        child_of(coordinate)
    join_group()
    Engine().run()


KERNEL = """
#include <cmath>
#include <vector>
void kernel_{number}(std::vector<float> &rows)
{{
    for (auto &value : rows)
        value = std::tanh(value * {number}.5f) + std::exp(-value);
}}
"""


def compile_kernel(number):
    source = in_folder(f"kernel{number}.cpp")
    with open(source, "w") as file:
        file.write(KERNEL.format(number=number))
    subprocess.run(["g++", "-O2", "-c", source, "-o", f"{source}.o"], check=True)
    os.remove(source)
    os.remove(f"{source}.o")


def warm_up():
    """All kernels of the model; those that are in the cache are there at once."""
    if RANK == 1:
        for number in range(100_000):
            if number == 2:
                at(RANK)
            compile_kernel(number)


def kernels_cached_on_some():
    """Healthy, as karpathy/nanochat#722: the kernels are in the caches of some ranks, from a run before. One rank has
    none and compiles them, and the others are in the first reduction."""
    join_group()
    warm_up()
    if RANK != 1:
        at(RANK)
    dist.all_reduce(torch.ones(4))


class OffloadedAdam:
    """The state of the rank's part of the weights, in the memory of the host."""

    LAYERS, SIZE = 6, 1 << 20

    def __init__(self):
        self.weights = [torch.ones(self.SIZE) for _ in range(self.LAYERS)]
        self.first = [torch.zeros(self.SIZE) for _ in range(self.LAYERS)]
        self.second = [torch.zeros(self.SIZE) for _ in range(self.LAYERS)]

    def step(self, gradient):
        for weights, first, second in zip(self.weights, self.first, self.second):
            for _ in range(40):  # groups of parameters
                first.mul_(0.9).add_(gradient, alpha=0.1)
                second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                weights.sub_(0.001 * first / (second.sqrt() + 1e-8))


def optimizer_beside_the_accelerator():
    """Healthy, as deepspeedai/DeepSpeed#6834: the optimizer is on the processors, where a step of it takes ten seconds.
    What goes between the ranks before and after that takes no time."""
    join_group()
    optimizer, sums = OffloadedAdam(), torch.ones(OffloadedAdam.SIZE)
    parts = [torch.empty(1024) for _ in range(RANKS)]
    for number in itertools.count():
        dist.all_reduce(sums)
        sums /= RANKS
        if number == 1:
            at(RANK)
        optimizer.step(sums)
        dist.all_gather(parts, optimizer.weights[0][:1024].clone())


PROGRAMS = {
    "shards-of-unlike-length": shards_of_unlike_length,
    "experts-gathered-when-used": experts_gathered_when_used,
    "batched-for-all-peers": batched_for_all_peers,
    "wakes-the-others": wakes_the_others,
    "kernels-cached-on-some": kernels_cached_on_some,
    "optimizer-beside-the-accelerator": optimizer_beside_the_accelerator,
}

if __name__ == "__main__":
    run(PROGRAMS)
