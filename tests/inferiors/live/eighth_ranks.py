"""Ranks of a job over Gloo that hang, and healthy ones, eighth set: `eighth_ranks.py NAME FOLDER`, one process each."""

import ctypes
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch
import torch.distributed as dist

from tests.inferiors.live.eighth_extension import extension
from tests.inferiors.live.place import LONG, at, fifo, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
STEPS = 6


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def all_reduce():
    numbers = torch.ones(256)
    dist.all_reduce(numbers)
    return numbers


def forward(model, rows):
    """A batch; one that is too large does not fit into memory. The allocator says so."""
    activations = torch.empty(rows, 1 << 20)
    return model(activations[:4, :64].fill_(0.5)).sum()


def too_large():
    """Rows of a batch that no machine has memory for."""
    return 1 << 40


def replica():
    join_group()
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))


def skips_batch_on_oom():
    """Rank 1 has no memory for its third batch and skips it: backward with its sum of gradients has been left out, and
    it ends the epoch one sum before the others."""
    model = replica()
    for number in range(STEPS):
        if number == STEPS - 1:
            at(RANK)
        try:
            loss = forward(model, too_large() if RANK == 1 and number == 2 else 4)
        except RuntimeError as error:
            print("batch skipped:", str(error)[:60], flush=True)
            continue
        loss.backward()
    dist.barrier()


def halves_batch_on_oom():
    """Healthy: rank 1 has no memory for each of its batches at first, and makes two halves of it, which takes long."""
    model = replica()
    at(RANK)
    while True:
        try:
            loss = forward(model, too_large() if RANK == 1 else 4)
        except RuntimeError:
            with model.no_sync():
                forward(model, 2).backward()
                work_for(1.2)
            loss = forward(model, 2)
        loss.backward()


class Stage:
    """One of three pipeline stages: one forward, one backward in turns, after a warm-up of forwards only."""

    def __init__(self, batches):
        self.batches, self.forwards, self.backwards, self.sends = batches, 0, 0, []

    def send(self, numbers, rank):
        """Not waited for: both neighbours may send at the same time."""
        self.sends.append(dist.isend(numbers, rank))

    def forward(self):
        hidden = torch.ones(512)
        if RANK > 0:
            dist.recv(hidden, RANK - 1)
        if RANK < 2:
            self.send(hidden * 2, RANK + 1)
        self.forwards += 1

    def backward(self):
        gradient = torch.ones(512)
        if RANK < 2:
            dist.recv(gradient, RANK + 1)
        if RANK > 0:
            self.send(gradient / 2, RANK - 1)
        self.backwards += 1

    def run(self, stages):
        for _ in range(min(stages - RANK - 1, self.batches)):
            self.forward()
        while self.backwards < self.batches:
            if self.forwards < self.batches:
                self.forward()
            self.backward()
        for sent in self.sends:
            sent.wait()


def warm_up_too_long():
    """Rank 1 was told that there are five stages: it wants more forwards before its first backward than rank 0 sends
    without one."""
    join_group()
    at(RANK)
    Stage(8).run(5 if RANK == 1 else 3)
    all_reduce()


def cache_folder():
    """Where the index of the samples lies: rank 2 has the variable of a node with a disk of its own."""
    name = "local" if RANK == 2 else "shared"
    path = os.path.join(sys.argv[2], name)
    os.makedirs(path, exist_ok=True)
    return path


def index_on_other_disk():
    """Rank 0 builds the index, the others look for it until it is there. That of rank 2 never comes."""
    join_group()
    path = os.path.join(cache_folder(), "index.npy")
    if RANK == 0:
        numpy.save(path, numpy.random.default_rng(1).permutation(1 << 16))
    at(RANK)
    while not os.path.exists(path):
        time.sleep(0.5)
    numpy.load(path)
    all_reduce()


def index_takes_long():
    """Healthy: for each epoch rank 0 sorts the samples by length, in one long native call; the others look for it."""
    join_group()
    lengths = numpy.random.default_rng(1).integers(0, 1 << 20, 12_000_000 if RANK == 0 else 0)
    epoch = 0
    at(RANK)
    while True:
        path = os.path.join(sys.argv[2], f"index-{epoch}.npy")
        if RANK == 0:
            order = numpy.lexsort((lengths, lengths % (epoch + 7), lengths >> 3))
            numpy.save(path + ".draft.npy", order[:1000])
            os.rename(path + ".draft.npy", path)
        while not os.path.exists(path):
            time.sleep(0.5)
        numpy.load(path)
        all_reduce()
        epoch += 1


def write_checkpoint(state):
    """To a mounted folder whose server has stopped answering."""
    with open(fifo(), "wb", buffering=0) as file:
        for tensor in state:
            file.write(tensor.numpy().tobytes())


def finally_joins_writer():
    """Rank 1 cannot use a sample and raises. On the way out it waits for the thread that writes the last checkpoint,
    and that one for its file; the others wait for rank 1's gradients, not for its message."""
    join_group()
    writer = thread(write_checkpoint, [torch.ones(1 << 16)]) if RANK == 1 else None
    try:
        for number in range(STEPS):
            if number == STEPS - 1:
                at(RANK)
                if RANK == 1:
                    raise ValueError("sample 4711 has no tokens")
            all_reduce()
        dist.barrier()
    finally:
        if writer:
            writer.join()
        dist.destroy_process_group()


def world_of_four():
    """Rank 2 counts the devices of its node for the size of the job: one too many. It waits for a rank 3."""
    torch.set_num_threads(1)
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    at(RANK)
    dist.init_process_group("gloo", address, rank=RANK, world_size=4 if RANK == 2 else 3, timeout=LONG)
    dist.barrier()


def probes_full_table():
    """The table of block hashes has 64 slots and is full on rank 2: C++ code looks for a free one, round and round."""
    join_group()
    library = extension()
    library.blocks_open()
    at(RANK)
    for block in range(65 if RANK == 2 else 40):
        library.blocks_add(ctypes.c_ulong(block * 7919 + 1))
    all_reduce()


def rank_was_stopped():
    """Somebody has stopped rank 2, to look at it in peace, and has not let it run on."""
    join_group()
    for _ in range(STEPS):
        all_reduce()
    at(RANK)
    if RANK == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    all_reduce()


PIECES, PIECE = 40, 4096


def storage(write):
    """What comes over a slow line, for ever."""
    while True:
        os.write(write, b"w" * PIECE)
        time.sleep(0.05)


def weights_trickle():
    """Healthy: rank 1 reads the layers for all, by two threads and from slow storage, and tells the others each."""
    join_group()
    read, write = os.pipe()
    if RANK == 1 and os.fork() == 0:
        os.close(read)
        storage(write)
    os.close(write)

    def piece(_):
        return os.read(read, PIECE)

    at(RANK)
    with ThreadPoolExecutor(2) as readers:
        while True:
            layer = torch.zeros(1 << 10)
            if RANK == 1:
                layer += sum(map(len, readers.map(piece, range(PIECES))))
            dist.broadcast(layer, src=1)


def warns_with_every_step():
    """A rank of `launcher-reads-nothing`: rank 1 warns of each token that is not in its vocabulary, on standard error,
    which nobody reads. The pipe is full after some steps."""
    join_group()
    number = 0
    while True:
        if number == 8:
            at(RANK)
        if RANK == 1:
            os.write(2, b"".join(b"token %6d is unknown and is replaced by <unk>\n" % one for one in range(80)))
        all_reduce()
        number += 1


PROGRAMS = {
    "skips-batch-on-oom": skips_batch_on_oom,
    "halves-batch-on-oom": halves_batch_on_oom,
    "warm-up-too-long": warm_up_too_long,
    "index-on-other-disk": index_on_other_disk,
    "index-takes-long": index_takes_long,
    "finally-joins-writer": finally_joins_writer,
    "world-of-four": world_of_four,
    "probes-full-table": probes_full_table,
    "rank-was-stopped": rank_was_stopped,
    "weights-trickle": weights_trickle,
    "warns-with-every-step": warns_with_every_step,
}

if __name__ == "__main__":
    run(PROGRAMS)
