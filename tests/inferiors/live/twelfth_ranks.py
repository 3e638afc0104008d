"""Ranks of a job over Gloo that hang, and healthy ones, twelfth set: `twelfth_ranks.py NAME FOLDER`, one each."""

import contextlib
import itertools
import json
import selectors
import socket

import torch
import torch.distributed as dist

from tests.inferiors.live.eighth_ranks import RANK, all_reduce, join_group, replica
from tests.inferiors.live.place import at, child_of, in_folder, run, wait_for_role, work_for

STEPS = 6


class SyncedNorm(torch.nn.Module):
    """The mean of all ranks while it trains, and the one that it has kept otherwise."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("kept", torch.zeros(size))

    def forward(self, rows):
        mean = self.kept
        if self.training:
            means = [torch.empty_like(mean) for _ in range(dist.get_world_size())]
            dist.all_gather(means, rows.detach().mean(0))
            mean = torch.stack(means).mean(0)
            self.kept.lerp_(mean, 0.1)
        return rows - mean


def evaluate(model, batches):
    model.eval()
    total = sum(model(torch.ones(4, 64) * number).sum() for number in range(batches))
    dist.all_reduce(total)


def log_example(model):
    """What the model says to one text, for the log; then it trains again."""
    model.eval()
    print("example", float(model.norm(torch.ones(1, 64)).sum()), flush=True)
    model.train()


def one_rank_in_training_mode():
    """Rank 1 logs an example in the middle of the evaluation. What does that leaves the model in training mode, in
    which the next batch wants the means of all ranks."""
    join_group()
    model = torch.nn.Sequential()
    model.add_module("linear", torch.nn.Linear(64, 64).requires_grad_(False))
    model.add_module("norm", SyncedNorm(64))
    for number in range(STEPS):
        model.train()
        model(torch.ones(4, 64))
        if number < STEPS - 1:
            evaluate(model, 3)
    model.eval()
    total = torch.zeros(())
    for number in range(4):
        if number == 2:
            at(RANK)
        if RANK == 1 and number == 2:
            log_example(model)
        total += model(torch.ones(4, 64)).sum()
    dist.all_reduce(total)


def send_result(times):
    for _ in range(times):
        dist.send(torch.full((64,), float(RANK)), 0)


def result_sent_twice():
    """Rank 0 takes a result from whoever has one, two for each step. Rank 1 was told to run a request again, and sends
    the result of both runs: rank 0 has its two, and the one of rank 2 is left over."""
    join_group()
    for number in range(STEPS):
        if number == STEPS - 1:
            at(RANK)
        if RANK == 2:
            work_for(0.3)
        if RANK == 0:
            result = torch.empty(64)
            for _ in range(2):
                dist.recv(result)
        else:
            send_result(2 if RANK == 1 and number == STEPS - 1 else 1)
        dist.barrier()


def rpc_not_joined():
    """Ranks 0 and 1 share embeddings by calls of one another. Rank 2's configuration says that it has none, and it
    makes no agent; there are to be three."""
    from torch.distributed import rpc

    join_group()
    at(RANK)
    if RANK != 2:
        store = dist.distributed_c10d._get_default_store()
        listens = socket.create_server(("127.0.0.1", 0))  # a port that nobody has
        if RANK == 0:
            store.set("rpc", str(listens.getsockname()[1]))
        listens.close()
        port = int(store.get("rpc"))
        options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=0)
        rpc.init_rpc(f"embeddings{RANK}", rank=RANK, world_size=3, rpc_backend_options=options)
    dist.barrier()


def accumulates_one_longer():
    """From its twelfth batch on rank 1 adds the gradients of five batches up, and not of four: it read the schedule a
    step too early. The next sum of the gradients of the others is with the losses of nobody."""
    model = replica()
    for number in itertools.count(1):
        if number == 2 * STEPS:
            at(RANK)
        wanted = 5 if RANK == 1 and number >= 2 * STEPS else 4
        last = number % wanted == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = model(torch.ones(4, 64)).sum()
            loss.backward()
        losses = [None] * dist.get_world_size()
        dist.all_gather_object(losses, float(loss.detach()))


def accumulates_together():
    """Healthy: gradients of six batches are added up before the ranks meet, and rank 1 needs 0.3 seconds for each."""
    model = replica()
    for number in itertools.count(1):
        if number == 2 * STEPS:
            at(RANK)
        work_for(0.3 if RANK == 1 else 0.02)
        with contextlib.nullcontext() if number % 6 == 0 else model.no_sync():
            model(torch.ones(4, 64)).sum().backward()


class Lines:
    """Messages over a connection."""

    def __init__(self, connection):
        self.connection, self.file = connection, connection.makefile("rb", 0)

    def fileno(self):
        return self.connection.fileno()

    def send(self, **message):
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self):
        return json.loads(self.file.readline())


def coordinate(listens):
    """The coordinator starts a wave of steps on the engines that rest, as each step is made by all. An engine says when
    it rests, and after which wave: who knows of this one already is not told."""
    engines = {}
    for _ in range(3):
        engine = Lines(listens.accept()[0])
        engines[engine.receive()["rank"]] = engine
    selector, rests = selectors.DefaultSelector(), dict.fromkeys(engines, 0)
    for engine in engines.values():
        selector.register(engine, selectors.EVENT_READ)
    for wave in itertools.count(1):
        if wave == 4:
            at("coordinator")
        for rank, engine in engines.items():
            if rests[rank] < wave:
                engine.send(wave=wave)
        while min(rests.values()) < wave:
            for key, _ in selector.select():
                message = key.fileobj.receive()
                rests[message["rank"]] = message["wave"]


def waves(rests_after, seconds):
    if RANK == 0:
        listens = socket.socket(socket.AF_UNIX)
        listens.bind(in_folder("waves.sock"))
        listens.listen()
        child_of(coordinate, listens)
        listens.close()
    join_group()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(in_folder("waves.sock"))
    coordinator = Lines(connection)
    coordinator.send(rank=RANK)
    for number in itertools.count(1):
        if number == 4:
            wait_for_role("coordinator")
            at(RANK)
        wave = coordinator.receive()["wave"]
        for _ in range(4):
            work_for(seconds)
            all_reduce()
        coordinator.send(rank=RANK, wave=rests_after(wave))


def wave_not_started():
    """After the third wave rank 1 says that it rests after the fourth one, as it has counted a request that came late:
    the fourth wave begins without it."""
    waves(lambda wave: 4 if RANK == 1 and wave == 3 else wave, 0.01)


def waves_in_turn():
    """Healthy: the engines rest until a wave begins, and each step of rank 1 takes 0.4 seconds."""
    waves(lambda wave: wave, 0.4 if RANK == 1 else 0.01)


PROGRAMS = {
    "one-rank-in-training-mode": one_rank_in_training_mode,
    "result-sent-twice": result_sent_twice,
    "rpc-not-joined": rpc_not_joined,
    "accumulates-one-longer": accumulates_one_longer,
    "accumulates-together": accumulates_together,
    "wave-not-started": wave_not_started,
    "waves-in-turn": waves_in_turn,
}

if __name__ == "__main__":
    run(PROGRAMS)
