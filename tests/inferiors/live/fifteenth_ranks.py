"""Ranks of a job over Gloo that hang, and healthy ones, fifteenth set: `fifteenth_ranks.py NAME FOLDER`, one each."""

import itertools
import os
import socket
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, child_of, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
STEPS = 6


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Trainer:
    """Of a model with a head, and since the last version with a second one, which looks further ahead."""

    def __init__(self, version):
        heads = ["head"] if version == 1 else ["head", "further"]
        self.gradients = {name: torch.ones(64, 16) for name in ("embed", "layer0", "layer1", *heads)}

    def step(self):
        for gradient in self.gradients.values():
            work_for(0.005)
            dist.all_reduce(gradient)
        losses = [torch.empty(1) for _ in range(RANKS)]
        dist.all_gather(losses, torch.ones(1))
        return sum(losses)


def older_code_on_second_node():
    """As horovod/horovod#2640: the code on the second node is not that of the first one. It has one tensor less to sum,
    and goes on to the losses."""
    join_group()
    version = 1 if RANK == RANKS - 1 else 2
    at(RANK)
    Trainer(version).step()


class Policy(torch.nn.Module):
    """Each rank has a part of each layer; the whole layer is gathered when it is wanted."""

    def __init__(self, layers=3, size=48):
        super().__init__()
        self.parts = torch.nn.ParameterList(torch.ones(size // RANKS, size) for _ in range(layers))

    def select_action(self, seen):
        for part in self.parts:
            whole = [torch.empty_like(part) for _ in range(RANKS)]
            dist.all_gather(whole, part.detach())
            seen = torch.tanh(torch.cat(whole) @ seen)
        return seen


def fewer_tasks_on_one_rank():
    """As TensorAuto/OpenTau#462: five tasks are dealt to three ranks. Every action gathers the parts of the policy, and
    the rank with one task less adds up its successes while the others are in their second one."""
    join_group()
    policy, successes = Policy(), torch.zeros(1)
    tasks = range(5)[RANK::RANKS]
    for number, _task in enumerate(tasks):
        if number == 1 or len(tasks) == 1:
            at(RANK)
        for _ in range(8):
            policy.select_action(torch.ones(48))
        successes += 1
    dist.all_reduce(successes)


class AllToAll(torch.autograd.Function):
    """Rows of each rank for each rank; their gradients go the same way back."""

    @staticmethod
    def forward(ctx, rows):
        out = torch.empty_like(rows)
        dist.all_to_all_single(out, rows.contiguous())
        return out

    @staticmethod
    def backward(ctx, gradients):
        return AllToAll.forward(ctx, gradients)


class Experts(torch.nn.Module):
    """One expert on each rank. Tokens go to those that are `wanted`, their answers come back."""

    def __init__(self, size=16):
        super().__init__()
        self.size, self.gate, self.expert = size, torch.nn.Linear(size, size), torch.nn.Linear(size, size)

    def forward(self, tokens, wanted):
        gated = self.gate(tokens)
        rows = torch.zeros(RANKS, len(tokens), self.size)
        for rank in wanted:
            rows[rank] = gated
        received = AllToAll.apply(rows)
        if RANK in wanted:
            answers = self.expert(received)
        else:
            answers = torch.empty_like(received, requires_grad=False).detach()  # nothing to compute
        return gated + AllToAll.apply(answers).sum(0)


def no_tokens_no_backward():
    """As PaddlePaddle/PaddleFormers#3010: an expert that gets no token answers with a new tensor, which has no
    gradients. Its rank has nothing to send backward, and goes on to the sum of the gradients."""
    join_group()
    model = Experts()
    for number in range(STEPS):
        if number == STEPS - 2:
            at(RANK)
        wanted = (0, 2) if number == STEPS - 2 else range(RANKS)
        model(torch.ones(4, 16), wanted).sum().backward()
        for parameter in model.parameters():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            dist.all_reduce(gradient)
        model.zero_grad()


def validate(epoch):
    """The mean over all ranks, by a sum that only the first rank gets."""
    loss = torch.tensor([8.0 - 2 * epoch if RANK == 0 else 1.0 + 0.1 * epoch * (epoch == STEPS - 2)])
    dist.reduce(loss, 0)
    return float(loss) / RANKS - 0.001 * epoch


def save(part):
    whole = [torch.empty_like(part) for _ in range(RANKS)]
    dist.all_gather(whole, part)
    if RANK == 0:
        torch.save(torch.cat(whole), in_folder("model.pt"))


def best_loss_on_first_rank():
    """As pytorch/pytorch#77562: the loss is summed to the first rank alone, while each rank decides by it whether the
    model is the best so far and is to be saved, for which all are needed."""
    join_group()
    best, part = 1e9, torch.ones(64)
    for epoch in range(STEPS):
        if epoch == STEPS - 2:
            at(RANK)
        for _ in range(3):
            dist.all_reduce(part.clone())
        loss = validate(epoch)
        if loss < best:
            best = loss
            save(part)


class Runner:
    """Of one rank of data parallel attention, with experts on all ranks."""

    def coordinate(self, tokens):
        counts = torch.zeros(RANKS, dtype=torch.int64)
        counts[RANK] = tokens
        dist.all_reduce(counts)
        return counts

    def execute(self, tokens):
        if tokens == 0:
            return None
        for _ in range(3):
            rows = torch.ones(RANKS * 4, 16)
            dist.all_to_all_single(torch.empty_like(rows), rows)
        return rows

    def step(self, tokens):
        self.coordinate(tokens)
        return self.execute(tokens)


def idle_ranks_skip_forward():
    """As vllm-project/vllm#51984: in one step only the first rank has tokens. The others return at once, and have not
    done their part for the experts; they are in the next step already."""
    join_group()
    runner = Runner()
    for number in range(STEPS):
        alone = number == STEPS - 2
        if alone:
            at(RANK)
        runner.step(0 if alone and RANK else 16)


def store_on_another_host():
    """As pytorch/pytorch#139654: the first rank keeps the store where it runs. The others were told the host of the
    rendezvous, where there is none, and try again."""
    torch.set_num_threads(1)
    port = int(os.environ["MASTER_PORT"])
    if RANK:
        other = socket.socket()
        other.bind(("127.0.0.1", 0))  # and nobody listens there
        port = other.getsockname()[1]
    at(RANK)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", timeout=LONG, rank=RANK, world_size=RANKS)


def stages_send_to_each_other():
    """As pytorch/pytorch#172668: there are two stages on each of two ranks, and what was sent is waited for. The first
    rank sends the second microbatch on, and the other one sends the first one back, before they receive."""
    join_group()
    peer, rows = 1 - RANK, torch.ones(256, 256)
    for number in range(STEPS):
        last = number == STEPS - 2
        if last:
            at(RANK)
        actions = [lambda: dist.send(rows, peer), lambda: dist.recv(torch.empty_like(rows), peer)]
        if RANK == 1 and not last:
            actions.reverse()
        for action in actions:
            action()


def spin_disk(write):
    """It gives images, and has a rest of some seconds after each hundred."""
    for number in itertools.count(1):
        os.write(write, bytes(1 << 12))
        if number % 100 == 0:
            time.sleep(2)


def disk_slow_at_times():
    """Healthy, as deepinsight/insightface#1570: every few hundred steps the samples come slowly, from a disk that
    turns. Who waits for it keeps the others waiting in the sum of the gradients."""
    read, write = os.pipe()
    child_of(spin_disk, write)
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    for number in itertools.count():
        if number == 10:
            at(RANK)
        image = b""
        while len(image) < 1 << 12:
            image += os.read(read, (1 << 12) - len(image))
        work_for(0.02 + 0.01 * RANK)
        model(torch.full((4, 64), float(image[0]))).sum().backward()


def save_artifacts(weights):
    """In another format, one tensor after the other."""
    for number in itertools.count():
        with open(in_folder(f"artifact{number % 4}"), "wb") as file:
            for row in weights:
                file.write(row.to(torch.bfloat16).view(torch.int16).numpy().tobytes())
            file.flush()
            os.fsync(file.fileno())


def saves_while_others_wait():
    """Healthy, as instructlab/training#566: the first rank writes what the training has given, which takes minutes, and
    the others wait for it in a barrier."""
    join_group()
    for _ in range(STEPS):
        dist.all_reduce(torch.ones(64))
    at(RANK)
    if RANK == 0:
        save_artifacts(torch.ones(4096, 512))
    dist.barrier()


PROGRAMS = {
    "older-code-on-second-node": older_code_on_second_node,
    "fewer-tasks-on-one-rank": fewer_tasks_on_one_rank,
    "no-tokens-no-backward": no_tokens_no_backward,
    "best-loss-on-first-rank": best_loss_on_first_rank,
    "idle-ranks-skip-forward": idle_ranks_skip_forward,
    "store-on-another-host": store_on_another_host,
    "stages-send-to-each-other": stages_send_to_each_other,
    "disk-slow-at-times": disk_slow_at_times,
    "saves-while-others-wait": saves_while_others_wait,
}

if __name__ == "__main__":
    run(PROGRAMS)
