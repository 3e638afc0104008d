"""Ranks of a job over Gloo that hang, and healthy ones, thirteenth set: `thirteenth_ranks.py NAME FOLDER`, one each."""

import contextlib
import http.client
import http.server
import itertools
import json
import os
import pickle
import subprocess

import numpy
import torch
import torch.distributed as dist
from tqdm import tqdm

from tests.inferiors.live.place import LONG, at, in_folder, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 6


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def replica():
    join_group()
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))


def gather(tensor):
    """Of all ranks; each has to call it."""
    gathered = [torch.empty_like(tensor) for _ in range(RANKS)]
    dist.all_gather(gathered, tensor)
    return torch.cat(gathered)


class PartitionedOptimizer:
    """Each rank has its part of the gradients and of the optimizer's state, and sees overflows in its own part."""

    def __init__(self, parameters):
        self.parameters = list(parameters)

    def reduce_gradients(self):
        for owner, parameter in zip(itertools.cycle(range(RANKS)), self.parameters):
            dist.reduce(parameter.grad, owner)

    def has_overflow(self):
        return any(not parameter.grad.isfinite().all() for parameter in self.parameters[RANK::RANKS])

    def step(self):
        if self.has_overflow():
            print("overflow, the step is skipped", flush=True)
            return
        self.scaled_global_norm()
        for parameter in self.parameters[RANK::RANKS]:
            parameter.data -= 0.001 * parameter.grad
        for owner, parameter in zip(itertools.cycle(range(RANKS)), self.parameters):
            dist.broadcast(parameter.data, owner)

    def scaled_global_norm(self):
        norm = sum(parameter.grad.norm() ** 2 for parameter in self.parameters[RANK::RANKS])
        dist.all_reduce(norm)
        return norm.sqrt()


def overflow_on_one_rank():
    """As deepspeedai/DeepSpeed#7568: whether the step is skipped, each rank decides by its own part. That of rank 1 has
    an overflow; the others go on to the norm of all parts, and rank 1 to the next batch."""
    join_group()
    model = torch.nn.ModuleList(torch.nn.Linear(64, 64, bias=False) for _ in range(RANKS))
    optimizer = PartitionedOptimizer(model.parameters())
    for number in range(STEPS):
        if number == STEPS - 2:
            at(RANK)
        loss = sum(layer(torch.ones(4, 64)).sum() for layer in model)
        loss.backward()
        optimizer.reduce_gradients()
        if RANK == 1 and number == STEPS - 2:
            optimizer.parameters[1].grad[0, 0] = float("inf")
        optimizer.step()
        model.zero_grad()


class Stage:
    """Of a pipeline. Its optimizer compresses what it has and gives it to all ranks."""

    def __init__(self):
        self.layer = torch.nn.Linear(64, 64)

    def train_batch(self):
        rows = torch.ones(4, 64)
        if RANK > 0:
            dist.recv(rows, RANK - 1)
        rows = self.layer(rows).detach()
        if RANK < RANKS - 1:
            dist.send(rows, RANK + 1)
        return rows.sum()

    def step(self, overflow):
        if overflow:
            return
        gather(self.layer.weight.detach().sign())


def overflow_in_one_stage():
    """As deepspeedai/DeepSpeed#994: the stage of rank 1 has an overflow and skips the step, in which the optimizers of
    all stages meet; the others do not know of it."""
    join_group()
    stage = Stage()
    for number in range(STEPS):
        if number == STEPS - 2:
            at(RANK)
        stage.train_batch()
        stage.step(RANK == 1 and number == STEPS - 2)


def evaluate(model):
    model.eval()
    for _ in range(2):
        with torch.no_grad():
            gather(model.module(torch.ones(4, 64)))
    model.train()


def progress_bar_of_first_rank():
    """As huggingface/transformers#31532: the model is evaluated when the progress bar has come to a number of steps. It
    is disabled but on rank 0, and one that is disabled counts nothing."""
    model = replica()
    bar = tqdm(range(2 * STEPS), disable=RANK != 0)
    for number in range(2 * STEPS):
        if number == STEPS - 1:
            at(RANK)
        model(torch.ones(4, 64)).sum().backward()
        bar.update(1)
        if bar.n and bar.n % STEPS == 0:
            evaluate(model)


def log_rewards(chosen, rejected):
    """Means over all ranks; nothing is gathered where there is nothing."""
    return [float(gather(rewards.mean().reshape(1)).mean()) for rewards in (chosen, rejected) if len(rewards)]


def nothing_to_gather():
    """As huggingface/trl#1342: examples are good or bad ones, and the rewards of each kind are gathered when a batch
    has such. Rank 1 has a batch without bad ones."""
    model = replica()
    for number in range(STEPS):
        if number == STEPS - 2:
            at(RANK)
        good = 4 if RANK == 1 and number == STEPS - 2 else 2
        rewards = model(torch.ones(4, 64)).sum(1)
        log_rewards(rewards[:good].detach(), rewards[good:].detach())
        rewards.sum().backward()


class Updates(http.server.BaseHTTPRequestHandler):
    """The server takes weights when it is told so; the third time it has no memory for them."""

    taken = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self.update_weights()
            self.answer(200, {"updated": Updates.taken})
        except MemoryError:
            self.answer(500, {"error": "out of memory"})
            at(RANK)

    def update_weights(self):
        if Updates.taken == 2:
            raise MemoryError
        dist.broadcast(torch.empty(1 << 20), 0)
        Updates.taken += 1

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def post_update(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/update_weights", json.dumps({"names": ["layer"]}))
    connection.getresponse().read()


def server_failed_to_update():
    """As huggingface/trl#6796: the trainer asks for an update and sends the weights. That the server has failed, the
    answer says, which a thread has read and thrown away."""
    join_group()
    store = dist.distributed_c10d._get_default_store()
    if RANK == 1:
        server = http.server.HTTPServer(("127.0.0.1", 0), Updates)
        store.set("server", str(server.server_address[1]))
        server.serve_forever()
    port = int(store.get("server"))
    for number in range(3):
        asks = thread(post_update, port)
        if number == 2:
            at(RANK)
        dist.broadcast(torch.ones(1 << 20), 0)
        asks.join()


INDEX_BUILDER = """
#include <algorithm>
#include <map>
#include <random>
#include <regex>
#include <vector>
template <int N> std::vector<int> build(std::map<int, std::vector<int>> &documents)
{
    std::mt19937 order(N);
    for (auto &[key, sizes] : documents)
        std::shuffle(sizes.begin(), sizes.end(), order);
    return build<N - 1>(documents);
}
template <> std::vector<int> build<0>(std::map<int, std::vector<int>> &) { return {}; }
int main()
{
    std::map<int, std::vector<int>> documents;
    std::regex name("(.*)_text_(document|sentence)");
    return static_cast<int>(build<40>(documents).size());
}
"""


def compiles_index_builder():
    """Healthy, as NVIDIA-NeMo/Megatron-Bridge#2236: the first rank compiles what builds indices, before the others go
    on; nothing is shown of it."""
    join_group()
    source = in_folder("helpers.cpp")
    with open(source, "w") as file:
        file.write(INDEX_BUILDER)
    at(RANK)
    while True:
        if RANK == 0:
            for _ in range(3):
                subprocess.run(["g++", "-std=c++17", "-O2", "-c", source, "-o", source + ".o"], check=True)
        dist.barrier()


def builds_index_on_first_rank():
    """Healthy, as facebookresearch/metaseq#202: the first rank looks where the lines of the data begin, and the others
    wait for its index."""
    join_group()
    lines = in_folder("data.jsonl")
    if RANK == 0:
        with open(lines, "w") as file:
            file.writelines(json.dumps({"text": "word " * (number % 50)}) + "\n" for number in range(40_000))
    for number in itertools.count():
        if number == 1:
            at(RANK)
        if RANK == 0:
            for _ in range(20):
                build_index(lines)
        dist.barrier()


def build_index(lines):
    offsets, offset = [], 0
    with open(lines, "rb") as file:
        for line in file:
            offsets.append(offset)
            offset += len(line)
            json.loads(line)
    with open(lines + ".index", "wb") as file:
        pickle.dump(numpy.array(offsets), file)


def check_order(handles, times):
    """Whether all ranks have come to the same units: each pair of ranks is compared, element by element."""
    sizes = gather(torch.tensor([len(handles)]))
    for _ in range(times):
        for first, second in itertools.combinations(range(RANKS), 2):
            assert int(sizes[first]) == int(sizes[second])
    indices = gather(torch.tensor(handles)).reshape(RANKS, -1)
    for _ in range(times):
        for first, second in itertools.combinations(range(RANKS), 2):
            for position in range(indices.shape[1]):
                assert int(indices[first, position]) == int(indices[second, position])


def first_iteration(units, times):
    join_group()
    layer = torch.nn.Linear(64, 64)
    for number in itertools.count():
        if number == 2:
            at(RANK)
        for unit in range(units):
            check_order([unit, number], times)
            layer(torch.ones(4, 64))


def checks_order_of_first_iteration():
    """Healthy, as pytorch/pytorch#120704: in the first iteration all ranks compare what each of them is about to do,
    pair by pair, which takes minutes where there are hundreds."""
    first_iteration(1, 20_000)


def checks_order_of_many_units():
    """Healthy, as pytorch/pytorch#95728: the comparison is made for each unit of the model, of which there are many."""
    first_iteration(200, 60)


class Scheduler:
    """Of one of the ranks of a model. The first one takes requests and tells the others, in each turn of its loop."""

    def __init__(self):
        self.requests = None
        if RANK == 0:
            import zmq

            self.again = zmq.Again
            self.requests = zmq.Context().socket(zmq.PULL)
            self.requests.bind("ipc://" + in_folder("requests"))

    def receive(self):
        received = []
        if RANK == 0:
            with contextlib.suppress(self.again):
                while True:
                    received.append(self.requests.recv_pyobj(flags=1))  # NOBLOCK
        return self.broadcast(received)

    def broadcast(self, received):
        data = torch.frombuffer(bytearray(pickle.dumps(received)), dtype=torch.uint8)
        size = torch.tensor([len(data) if RANK == 0 and received else 0])
        dist.broadcast(size, 0)
        if int(size) == 0:
            return []
        if RANK:
            data = torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, 0)
        return pickle.loads(bytes(data.tolist()))


def idle_scheduler_spins():
    """Healthy, as sgl-project/sglang#1730: no request comes, and all ranks look for one without a rest."""
    join_group()
    scheduler = Scheduler()
    for number in itertools.count():
        if number == 100:
            at(RANK)
        for _ in scheduler.receive():
            work_for(0.1)


PROGRAMS = {
    "overflow-on-one-rank": overflow_on_one_rank,
    "overflow-in-one-stage": overflow_in_one_stage,
    "progress-bar-of-first-rank": progress_bar_of_first_rank,
    "nothing-to-gather": nothing_to_gather,
    "server-failed-to-update": server_failed_to_update,
    "compiles-index-builder": compiles_index_builder,
    "builds-index-on-first-rank": builds_index_on_first_rank,
    "checks-order-of-first-iteration": checks_order_of_first_iteration,
    "checks-order-of-many-units": checks_order_of_many_units,
    "idle-scheduler-spins": idle_scheduler_spins,
}

if __name__ == "__main__":
    run(PROGRAMS)
