"""Ranks of an engine over Gloo that hang, sixth set: `sixth_ranks.py NAME FOLDER`, one process each."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, fifo, in_folder, run

RANK = int(os.environ.get("RANK", "0"))
log = logging.getLogger("engine")


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def all_reduce(group=None):
    hidden = torch.ones(256)
    dist.all_reduce(hidden, group=group)
    return hidden


def object_instead_of_tensor():
    """Rank 0 sends the new limit as an object, which is two broadcasts; the others take a tensor, which is one."""
    join_group()
    at(RANK)
    if RANK == 0:
        dist.broadcast_object_list([{"max_tokens": 4096}], src=0)
    else:
        dist.broadcast(torch.empty(1, dtype=torch.int64), src=0)
    all_reduce()


def update_weights(tensors, after_each=None):
    """The trainer, rank 0, sends one tensor after the other to the engines."""
    for tensor in tensors:
        dist.broadcast(tensor, src=0)
        if after_each:
            after_each(tensor)
    dist.barrier()


def update_one_tensor_short():
    """Rank 2's head is tied to its embedding, so that it has one tensor fewer to take."""
    join_group()
    at(RANK)
    update_weights([torch.ones(64, 64) for _ in range(11 if RANK == 2 else 12)])
    all_reduce()


PLANS = {"old": ((0, 1), (1, 2)), "new": ((0, 2), (2, 1))}
"""By whom an expert is sent, and to whom."""


def move_experts(plan):
    weights, room = torch.ones(1 << 12), torch.empty(1 << 12)
    operations = []
    for source, target in PLANS[plan]:
        if source == RANK:
            operations.append(dist.P2POp(dist.isend, weights, target))
        if target == RANK:
            operations.append(dist.P2POp(dist.irecv, room, source))
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def stale_expert_plan():
    """Experts are moved twice; rank 1 has not heard of the second plan and moves them as before."""
    join_group()
    move_experts("old")
    all_reduce()
    at(RANK)
    move_experts("old" if RANK == 1 else "new")
    all_reduce()


def groups_of_parameters():
    """Embeddings are the same on all ranks, experts on ranks 1 and 2."""
    shared = dist.new_group([0, 1, 2], timeout=LONG)
    experts = dist.new_group([1, 2], timeout=LONG)
    return {"token_embedding": shared, **({"expert": experts} if RANK else {})}


def reduce_gradients(groups, names):
    for name in names:
        all_reduce(groups[name])


def gradients_by_name():
    """Rank 2 reduces its gradients in the order of their names, the others in the order of the model."""
    join_group()
    groups = groups_of_parameters()
    at(RANK)
    reduce_gradients(groups, sorted(groups) if RANK == 2 else list(groups))
    dist.barrier()


def metrics():
    """A process that says every second how much memory the host has."""
    at("helper")
    while True:
        with open("/proc/meminfo") as file:
            log.debug(file.readline())
        time.sleep(1.0)


def killed_beside_helper():
    """Rank 2 is killed, as for its memory; the process that it forked has copies of its sockets, so no peer is told."""
    join_group()
    if RANK == 2:
        multiprocessing.get_context("fork").Process(target=metrics).start()
    at(RANK)
    if RANK == 2:
        while not all(os.path.exists(in_folder(role)) for role in (0, 1, "helper")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)
    all_reduce()


def log_through(command):
    """From now on what rank 1 logs goes through a pipe to a process that collects it."""
    if RANK == 1:
        collector = subprocess.Popen(command, stdin=subprocess.PIPE)
        os.dup2(collector.stdin.fileno(), 2)
        at("collector", collector.pid)


def steps_with_warnings():
    at(RANK)
    while True:
        if RANK == 1:
            log.warning("request is longer than the context: %s", "x" * 4000)
        all_reduce()


def log_collector_blocked():
    """The collector writes to a place that takes nothing; rank 1 logs a warning in each step."""
    join_group()
    log_through(["sh", "-c", f"exec cat > {fifo()}"])
    steps_with_warnings()


class Compilers:
    """As make's job server: a compiler takes a byte from a pipe, and puts it back when it is done."""

    def __init__(self, count):
        self.tokens, self.back = os.pipe()
        os.write(self.back, b"+" * count)

    def start(self, source):
        words = [sys.executable, "-m", "tests.inferiors.live.sixth_compiler", str(self.tokens), str(self.back), source]
        return subprocess.Popen(words, pass_fds=(self.tokens, self.back), stdout=subprocess.PIPE)


def source_file(text):
    with open(in_folder("kernel.cpp"), "w") as file:
        file.write(text)
    return file.name


def token_of_killed_compiler():
    """Rank 1's first compiler was killed and did not put its byte back; the one of the second try waits for it."""
    join_group()
    at(RANK)
    if RANK == 1:
        compilers, source = Compilers(1), source_file("int kernel() { return 1; }\n")
        killed = compilers.start(source)
        killed.stdout.readline()  # it has its byte
        killed.kill()
        killed.wait()
        again = compilers.start(source)
        at("compiler", again.pid)
        again.wait()
    dist.barrier()


PROGRAMS = {
    "object-instead-of-tensor": object_instead_of_tensor,
    "update-one-tensor-short": update_one_tensor_short,
    "stale-expert-plan": stale_expert_plan,
    "gradients-by-name": gradients_by_name,
    "killed-beside-helper": killed_beside_helper,
    "log-collector-blocked": log_collector_blocked,
    "token-of-killed-compiler": token_of_killed_compiler,
}

if __name__ == "__main__":
    run(PROGRAMS)
