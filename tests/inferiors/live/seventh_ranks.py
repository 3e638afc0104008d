"""Ranks of an engine over Gloo that hang, and healthy twins, seventh set: `seventh_ranks.py NAME FOLDER`, one process
each."""

import ctypes
import os

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, run, work_for
from tests.inferiors.live.seventh_extension import extension

RANK = int(os.environ.get("RANK", "0"))
HOSTS = ("node-a", "node-b", "node-b")
"""The job's list of hosts, one line of which was copied and not edited."""


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def all_reduce(group=None):
    numbers = torch.ones(256)
    dist.all_reduce(numbers, group=group)
    return numbers


def rank_number_twice():
    """Each process looks its host up in the list: the third one joins as rank 1 as well, and there is no rank 2."""
    torch.set_num_threads(1)
    number = HOSTS.index(HOSTS[RANK])
    at(RANK)
    dist.init_process_group("gloo", rank=number, world_size=len(HOSTS), timeout=LONG)
    dist.barrier()


def sharded_model():
    """Each rank has a third of each layer, and every forward gathers layer after layer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (3,))
    model = torch.nn.Sequential(*(torch.nn.Linear(48, 48) for _ in range(3)))
    for layer in (*model, model):
        fully_shard(layer, mesh=mesh)
    return model


def generates_until_own_end():
    """Rank 1's answer ends after six tokens, those of the others are longer; a forward needs the weights of all."""
    join_group()
    rewards, model = dist.new_group([0, 1, 2], timeout=LONG), sharded_model()
    hidden, wanted = torch.ones(1, 48), 6 if RANK == 1 else 12
    with torch.no_grad():
        for number in range(wanted):
            if number == 5:
                at(RANK)
            hidden = model(hidden)
    all_reduce(rewards)
    dist.barrier()


def generates_until_all_end():
    """The twin: who has its answer goes on with forwards until all have theirs. Rank 1 also samples slowly."""
    join_group()
    left, model = dist.new_group([0, 1, 2], timeout=LONG), sharded_model()
    at(RANK)
    while True:
        wanted, most = 3 if RANK == 1 else 9, torch.ones(1)
        with torch.no_grad():
            while float(most):
                model(torch.ones(1, 48))
                work_for(0.3 if RANK == 1 else 0.01)
                wanted -= 1
                most = torch.tensor([float(max(wanted, 0))])
                dist.all_reduce(most, dist.ReduceOp.MAX, group=left)


def prints_sharded_norm():
    """Rank 0 logs the norm of a weight, of which each rank has a shard: the whole of it comes by a collective."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    join_group()
    steps = dist.new_group([0, 1, 2], timeout=LONG)
    weight = distribute_tensor(torch.ones(48, 48), init_device_mesh("cpu", (3,)), [Shard(0)])
    all_reduce(steps)
    at(RANK)
    if RANK == 0:
        print("norm", float(weight.full_tensor().norm()), flush=True)
    while True:
        all_reduce(steps)


class Stage:
    """Two stages, each on two replicas: ranks 0 and 1 have the first one, 2 and 3 the last. The first stage's embedding
    is the last one's head, so both add up its gradients."""

    def __init__(self, tied):
        pairs = [([0, 1], [2, 3]), ([0, 2], [1, 3])]
        groups = [[dist.new_group(pair, timeout=LONG) for pair in both] for both in pairs]
        self.replicas, self.ends, self.tied = groups[0][RANK // 2], groups[1][RANK % 2], tied

    def step(self, seconds):
        """One micro-batch forward and back, then the gradients: of the embedding, of the stage, and their norm."""
        hidden, other = torch.ones(64), (RANK + 2) % 4
        if RANK < 2:
            work_for(seconds)
            dist.send(hidden, other)
            dist.recv(hidden, other)
        else:
            dist.recv(hidden, other)
            work_for(seconds)
            dist.send(hidden, other)
        if self.tied:
            all_reduce(self.ends)
        all_reduce(self.replicas)
        all_reduce()


def tied_embedding_skipped():
    """Rank 3's configuration says that head and embedding are two: it leaves the sum of their gradients out."""
    join_group()
    stage = Stage(tied=RANK != 3)
    at(RANK)
    while True:
        stage.step(0.01)


def uneven_stages():
    """The twin: head and embedding are one on all ranks, and the last stage of the second replica is slow."""
    join_group()
    stage = Stage(tied=True)
    at(RANK)
    while True:
        stage.step(0.8 if RANK == 3 else 0.05)


def crash_handler_waits():
    """Rank 2 reads beyond its block table. The handler of the extension says so and waits for a debugger."""
    join_group()
    library = extension()
    library.table_open()
    at(RANK)
    library.table_row(ctypes.c_long(1 << 40 if RANK == 2 else 5))
    all_reduce()


PROGRAMS = {
    "rank-number-twice": rank_number_twice,
    "generates-until-own-end": generates_until_own_end,
    "generates-until-all-end": generates_until_all_end,
    "prints-sharded-norm": prints_sharded_norm,
    "tied-embedding-skipped": tied_embedding_skipped,
    "uneven-stages": uneven_stages,
    "crash-handler-waits": crash_handler_waits,
}

if __name__ == "__main__":
    run(PROGRAMS)
