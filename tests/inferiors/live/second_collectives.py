"""Ranks of torch.distributed (Gloo) that wait for ever, second set: `second_collectives.py NAME FOLDER`, each."""

import os
import signal
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.inferiors.live.place import LONG, at, fifo, read_for_ever, run, thread

RANK = int(os.environ.get("RANK", "0"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def place():
    join_group()
    at(RANK)


def all_reduce(group=None):
    dist.all_reduce(torch.ones(512), group=group)


def tensor_parallel_first():
    """Rank 1 does the reduction of its tensor-parallel pair before the world's, the others the other way round."""
    join_group()
    pair = dist.new_group([0, 1])
    at(RANK)
    if RANK == 1:
        all_reduce(pair)
    dist.barrier()
    if RANK == 0:
        all_reduce(pair)
    dist.barrier()


def swallowed_exception():
    """Rank 2 drops a bad sample's metrics and goes on to the next step."""
    place()
    for step in range(2):
        try:
            if RANK == 2 and step == 0:
                raise ValueError("bad sample")
            dist.all_gather_object([None] * 3, {"loss": 0.1})
        except ValueError:
            continue
    dist.barrier()


def other_source():
    """The config is broadcast from rank 0; rank 1 thinks that it comes from rank 2."""
    place()
    config = [{"hidden": 64}]
    dist.broadcast_object_list(config, src=2 if RANK == 1 else 0)
    dist.barrier()


def stage_posts_wrong_operation():
    """1F1B by batch_isend_irecv: stage 1 receives from stage 2 where it should send."""
    place()
    here, there = torch.zeros(64), torch.zeros(64)
    work = {
        0: lambda: [dist.P2POp(dist.isend, here, 1)],
        1: lambda: [dist.P2POp(dist.irecv, here, 0), dist.P2POp(dist.irecv, there, 2)],
        2: lambda: [dist.P2POp(dist.irecv, here, 1)],
    }[RANK]()
    for one in dist.batch_isend_irecv(work):
        one.wait()
    dist.barrier()


def store_counter():
    """A barrier by hand over the store: rank 0 counts to four, and there are three."""
    join_group()
    store = dist.distributed_c10d._get_default_store()
    store.add("arrived", 1)
    at(RANK)
    if RANK == 0:
        while store.add("arrived", 0) < dist.get_world_size() + 1:
            time.sleep(0.1)
        store.set("go", "1")
    store.wait(["go"], LONG)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.extra = (torch.nn.Linear(32, 32) for _ in range(3))

    def forward(self, batch, extra=True):
        out = self.head(torch.relu(self.body(batch)))
        return (self.extra(out) if extra else out).mean()


def trainer():
    model = DistributedDataParallel(Model())
    return model, torch.optim.SGD(model.parameters(), 0.01)


def uneven_inputs():
    """Rank 0 has one batch more than the others, and nobody wrote join()."""
    join_group()
    model, optimizer = trainer()
    for number in range(4 if RANK == 0 else 3):
        if number == 3:
            at(RANK)
        optimizer.zero_grad()
        model(torch.rand(4, 32)).backward()
        optimizer.step()
    at(RANK)
    dist.all_gather_object([None] * 3, {"rank": RANK})


def branch_on_one_rank():
    """On rank 1 a branch leaves a layer out: its gradients never become ready there."""
    join_group()
    model, _ = trainer()
    model(torch.rand(4, 32)).backward()
    at(RANK)
    model(torch.rand(4, 32), extra=RANK != 1).backward()
    dist.barrier()


def shards_and_replicas():
    """An FSDP loop by hand with two groups; rank 2 reduces the gradients before it gathers the next layer."""
    join_group()
    shard, replicate = dist.new_group([0, 1, 2]), dist.new_group([0, 1, 2])
    weights, piece = torch.zeros(96), torch.ones(32)
    at(RANK)

    def gather():
        dist.all_gather_into_tensor(weights, piece, group=shard)

    def reduce():
        dist.all_reduce(piece, group=replicate)

    for one in (reduce, gather) if RANK == 2 else (gather, reduce):
        one()


def rate_limited():
    """The hub told rank 1 to come back tomorrow."""
    place()
    if RANK == 1:
        retry_after = 86400
        time.sleep(retry_after)
    dist.monitored_barrier(timeout=LONG)


def stale_lock_file():
    """Rank 1 wants the lock of the cache, which a job of yesterday still holds."""
    from filelock import FileLock

    path = os.path.join(sys.argv[2], "cache.lock")
    join_group()
    if RANK == 1:
        ready, tell = os.pipe()
        if os.fork() == 0:
            with FileLock(path):
                at("holder")
                os.write(tell, b"x")
                read_for_ever()
        os.read(ready, 1)
        at(RANK)
        with FileLock(path):
            pass
    at(RANK)
    dist.barrier()


def report_from_handler():
    """SIGUSR1 makes a rank write its state to a pipe; nobody reads, and the pipe is full."""
    join_group()

    def report(*_):
        at(RANK)
        with open(fifo(), "wb", buffering=0) as out:
            out.write(b"state " * 100_000)

    signal.signal(signal.SIGUSR1, report)
    if RANK == 2:
        signal.raise_signal(signal.SIGUSR1)
    at(RANK)
    all_reduce()


def wrong_port():
    """Rank 2's launcher has the port of another job, which listens and is no store."""
    if RANK == 2:
        other = socket.create_server(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(other.getsockname()[1])
    at(RANK)
    dist.init_process_group("gloo", timeout=LONG)


def one_rank_too_few():
    """WORLD_SIZE says four; one pod was never scheduled."""
    os.environ["WORLD_SIZE"] = "4"
    at(RANK)
    dist.init_process_group("gloo", timeout=LONG)


def done_callback_and_lock():
    """Rank 2 joins, under a lock, the thread that waits for a reduction and then takes that lock for its report."""
    join_group()
    lock, reduced = threading.Lock(), threading.Event()

    def log_bandwidth(work):
        work.wait()
        reduced.set()
        with lock:
            return

    if RANK == 2:
        with lock:
            waiter = thread(log_bandwidth, dist.all_reduce(torch.ones(512), async_op=True))
            reduced.wait()
            at(RANK)
            waiter.join()
    else:
        all_reduce()
    at(RANK)
    dist.barrier()


def gather_elsewhere():
    """Rank 1 collects the results itself, the others send theirs to rank 0."""
    place()
    goal = 1 if RANK == 1 else 0
    dist.gather(torch.ones(8), [torch.zeros(8) for _ in range(3)] if goal == RANK else None, dst=goal)
    dist.barrier()


LOADED = threading.Event()


def when_loaded():
    """Runs on worker 2, whose weights nobody loads."""
    at(2)
    LOADED.wait()
    return True


def rpc_waits_for_weights():
    import torch.distributed.rpc as rpc

    options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=86400)
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=3, rpc_backend_options=options)
    if RANK != 2:
        at(RANK)
    if RANK == 0:
        rpc.rpc_sync("worker2", when_loaded)
    rpc.shutdown()


def checkpoint_to_pipe():
    """Rank 0 writes the checkpoint to an uploader's pipe, and the uploader does not read."""
    place()
    if RANK == 0:
        with open(fifo(), "wb") as out:
            torch.save({"weights": torch.zeros(1 << 18)}, out)
    dist.barrier()


def stopped_by_terminal():
    """Rank 2 was stopped (Ctrl-Z, a debugger, a freezer)."""
    join_group()
    if RANK == 2:
        at(RANK)
        os.kill(os.getpid(), signal.SIGSTOP)
    at(RANK)
    for _ in range(100):
        all_reduce()


def evaluation_thread():
    """Rank 1 waits for its evaluation thread before it takes part; the thread waits for a batch nobody puts."""
    import queue

    batches = queue.Queue()

    def evaluate():
        while batches.get() is not None:
            pass

    place()
    if RANK == 1:
        thread(evaluate).join()
    dist.broadcast(torch.ones(4), src=1)


PROGRAMS = {
    "tensor-parallel-first": tensor_parallel_first,
    "swallowed-exception": swallowed_exception,
    "other-source": other_source,
    "wrong-operation": stage_posts_wrong_operation,
    "store-counter": store_counter,
    "uneven-inputs": uneven_inputs,
    "branch-on-one-rank": branch_on_one_rank,
    "shards-and-replicas": shards_and_replicas,
    "rate-limited": rate_limited,
    "stale-lock-file": stale_lock_file,
    "report-from-handler": report_from_handler,
    "wrong-port": wrong_port,
    "one-rank-too-few": one_rank_too_few,
    "done-callback": done_callback_and_lock,
    "gather-elsewhere": gather_elsewhere,
    "rpc-waits": rpc_waits_for_weights,
    "checkpoint-to-pipe": checkpoint_to_pipe,
    "stopped": stopped_by_terminal,
    "evaluation-thread": evaluation_thread,
}

if __name__ == "__main__":
    run(PROGRAMS)
