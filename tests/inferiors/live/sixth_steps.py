"""Ranks of an engine over Gloo, all healthy, sixth set: `sixth_steps.py NAME FOLDER`, one process each."""

import itertools
import os
import re
import sys

import torch
import torch.distributed as dist

from tests.inferiors.live.fifth_steps import KERNEL
from tests.inferiors.live.place import at, run, work_for
from tests.inferiors.live.sixth_ranks import (
    RANK,
    Compilers,
    all_reduce,
    groups_of_parameters,
    in_folder,
    join_group,
    log_through,
    reduce_gradients,
    source_file,
    steps_with_warnings,
    update_weights,
)

MIB = 1 << 20


def grammar_backtracks():
    """A request of rank 1 has a pattern that takes the regular expression engine seconds for each token."""
    join_group()
    pattern = re.compile(r"(a+)+b")
    at(RANK)
    while True:
        if RANK == 1:
            pattern.match("a" * 25)
        all_reduce()


def updates_in_order():
    """Weights come again and again; rank 2 quantises each tensor, and gradients are reduced in the model's order."""
    join_group()
    groups = groups_of_parameters()

    def quantise(tensor):
        work_for(0.4 if RANK == 2 else 0.01)

    at(RANK)
    while True:
        update_weights([torch.ones(64, 64) for _ in range(12)], quantise)
        reduce_gradients(groups, list(groups))


def shards_with_metadata():
    """Each rank writes its shard to the disk, rank 1 a larger one, and rank 0 gathers where everything is."""
    join_group()
    at(RANK)
    for number in itertools.count():
        with open(in_folder(f"shard-{RANK}"), "wb", buffering=0) as file:
            for _ in range(96 if RANK == 1 else 4):
                file.write(os.urandom(MIB))
                os.fsync(file.fileno())
        where = [None] * 3 if RANK == 0 else None
        dist.gather_object({"step": number, "path": file.name}, where, dst=0)
        all_reduce()


def compiler_has_token():
    """Rank 1 compiles one kernel after the other under the job server, each for some seconds; the others wait."""
    join_group()
    if RANK == 1:
        compilers, source = Compilers(1), source_file(KERNEL)
    at(RANK)
    while True:
        if RANK == 1:
            compilers.start(source).wait()
        dist.barrier()


COLLECTOR = """
import sys, time
while sys.stdin.buffer.raw.read(4096):
    time.sleep(0.05)
"""


def log_collector_slow():
    """The collector takes what rank 1 logs slowly, and each step waits for room in the pipe."""
    join_group()
    log_through([sys.executable, "-c", COLLECTOR])
    steps_with_warnings()


PROGRAMS = {
    "grammar-backtracks": grammar_backtracks,
    "updates-in-order": updates_in_order,
    "shards-with-metadata": shards_with_metadata,
    "compiler-has-token": compiler_has_token,
    "log-collector-slow": log_collector_slow,
}

if __name__ == "__main__":
    run(PROGRAMS)
