"""Ranks of a job over Gloo that hang, and healthy ones, thirty-fourth set: `thirty_fourth_ranks.py NAME FOLDER`."""

import hashlib
import os
import queue
import socket
import threading

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, in_folder, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class ShardedModel:
    """Each rank has a part of the weights."""

    def __init__(self, size=96):
        self.shard = torch.full((size // RANKS,), 0.1 * (RANK + 1))

    def step(self):
        gradient = torch.ones(8) * self.shard.mean()
        work_for(0.02)
        dist.all_reduce(gradient)
        self.shard -= 0.01 * gradient.mean()

    def full_state(self):
        parts = [torch.empty_like(self.shard) for _ in range(RANKS)]
        dist.all_gather(parts, self.shard)
        return {"weights": torch.cat(parts)}


class Finetuning:
    STEPS = 5
    LOSSES = ((1.0, 1.6, 0.9), (1.0, 0.5, 0.9), (1.0, 1.2, 0.9))
    """What the samples of each rank give, epoch by epoch."""

    def __init__(self):
        self.model, self.best = ShardedModel(), float("inf")

    def train(self):
        for _ in range(self.STEPS):
            self.model.step()

    def validate(self, epoch):
        total = torch.tensor([self.LOSSES[RANK][epoch] * 4, 4.0])
        dist.reduce(total, 0, op=dist.ReduceOp.SUM)
        return float(total[0] / total[1])

    def save(self):
        state = self.model.full_state()
        if RANK == 0:
            torch.save(state, in_folder("best.pt"))

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train()
            loss = self.validate(epoch)
            print(f"epoch {epoch}: {loss:.3f}, best {self.best:.3f}", flush=True)
            if epoch == 1:
                at(RANK)
            if loss < self.best:
                self.best = loss
                self.save()


def saves_its_best_loss():
    """As pytorch/pytorch#77562: a model is saved where its loss is the best one up to now, and the loss is reduced to
    the first rank instead of to all."""
    join_group()
    Finetuning().fit(3)


class ModelRunner:
    """Of one rank of a model whose experts are on all ranks."""

    HIDDEN = 16

    def __init__(self, launcher):
        self.launcher = launcher

    def experts(self, hidden):
        mine = torch.empty_like(hidden)
        dist.all_to_all_single(mine, hidden)
        back = torch.empty_like(mine)
        dist.all_to_all_single(back, mine * 2)
        return back

    def forward(self, tokens):
        hidden = torch.zeros(RANKS * 4, self.HIDDEN)
        hidden[: len(tokens)] = torch.tensor(tokens, dtype=torch.float32)[:, None]
        for _ in range(3):
            work_for(0.01)
            hidden = self.experts(hidden)
        return [int(value) % 1000 for value in hidden[: len(tokens), 0].tolist()]

    def execute_model(self, tokens):
        if not tokens:
            if self.launcher == "external":
                self.forward([0])
            return []
        return self.forward(tokens)


class EngineCore:
    def __init__(self):
        self.inputs, self.waves = queue.Queue(), 0
        self.here, self.front = socket.socketpair()
        self.runner = ModelRunner("multiproc")
        thread(self.receive_inputs)

    def receive_inputs(self):
        with self.here.makefile("r") as lines:
            for line in lines:
                self.inputs.put([int(word) for word in line.split()])

    def submit(self, tokens):
        self.front.sendall(f"{' '.join(map(str, tokens))}\n".encode())

    def busy_loop(self):
        while True:
            tokens = self.inputs.get()
            self.waves += 1
            print(f"wave {self.waves}: {self.runner.execute_model(tokens)}", flush=True)
            if self.waves == 2:
                dist.barrier()
                at(RANK)


def leaves_out_the_dummy_batch():
    """As vllm-project/vllm#53578: each rank runs a wave with the requests that it has. In the third one only the first
    rank has one."""
    join_group()
    core = EngineCore()
    core.submit([3, 5, 7])
    core.submit([11, RANK])
    core.submit([13, 17] if RANK == 0 else [])
    core.busy_loop()


class Stage:
    """The first rank takes requests, the others follow it."""

    def __init__(self):
        self.encoders = {"image": 64, "audio": 128}
        self.requests, self.stopped = queue.Queue(), threading.Event()

    def encode(self, request):
        return {kind: torch.ones(self.encoders[kind]) for kind in request["inputs"]}

    def forward(self, batch, features):
        total = torch.tensor([float(sum(batch["tokens"])) + sum(float(one.sum()) for one in features.values())])
        dist.all_reduce(total)
        return float(total)

    def lead(self):
        try:
            while True:
                request = self.requests.get()
                dist.broadcast_object_list([{"tokens": request["tokens"], "number": request["number"]}], src=0)
                features = self.encode(request)
                dist.broadcast_object_list([features], src=0)
                print(self.forward(request, features), flush=True)
        except Exception as error:
            print(f"scheduler: {type(error).__name__}: {error}", flush=True)

    def follow(self):
        while True:
            batch, features = [None], [None]
            dist.broadcast_object_list(batch, src=0)
            if batch[0]["number"] == 2:
                at(RANK)
            dist.broadcast_object_list(features, src=0)
            self.forward(batch[0], features[0])


def fails_between_two_broadcasts():
    """As sgl-project/sglang-omni#270: the followers of the first rank get a batch, and then what comes from the
    encoders."""
    join_group()
    stage = Stage()
    if RANK != 0:
        stage.follow()
    for number, inputs in enumerate((("image",), ("image", "audio"), ("video",))):
        stage.requests.put({"number": number, "tokens": [1, 2, 3], "inputs": inputs})
    scheduler = thread(stage.lead)
    scheduler.join()
    at(RANK)
    stage.stopped.wait()


def tokenize(line):
    return [int(hashlib.sha1(word.encode()).hexdigest()[:4], 16) for word in line.split()]


def tokenizes_before_it_joins():
    """As SpongebBob/Finetune-ChatGLM2-6B#6, healthy: there are many samples, and the first rank goes through all of
    them before it joins the others."""
    torch.set_num_threads(1)
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, RANKS, RANK == 0, LONG, wait_for_workers=False)
    at(RANK)
    if RANK == 0:
        with open(in_folder("tokens.txt"), "w") as file:
            for number in range(60_000_000):
                tokens = tokenize(f"question {number} what is {number % 977} plus {number % 331} answer {number}")
                if number % 20_000 == 0:
                    file.write(f"{tokens}\n")
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=RANKS, timeout=LONG)
    dist.barrier()


def reduces_by_its_processors():
    """As OlaWod/FreeVC#34, healthy: gradients go through the processors, which are busy all the time."""
    join_group()
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Conv1d(64, 64, 5, padding=2) for _ in range(6)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    at(RANK)
    for step in range(10_000_000):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 64, 256)).pow(2).mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= RANKS
        optimizer.step()
        if RANK == 0 and step % 50 == 0:
            print(f"step {step}: {float(loss.detach()):.4f}", flush=True)


PROGRAMS = {
    "saves-its-best-loss": saves_its_best_loss,
    "leaves-out-the-dummy-batch": leaves_out_the_dummy_batch,
    "fails-between-two-broadcasts": fails_between_two_broadcasts,
    "tokenizes-before-it-joins": tokenizes_before_it_joins,
    "reduces-by-its-processors": reduces_by_its_processors,
}

if __name__ == "__main__":
    run(PROGRAMS)
