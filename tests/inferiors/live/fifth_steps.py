"""Ranks of an engine over Gloo, all healthy, fifth set: `fifth_steps.py NAME FOLDER`, one process each."""

import hashlib
import os
import queue
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.file_baton import FileBaton

from tests.inferiors.live.fifth_ranks import RANK, Blocks, all_reduce, join_group, pair_and_replicas
from tests.inferiors.live.place import at, run, work_for

MIB = 1 << 20


def loads_slowly():
    """Rank 1's disk is slow: it reads and checks its part of the checkpoint piece by piece, the others wait."""
    path = os.path.join(sys.argv[2], f"part-{RANK}")
    with open(path, "wb") as file:
        file.write(bytes((64 if RANK == 1 else 1) * MIB))
    join_group()
    at(RANK)
    while True:
        check = hashlib.sha256()
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(MIB):
                check.update(piece)
                print(f"rank {RANK}: {file.tell() // MIB} MiB", flush=True)
                time.sleep(0.05)
        dist.barrier()


KERNEL = """
#include <map>
#include <regex>
#include <string>
template <int N> struct Kernel {
    static int run(const std::string &text) {
        std::map<std::string, std::regex> known{{std::to_string(N), std::regex("a{" + std::to_string(N) + "}")}};
        return std::regex_match(text, known.begin()->second) + Kernel<N - 1>::run(text);
    }
};
template <> struct Kernel<0> {
    static int run(const std::string &) { return 0; }
};
int all(const std::string &text) { return Kernel<60>::run(text); }
"""


def compiles_kernels():
    """Rank 0 compiles a kernel on its first use, the others wait for the lock file of the build."""
    folder = sys.argv[2]
    source = os.path.join(folder, f"kernel-{RANK}.cpp")
    with open(source, "w") as file:
        file.write(KERNEL)
    join_group()
    at(RANK)
    number = 0
    while True:
        baton = FileBaton(os.path.join(folder, f"lock-{number}"))
        mine = RANK == 0 and baton.try_acquire()
        dist.barrier()
        if mine:
            subprocess.run(["g++", "-O1", "-c", source, "-o", os.path.join(folder, "kernel.o")], check=True)
            baton.release()
        else:
            baton.wait()
        all_reduce()
        number += 1


def uneven_experts():
    """Rank 3 has the experts that most tokens want, and all wait for it, first its pair and then its replicas."""
    join_group()
    pair, replicas = pair_and_replicas()
    at(RANK)
    logits = torch.ones(64)
    while True:
        work_for(0.4 if RANK == 3 else 0.05)
        dist.all_gather([torch.empty(64), torch.empty(64)], logits, group=pair)
        all_reduce(replicas)


def evicts_for_long():
    """Rank 1 evicts one small request after the other until a large one has room, for some seconds."""
    join_group()
    at(RANK)
    while True:
        blocks = Blocks(8000, ())
        while RANK == 1 and blocks.free < 20000:
            blocks.evict()
        all_reduce()


def replicas_without_requests():
    """Each replica waits a second for a request, then all agree whether anybody has one, and nobody has."""
    join_group()
    requests = queue.Queue()
    at(RANK)
    while True:
        try:
            batch = [requests.get(timeout=1.0)]
        except queue.Empty:
            batch = []
        count = torch.tensor([len(batch)])
        dist.all_reduce(count, dist.ReduceOp.MAX)
        if int(count):
            work_for(0.1)


PROGRAMS = {
    "loads-slowly": loads_slowly,
    "compiles-kernels": compiles_kernels,
    "uneven-experts": uneven_experts,
    "evicts-for-long": evicts_for_long,
    "replicas-without-requests": replicas_without_requests,
}

if __name__ == "__main__":
    run(PROGRAMS)
