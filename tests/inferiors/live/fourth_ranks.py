"""Gloo ranks that hang, and their healthy twins, fourth set: `fourth_ranks.py NAME FOLDER`, one process each."""

import ctypes
import multiprocessing
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from tests.inferiors.live.place import LONG, at, run, thread, work_for
from tests.inferiors.torch_job import free_port

RANK = int(os.environ.get("RANK", "0"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def place():
    join_group()
    at(RANK)


def all_reduce(group=None):
    dist.all_reduce(torch.ones(256), group=group)


def except_branch_barrier():
    """Rank 1 runs out of memory in a step; its except branch waits at a barrier so that all can give up together."""
    join_group()
    all_reduce()
    at(RANK)
    try:
        if RANK == 1:
            raise MemoryError("batch of 64")
        all_reduce()
    except MemoryError:
        dist.barrier()


def except_branch_retries():
    """The twin: a rank without memory does its step again with half the batch, and meets the others afterwards."""
    place()
    step = 0
    while True:
        size = 16
        while size:
            try:
                if size == 16 and step % 3 == RANK:
                    raise MemoryError("batch of 16")
                work_for(0.002 * size)
                size = 0
            except MemoryError:
                size //= 2
        all_reduce()
        step += 1


class Engine:
    """The main thread does the steps, a thread brings commands from rank 0; one lock guards the state of both."""

    def __init__(self):
        self.lock = threading.Lock()
        self.commands = dist.new_group(timeout=LONG)

    def command(self):
        dist.broadcast(torch.zeros(4), src=0, group=self.commands)


def lock_over_all_reduce():
    """Both threads keep the lock while they wait for the other ranks. On rank 1 the command's thread was first."""
    join_group()
    engine, taken = Engine(), threading.Event()

    def command():
        with engine.lock:
            taken.set()
            engine.command()

    if RANK == 1:
        thread(command)
        taken.wait()
        at(RANK)
        with engine.lock:
            all_reduce()
    with engine.lock:
        thread(command)
        at(RANK)
        all_reduce()


def lock_before_all_reduce():
    """The twin: the lock is given back before a thread waits for the other ranks."""
    join_group()
    engine = Engine()

    def commands():
        while True:
            engine.command()
            with engine.lock:
                work_for(0.01)

    thread(commands)
    at(RANK)
    while True:
        with engine.lock:
            work_for(0.02)
        all_reduce()


def sends_first():
    """Stage 0 sends its second activation before it takes the first gradient, which stage 1 sends first as well."""
    place()
    buffer = torch.zeros(1 << 20)
    if RANK == 0:
        dist.send(buffer, 1)
        dist.send(buffer, 1)
        dist.recv(buffer, 1)
    elif RANK == 1:
        dist.recv(buffer, 0)
        dist.send(buffer, 0)
        dist.recv(buffer, 0)
        dist.send(buffer, 2)
    else:
        dist.recv(buffer, 1)


def hold_slot(slots, told):
    slots.acquire()
    told.send("taken")
    told.recv()


def slot_of_killed_helper():
    """A helper of rank 1 was killed while it had the only slot of a shared semaphore; rank 1 wants the slot."""
    if RANK == 1:
        context = multiprocessing.get_context("fork")
        slots, (ours, theirs) = context.Semaphore(1), context.Pipe()
        helper = context.Process(target=hold_slot, args=(slots, theirs), daemon=True)
        helper.start()
        ours.recv()
        helper.kill()
        helper.join()
    place()
    if RANK == 1:
        slots.acquire()
    all_reduce()


def ring_of_groups():
    """Three pairs; each rank starts with the pair in which its partner comes last."""
    join_group()
    pairs = [dist.new_group([number, (number + 1) % 3], timeout=LONG) for number in range(3)]
    at(RANK)
    all_reduce(pairs[RANK])
    all_reduce(pairs[(RANK + 2) % 3])


def health_check_starves():
    """Rank 1 calls an extension that keeps the interpreter's lock until the health check has answered."""
    place()
    if RANK == 1:
        sys.setswitchinterval(3600)  # nobody takes the interpreter's lock away between set() and sem_wait()
        asked, answered = threading.Event(), ctypes.create_string_buffer(64)
        ctypes.CDLL(None).sem_init(answered, 0, 0)
        waits = ctypes.PyDLL(None).sem_wait

        def check():
            asked.wait()
            ctypes.CDLL(None).sem_post(answered)

        thread(check)
        asked.set()
        waits(answered)
    all_reduce()


def node_does_not_come():
    """torchrun's rendezvous of two nodes, and only one was started."""
    parameters = RendezvousParameters(
        "c10d", f"localhost:{free_port()}", "job", 2, 2, local_addr="localhost", join_timeout=86400
    )
    handler = get_rendezvous_handler(parameters)
    at("main")
    handler.next_rendezvous()


STATE = threading.Lock()


def take_state():
    with STATE:
        return RANK


def relay():
    return rpc.rpc_sync("worker1", take_state)


def join_agents():
    options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=86400, init_method="env://")
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=2, rpc_backend_options=options)
    at(RANK)


def call_under_lock():
    """Worker 1 calls worker 0 with its lock kept; the answer needs a call back, which wants the lock."""
    join_agents()
    if RANK == 1:
        with STATE:
            rpc.rpc_sync("worker0", relay)
    rpc.shutdown()


def call_without_lock():
    """The twin: the lock is given back before each call."""
    join_agents()
    while RANK == 1:
        with STATE:
            work_for(0.03)
        rpc.rpc_sync("worker0", relay)
    rpc.shutdown()


def long_product():
    """Healthy: rank 2 is in one product of large matrices for many seconds, the others wait for it at each step."""
    place()
    matrix = torch.rand(4500, 4500, dtype=torch.float64) if RANK == 2 else torch.ones(1)
    while True:
        matrix = matrix @ matrix / 2250
        all_reduce()


def periodic_rank():
    """Healthy: rank 0 publishes the new weights each three seconds and sleeps meanwhile; the others wait for them."""
    place()
    while True:
        if RANK == 0:
            time.sleep(3)
        dist.broadcast(torch.zeros(1 << 10), src=0)


PROGRAMS = {
    "except-branch-barrier": except_branch_barrier,
    "except-branch-retries": except_branch_retries,
    "lock-over-all-reduce": lock_over_all_reduce,
    "lock-before-all-reduce": lock_before_all_reduce,
    "sends-first": sends_first,
    "slot-of-killed-helper": slot_of_killed_helper,
    "ring-of-groups": ring_of_groups,
    "health-check-starves": health_check_starves,
    "node-does-not-come": node_does_not_come,
    "call-under-lock": call_under_lock,
    "call-without-lock": call_without_lock,
    "long-product": long_product,
    "periodic-rank": periodic_rank,
}

if __name__ == "__main__":
    run(PROGRAMS)
