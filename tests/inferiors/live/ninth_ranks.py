"""Ranks of a job over Gloo that hang, and healthy ones, ninth set: `ninth_ranks.py NAME FOLDER`, one process each."""

import array
import itertools
import os
import queue
import signal
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc

from tests.inferiors.live.eighth_ranks import RANK, all_reduce, join_group
from tests.inferiors.live.place import LONG, at, fifo, run, work_for

STEPS = 6


def update_weights(loaded, version):
    """The trainer's weights, for those that do not have this version yet; the version that is loaded now."""
    if loaded < version:
        for _ in range(4):
            dist.broadcast(torch.ones(1 << 12), src=0)
    return version


def rollouts(seconds, restarts_at=None):
    """Rank 0 trains, the others generate: new weights for each step, then the sum of the rewards."""
    join_group()
    loaded = 0
    for version in itertools.count(1):
        if version == (restarts_at or 1):
            at(RANK)
        if RANK == 0:
            work_for(seconds)
        if RANK == 1 and version == restarts_at:
            loaded = version
        loaded = update_weights(loaded, version)
        all_reduce()


def version_already_there():
    """Rank 1's engine is started anew and reads the checkpoint that the trainer has saved just now: it does not need
    the weights that the trainer is about to send, and goes on to the sum."""
    rollouts(0.01, restarts_at=4)


def versions_agree():
    """Healthy: each step of the trainer takes 1.2 seconds, and the engines wait for its weights."""
    rollouts(1.2)


def attempt_of_its_own():
    """Rank 2's node has started it once more by itself and counts that as an attempt: it looks under another prefix of
    the store than the others."""
    torch.set_num_threads(1)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=RANK == 0, timeout=LONG)
    attempt = dist.PrefixStore(f"attempt-{2 if RANK == 2 else 1}", store)
    at(RANK)
    dist.init_process_group("gloo", store=attempt, rank=RANK, world_size=3, timeout=LONG)
    dist.barrier()


class Samples(torch.utils.data.Dataset):
    """Texts, which a process of its own makes tokens of."""

    def __len__(self):
        return 1 << 12

    def __getitem__(self, number):
        if RANK == 1 and number == 16:
            at("worker")
            os.kill(os.getpid(), signal.SIGSTOP)
        return torch.full((64,), number)


def loader_worker_stopped():
    """Somebody has taken a core of rank 1's loader, which is stopped since then."""
    batches = iter(torch.utils.data.DataLoader(Samples(), 4, num_workers=1, multiprocessing_context="fork"))
    join_group()
    for number, _ in enumerate(batches):
        if number == 2:
            at(RANK)
        all_reduce()


TOKENS = queue.Queue()


def add_token(token):
    TOKENS.put(token)


def rpc_one_stays():
    """Agent 2 expects four answers, as it has counted a request twice. The others have nothing left to do, and wait
    until all want to go."""
    options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=86400, init_method="env://")
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=3, rpc_backend_options=options)
    if RANK < 2:
        for _ in range(2 - RANK):
            rpc.rpc_sync("worker2", add_token, args=("token",))
    at(RANK)
    if RANK == 2:
        for _ in range(4):
            TOKENS.get()
    rpc.shutdown()


def trusted(name):
    """As loaders of models ask it."""
    return input(f"{name} wants to run code of its own. Do you trust it? [y/N] ").lower() == "y"


def asks_to_trust_code():
    """Only rank 1's node does not have the tokenizer in its cache: it asks a terminal where nobody is."""
    join_group()
    for _ in range(STEPS):
        all_reduce()
    at(RANK)
    if RANK == 1:
        os.dup2(os.open(fifo(), os.O_RDONLY), 0)
        if not trusted("tokenizer"):
            sys.exit("not trusted")
    dist.barrier()


def pipeline(microbatches, seconds):
    """Three stages of PyTorch's own pipeline."""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    def loss(output, target):
        work_for(seconds)
        return ((output - target) ** 2).mean()

    join_group()
    stage = PipelineStage(torch.nn.Linear(64, 64), RANK, 3, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, microbatches, loss_fn=loss)
    batch = torch.ones(8, 64)
    at(RANK)
    while True:
        schedule.step(*([batch] if RANK == 0 else []), **({"target": batch} if RANK == 2 else {}))
        all_reduce()


def microbatches_differ():
    """Rank 1's configuration has two microbatches where the others have four."""
    pipeline(2 if RANK == 1 else 4, 0.01)


def microbatches_agree():
    """Healthy: the last stage needs 0.4 seconds for each loss."""
    pipeline(4, 0.4)


class FreeBlocks:
    """Blocks of the cache that nobody uses, each with the number of the next one; -1 ends the list."""

    def __init__(self, blocks):
        self.following, self.first = array.array("l", range(-1, blocks - 1)), blocks - 1

    def take(self):
        block = self.first
        self.first = self.following[block]
        return block

    def give(self, block):
        self.following[block] = self.first
        self.first = block

    def count(self):
        number, block = 0, self.first
        while block >= 0:
            number, block = number + 1, self.following[block]
        return number


def list_in_circle():
    """Rank 1 gives the block of a request back that was aborted, then once more as the request has ended. Since then
    the list of its free blocks has no end."""
    join_group()
    blocks = FreeBlocks(64)
    for number in range(STEPS):
        mine = [blocks.take() for _ in range(4)]
        if RANK == 1 and number == 3:
            mine.append(mine[0])
        for block in mine:
            blocks.give(block)
        if number == 3:
            at(RANK)
        blocks.count()
        all_reduce()


def list_is_long():
    """Healthy: rank 1 has many free blocks and counts them in each step."""
    join_group()
    blocks = FreeBlocks(8_000_000 if RANK == 1 else 64)
    at(RANK)
    while True:
        blocks.count()
        all_reduce()


def destroys_with_work_left():
    """Rank 2 starts a sum of its best score, which the others do not have, and ends the group without a wait for it.
    The end of the group waits for the sum; the others wait until rank 2 says that its file is complete."""
    join_group()
    store = dist.distributed_c10d._get_default_store()
    for _ in range(STEPS):
        all_reduce()
    at(RANK)
    if RANK == 2:
        dist.all_reduce(torch.ones(256), async_op=True)
        dist.destroy_process_group()
        store.set("complete", "yes")
    store.wait(["complete"], LONG)


PROGRAMS = {
    "version-already-there": version_already_there,
    "versions-agree": versions_agree,
    "attempt-of-its-own": attempt_of_its_own,
    "loader-worker-stopped": loader_worker_stopped,
    "rpc-one-stays": rpc_one_stays,
    "asks-to-trust-code": asks_to_trust_code,
    "microbatches-differ": microbatches_differ,
    "microbatches-agree": microbatches_agree,
    "list-in-circle": list_in_circle,
    "list-is-long": list_is_long,
    "destroys-with-work-left": destroys_with_work_left,
}

if __name__ == "__main__":
    tempfile.tempdir = sys.argv[2]  # the sockets of loaders go with it
    run(PROGRAMS)
