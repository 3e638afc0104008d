"""A torch rank (Gloo) that loops over a collective, healthy or not: the same start as slow_rank.py, with a real group.

`torch_loop.py ACTIVITY FOLDER` prints `ready` when all ranks are there and stays until it is killed.
"""

import ctypes
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

from tests.inferiors.lock_hangs import build

MIB = 1 << 20


def step():
    dist.all_reduce(torch.ones(1024))


def steps(nap):
    """Healthy: a step, then a pause."""
    while True:
        step()
        time.sleep(nap)


def uneven():
    """Healthy: the others wait for the last rank in each step."""
    while True:
        time.sleep(0.3 * dist.get_rank())
        step()


def compute():
    """Healthy: a rank that multiplies matrices for longer than a look takes."""
    matrix = torch.ones(512, 512)
    while True:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            matrix = (matrix @ matrix).clamp(-1, 1)
        step()


def spin():
    i = 0
    while True:
        i += 1


def spin_with_calls():
    while not _arrived():
        pass


def _arrived():
    return False


def spin_in_c():
    ctypes.CDLL(library()).spin_in_c()


def library():
    return build("libspin.so", "spin.c", ("-O1", "-g", "-fPIC", "-shared"))


def poll():
    while not _arrived():
        time.sleep(0.05)


def join():
    """What the others of a healthy rank do."""
    while True:
        step()


def wait_in_store():
    dist.distributed_c10d._get_default_store().get("never")


def save(folder):
    """Healthy: writes a checkpoint, then comes to the barrier."""
    state = {str(number): torch.ones(4 * MIB) for number in range(8)}
    while True:
        torch.save(state, os.path.join(folder, "checkpoint.pt"))
        dist.barrier()


def barrier():
    while True:
        dist.barrier()


ACTIVITIES = {
    "steps": lambda: steps(0.05),
    "slow-steps": lambda: steps(0.5),
    "uneven": uneven,
    "compute": compute,
    "spin": spin,
    "spin-with-calls": spin_with_calls,
    "spin-in-c": spin_in_c,
    "poll": poll,
    "join": join,
    "stuck": step,  # what the others of a rank do that does not come
    "store": wait_in_store,
    "save": lambda: save(sys.argv[2]),
    "barrier": barrier,
}


def main():
    torch.set_num_threads(1)
    if ACTIVITIES[sys.argv[1]] is spin_in_c:
        library()  # not after "ready": the rank would be seen as it waits for the compiler
    dist.init_process_group("gloo", timeout=datetime.timedelta(days=1))
    dist.barrier()
    os.write(1, b"ready\n")
    ACTIVITIES[sys.argv[1]]()


if __name__ == "__main__":
    main()
