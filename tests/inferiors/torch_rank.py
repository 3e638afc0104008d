"""A torch rank for the real-input tests and the benchmark: run it by torchrun.

    torchrun --nproc-per-node 4 torch_rank.py --mode missing FOLDER

missing: rank 1 never enters the all_reduce that the others wait in; it sleeps in Python.
healthy: every rank multiplies matrices and reduces every second.
Each rank writes FOLDER/rank.N (its pid) when it is where it should be.
"""

import argparse
import ctypes
import datetime
import os
import threading
import time

import torch
import torch.distributed as dist

HEARTBEAT_PRIORITY = 3  # of SCHED_FIFO; the benchmark's bystander has a lower one


def wait_for_weights():
    while True:
        time.sleep(1000)


def forward(hidden_states):
    dist.all_reduce(hidden_states)


def decode(rank, depth=4):
    if depth:
        return decode(rank, depth - 1)
    if rank == 1 or dist.get_world_size() == 1:  # alone, it would be through at once
        wait_for_weights()
    return forward(torch.ones(1 << 20))


def serve():
    matrix = torch.ones(384, 384)
    while True:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            matrix = (matrix @ matrix).clamp(-1, 1)
        dist.all_reduce(torch.ones(1 << 16))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--mode", choices=["missing", "healthy"], default="missing")
    parser.add_argument("--threads", type=int, default=60)
    parser.add_argument("--spinning", type=int, default=0)
    parser.add_argument("--library", required=True, help="torch_threads.so")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    extra = ctypes.CDLL(options.library)
    heartbeat = os.path.join(options.folder, f"heartbeat.{rank}")
    cpus = sorted(os.sched_getaffinity(0))
    if extra.start_heartbeat(heartbeat.encode(), cpus[rank % len(cpus)], HEARTBEAT_PRIORITY):
        raise SystemExit("no heartbeat")
    if extra.start_threads(options.threads - 11, options.spinning):
        raise SystemExit("no threads")
    for number in range(10):
        threading.Thread(target=threading.Event().wait, daemon=True, name=f"queue-{number}").start()
    dist.init_process_group("gloo", timeout=datetime.timedelta(days=1))
    torch.set_num_threads(1 if options.mode == "healthy" else 4)  # the healthy ones really compute, all the time
    torch.ones(256, 256) @ torch.ones(256, 256)  # starts the OpenMP pool
    dist.all_reduce(torch.ones(8))
    dist.barrier()
    marker = os.path.join(options.folder, f"rank.{rank}")
    with open(marker + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(marker + ".new", marker)
    if options.mode == "missing":
        decode(rank)
    else:
        serve()


if __name__ == "__main__":
    main()
