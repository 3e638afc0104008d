"""Ranks of torch.distributed (Gloo) that wait for each other for ever: `torch_collectives.py NAME FOLDER`, each."""

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, fifo, read_for_ever, run, thread

RANK = int(os.environ.get("RANK", "0"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def one_of(rank, its, others):
    """`its()` on one rank, `others()` on the rest, after the group is there."""
    join_group()
    work = its if rank == RANK else others
    at(RANK)
    work()


def all_reduce():
    dist.all_reduce(torch.ones(1024))


def fewer_batches():
    """Rank 1 has a batch less: it is at the barrier behind the epoch."""
    join_group()
    for batch in range(3 if RANK == 1 else 4):
        if batch == 3:
            at(RANK)
        train_step()
    at(RANK)
    dist.barrier()


def train_step():
    all_reduce()


def save_on_first_rank_only():
    """Gathering the state is a collective, and only rank 0 does it."""
    join_group()
    at(RANK)
    if RANK == 0:
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, {"step": 3})
    dist.barrier()


def group_of_some():
    """new_group is for all ranks; rank 2, which is no member, leaves it out, and counts groups differently then."""
    join_group()
    at(RANK)
    if RANK < 2:
        dist.new_group([0, 1])
    dist.new_group([0, 1, 2])
    all_reduce()


def two_groups_crossed():
    join_group()
    one, two = dist.new_group([0, 1]), dist.new_group([0, 1])
    at(RANK)
    if RANK < 2:
        for group in (one, two) if RANK == 0 else (two, one):
            dist.all_reduce(torch.ones(8), group=group)
    dist.barrier()


def recv_without_send():
    one_of(0, lambda: dist.recv(torch.zeros(4), src=1), all_reduce)


def ring_of_recv():
    """Everyone wants to receive first."""
    join_group()
    at(RANK)
    size = dist.get_world_size()
    dist.recv(torch.zeros(4), src=(RANK - 1) % size)
    dist.send(torch.zeros(4), dst=(RANK + 1) % size)


def pipeline_one_microbatch_short():
    """Stage 2 expects four activations; stage 1 passes three on."""
    join_group()
    activation = torch.zeros(16)
    for number in range(4):
        if RANK == 1 and number < 3:
            dist.recv(activation, src=0)
            dist.send(activation, dst=2)
        elif RANK == 0 and number < 3:
            dist.send(activation, dst=1)
        elif RANK == 2:
            if number == 3:
                at(RANK)
            dist.recv(activation, src=1)
    at(RANK)
    all_reduce()


def debugger_prompt():
    """Somebody left a breakpoint() in; nobody sits at the terminal."""

    def prompt():
        sys.stdin = open(fifo())  # noqa: SIM115 - for ever
        breakpoint()

    one_of(1, prompt, all_reduce)


def download():
    """The server took the connection and says nothing."""
    server = socket.create_server(("127.0.0.1", 0))

    def fetch():
        urllib.request.urlopen(f"http://127.0.0.1:{server.getsockname()[1]}/weights")

    one_of(1, fetch, all_reduce)


def failed_but_alive():
    """Rank 1 raised; a thread that is no daemon keeps its process."""
    join_group()
    at(RANK)
    if RANK == 1:
        thread(threading.Event().wait, daemon=False)
        raise ValueError("loss is nan")
    all_reduce()


def monitored_barrier_and_lock():
    """Rank 2 wants a lock that a thread holds, which waits for a message."""
    join_group()
    lock, held = threading.Lock(), threading.Event()

    def hold():
        with lock:
            held.set()
            read_for_ever()

    if RANK == 2:
        thread(hold)
        held.wait()
        at(RANK)
        with lock:
            pass
    at(RANK)
    dist.monitored_barrier(timeout=LONG)


def store_key_of_the_application():
    """Rank 0 waits for a key that rank 1 sets when its producer delivers, which it does not."""
    import queue

    join_group()
    store = dist.distributed_c10d._get_default_store()
    at(RANK)
    if RANK == 0:
        store.wait(["weights-are-there"], LONG)
    elif RANK == 1:
        queue.Queue().get()
        store.set("weights-are-there", "1")
    dist.barrier()


def file_lock_and_rendezvous():
    """Rank 0 downloads under a file lock and joins the group before it lets go; rank 1 wants the file lock first."""
    lock = open(os.path.join(sys.argv[2], "model.lock"), "w")  # noqa: SIM115 - held for ever
    if RANK == 0:
        fcntl.flock(lock, fcntl.LOCK_EX)
        at("locked")
    elif RANK == 1:
        while not os.path.exists(os.path.join(sys.argv[2], "locked")):
            time.sleep(0.01)
        at(RANK)
        fcntl.flock(lock, fcntl.LOCK_EX)
    at(RANK)
    dist.init_process_group("gloo", timeout=LONG)


def tokenizer_child():
    """Rank 1 waits for a program that waits for its input."""
    one_of(1, lambda: subprocess.run(["cat", fifo()], check=True), all_reduce)


def checkpoint_thread_first():
    """Each rank saves in a thread with a barrier; on rank 1 it comes before the step's all_reduce, not beside it."""
    join_group()
    at(RANK)
    if RANK == 1:
        thread(dist.barrier).join()
    all_reduce()
    dist.barrier()


def async_work_never_waited():
    """Rank 1 started the collective and then waits for its own queue; it is rank 2 that left it out."""
    join_group()
    if RANK == 2:
        at(RANK)
        read_for_ever()
    work = dist.all_reduce(torch.ones(64), async_op=True)
    at(RANK)
    work.wait()


def scatter_and_gather():
    one_of(2, lambda: dist.gather(torch.ones(4), dst=0), lambda: dist.broadcast(torch.ones(4), src=2))


def wait_for_debugger():
    """The snippet of many guides: until somebody attaches and sets the variable."""

    def stay():
        attached = False
        while not attached:
            time.sleep(5)

    one_of(2, stay, all_reduce)


PROGRAMS = {
    "fewer-batches": fewer_batches,
    "save-on-first-rank-only": save_on_first_rank_only,
    "group-of-some": group_of_some,
    "two-groups-crossed": two_groups_crossed,
    "recv-without-send": recv_without_send,
    "ring-of-recv": ring_of_recv,
    "pipeline-one-short": pipeline_one_microbatch_short,
    "debugger-prompt": debugger_prompt,
    "download": download,
    "failed-but-alive": failed_but_alive,
    "monitored-barrier": monitored_barrier_and_lock,
    "store-key": store_key_of_the_application,
    "file-lock-and-rendezvous": file_lock_and_rendezvous,
    "tokenizer-child": tokenizer_child,
    "checkpoint-thread-first": checkpoint_thread_first,
    "async-work": async_work_never_waited,
    "gather-and-broadcast": scatter_and_gather,
    "wait-for-debugger": wait_for_debugger,
}

if __name__ == "__main__":
    run(PROGRAMS)
