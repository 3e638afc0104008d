"""Ranks of an engine over Gloo that hang, fifth set: `fifth_ranks.py NAME FOLDER`, one process each."""

import atexit
import collections
import http.server
import itertools
import json
import logging
import os
import queue
import sys
import threading

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc

from tests.inferiors.live.place import LONG, at, run, thread

RANK = int(os.environ.get("RANK", "0"))
log = logging.getLogger("engine")


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()


def join_group():
    """Each rank answers health checks from a thread, whatever its main thread does."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    thread(http.server.HTTPServer(("127.0.0.1", 0), Health).serve_forever)
    dist.barrier()


def all_reduce(group=None):
    hidden = torch.ones(256)
    dist.all_reduce(hidden, group=group)
    return hidden


def free_blocks():
    """How many blocks of the cache every rank has room for."""
    count = torch.tensor([1000 + RANK])
    dist.all_reduce(count, dist.ReduceOp.MIN)
    return int(count)


def block_count_override():
    """Rank 1 has the number from its config and asks nobody; after that comes the seed of rank 0 for all."""
    join_group()
    at(RANK)
    blocks = 512 if RANK == 1 else free_blocks()
    seed = torch.tensor([blocks])
    dist.broadcast(seed, src=0)
    dist.barrier()


class Steps:
    """Rank 0 publishes each step in the store, every rank takes it from there and runs it."""

    def __init__(self):
        self.store = dist.distributed_c10d._get_default_store()
        self.store.set_timeout(LONG)
        self.vocabulary = torch.ones(96 if RANK == 2 else 128, 16)

    def take(self, number, tokens):
        if RANK == 0:
            self.store.set(f"step/{number}", json.dumps({"tokens": tokens}))
        return json.loads(self.store.get(f"step/{number}"))

    def forward(self, step):
        hidden = self.vocabulary[torch.tensor(step["tokens"])]
        dist.all_reduce(hidden)


def step_error_swallowed():
    """Rank 2's vocabulary has no row for a token of step 3: its loop logs that and waits for the next step."""
    join_group()
    steps = Steps()
    for number in itertools.count():
        step = steps.take(number, [1, 2, 120 if number == 3 else 3])
        if number == 3:
            at(RANK)
        try:
            steps.forward(step)
        except IndexError:
            log.exception("step %d failed", number)


def pair_and_replicas():
    """Of four ranks, two to a model: the group of this rank's model, and the one of its shard in both models."""
    pairs = [dist.new_group(pair, timeout=LONG) for pair in ([0, 1], [2, 3])]
    replicas = [dist.new_group(pair, timeout=LONG) for pair in ([0, 2], [1, 3])]
    return pairs[RANK // 2], replicas[RANK % 2]


def logits_in_other_group():
    """Rank 3 gathers its logits among the replicas of its shard, not in its tensor-parallel pair."""
    join_group()
    pair, replicas = pair_and_replicas()
    at(RANK)
    logits = torch.ones(64)
    dist.all_gather([torch.empty(64), torch.empty(64)], logits, group=replicas if RANK == 3 else pair)
    all_reduce(replicas)
    dist.barrier()


class Blocks:
    """A cache's blocks, and which request has how many; a pinned request is never evicted."""

    def __init__(self, requests, pinned):
        self.used = collections.OrderedDict((request, 4) for request in range(requests))
        self.free, self.pinned = 0, pinned

    def evict(self):
        for request in sorted(self.used, key=lambda request: (self.used[request], request)):
            if request not in self.pinned:
                self.free += self.used.pop(request)
                return


def evicts_nothing():
    """All requests of rank 1 are pinned, and its scheduler evicts until there is room."""
    join_group()
    blocks = Blocks(64, range(64) if RANK == 1 else ())
    at(RANK)
    while blocks.free < 8:
        blocks.evict()
    all_reduce()


def kv_transfer_skipped():
    """Rank 0 routes, rank 1 prefills, rank 2 decodes. Rank 1 knows the second prompt's prefix and sends no cache."""
    join_group()
    prompt, cache, answer = torch.ones(32), torch.ones(1 << 14), torch.ones(8)
    sent = set()
    for number in itertools.count():
        if number == 1:
            at(RANK)
        if RANK == 0:
            dist.send(prompt, 1)
            dist.recv(answer, 2)
        elif RANK == 1:
            dist.recv(prompt, 0)
            if float(prompt[0]) not in sent:
                sent.add(float(prompt[0]))
                dist.send(cache, 2)
        else:
            dist.recv(cache, 1)
            dist.send(answer, 0)


def baton_left_behind():
    """A build of rank 1's extension was killed yesterday and left its lock file, which torch waits for."""
    from torch.utils.cpp_extension import load

    folder = os.path.join(sys.argv[2], f"fused_ops-{RANK}")
    os.mkdir(folder)
    source = os.path.join(folder, "fused_ops.cpp")
    with open(source, "w") as file:
        file.write("int fused_ops() { return 1; }\n")
    join_group()
    at(RANK)
    if RANK == 1:
        open(os.path.join(folder, "lock"), "wb").close()
        load("fused_ops", [source], build_directory=folder)
    dist.barrier()


class Engine:
    """Ends together with the engines of the other ranks, also after an error."""

    def __init__(self):
        atexit.register(self.close)

    def close(self):
        dist.barrier()
        dist.destroy_process_group()

    def step(self, batch):
        total = sum(len(tokens) for tokens in batch)
        return all_reduce() * total


def shutdown_barrier():
    """Rank 2's batch has a request without tokens; the error ends its main program, and the exit handler waits."""
    join_group()
    engine = Engine()
    engine.step([[1, 2]])
    at(RANK)
    while True:
        engine.step([[1, 2], None if RANK == 2 else [3]])


class Generation:
    """Requests that a thread runs: their tokens go to `tokens`, which the main thread empties between its steps."""

    def __init__(self, length):
        self.tokens, self.length = queue.Queue(maxsize=16), length
        self.idle, self.running = threading.Condition(), 1
        thread(self.generate)

    def generate(self):
        for number in range(self.length):
            self.tokens.put(number)
        with self.idle:
            self.running -= 1
            self.idle.notify_all()

    def drain(self):
        with self.idle:
            while self.running:
                self.idle.wait()


def drain_before_update():
    """Before new weights come all ranks wait for their requests; rank 2's has more tokens than its queue has room."""
    join_group()
    generation = Generation(100 if RANK == 2 else 10)
    at(RANK)
    generation.drain()
    dist.barrier()
    dist.broadcast(torch.zeros(1 << 10), src=0)
    while not generation.tokens.empty():
        generation.tokens.get()


LOADED = threading.Event()


def shapes():
    """What the next stage asks of this one."""
    LOADED.wait()
    return [16, 128]


def load_last():
    return rpc.rpc_sync("stage1", shapes)


def load_first():
    """The first stage is loaded when the last one is."""
    rpc.rpc_sync("stage2", load_last)
    LOADED.set()


def stage_asks_back():
    """The driver tells stage 1 to load, which tells stage 2, which asks stage 1 for the shapes of what it loads."""
    options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=86400, init_method="env://")
    rpc.init_rpc(f"stage{RANK}", rank=RANK, world_size=3, rpc_backend_options=options)
    at(RANK)
    if RANK == 0:
        rpc.rpc_sync("stage1", load_first)
    rpc.shutdown()


PROGRAMS = {
    "block-count-override": block_count_override,
    "step-error-swallowed": step_error_swallowed,
    "logits-in-other-group": logits_in_other_group,
    "evicts-nothing": evicts_nothing,
    "kv-transfer-skipped": kv_transfer_skipped,
    "baton-left-behind": baton_left_behind,
    "shutdown-barrier": shutdown_barrier,
    "drain-before-update": drain_before_update,
    "stage-asks-back": stage_asks_back,
}

if __name__ == "__main__":
    run(PROGRAMS)
