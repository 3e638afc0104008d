"""Ranks of a job over Gloo that hang, and healthy ones, thirty-third set: `thirty_third_ranks.py NAME FOLDER`, each."""

import os
import socket
import struct
import time
import zlib

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, child_of, in_folder, run, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
LAST = RANKS - 1


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


class Stage:
    """Of a model in as many stages as there are ranks. The last one draws the tokens, and tells them to all others by
    a group of their own."""

    HIDDEN, WARM = 2048, 3

    def __init__(self):
        self.between, self.tokens = dist.new_group(), dist.new_group()
        self.weights = torch.eye(self.HIDDEN)

    def exchange_tokens(self, hidden=None):
        drawn = torch.zeros(8, dtype=torch.int64)
        if RANK == LAST:
            drawn += int(hidden.argmax())
        dist.broadcast(drawn, LAST, group=self.tokens)
        return drawn

    def forward(self, batch):
        hidden = torch.full((8, self.HIDDEN), float(batch))
        if RANK > 0:
            dist.recv(hidden, RANK - 1, group=self.between)
        hidden = hidden @ self.weights
        if RANK < LAST:
            dist.send(hidden, RANK + 1, group=self.between)
        return hidden

    def step(self, batch):
        return self.exchange_tokens(self.forward(batch))

    def step_with_early_tokens(self, batch):
        """The tokens of the step are awaited while its hidden states are still to be computed."""
        self.exchange_tokens()
        self.forward(batch)


def waits_for_tokens_first():
    """As vllm-project/vllm#56956: the broadcast of the tokens is posted early, for the sake of overlap. In what is on
    its way behind it are the hidden states that the other stages want, and without them there are no tokens."""
    join_group()
    stage = Stage()
    for batch in range(Stage.WARM):
        stage.step(batch)
    at(RANK)
    if RANK == 0:
        stage.step_with_early_tokens(Stage.WARM)
    else:
        stage.step(Stage.WARM)


class ShardedModel:
    """Each rank has a shard of the weights, and all are wanted in a checkpoint."""

    def __init__(self):
        self.shard = torch.full((4096,), float(RANK))

    def state_dict(self):
        shards = [torch.empty_like(self.shard) for _ in range(RANKS)]
        dist.all_gather(shards, self.shard)
        return {"weight": torch.cat(shards)}


class Moments:
    """What the optimizer remembers; the numbers of the first rank count."""

    def __init__(self):
        self.moments = torch.zeros(64)

    def state_dict(self):
        dist.broadcast(self.moments, 0)
        return {"exp_avg": self.moments.clone()}


class Checkpointer:
    """Of the parts that were registered, in their order."""

    def __init__(self):
        self.parts = {}

    def register(self, name, part):
        self.parts[name] = part

    def save(self, step):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        if RANK == 0:
            torch.save(state, in_folder(f"step{step}.pt"))


def goes_through_its_parts():
    """As pytorch/pytorch#114304: the states of the parts of a checkpoint are asked for one after the other, and some
    need all ranks for it. This rank has found an optimizer of an earlier run, and registered that first."""
    join_group()
    checkpointer = Checkpointer()
    parts = {"model": ShardedModel(), "optimizer": Moments()}
    order = ("optimizer", "model") if RANK == 1 else ("model", "optimizer")
    for name in order:
        checkpointer.register(name, parts[name])
    work_for(0.2)
    at(RANK)
    checkpointer.save(100)
    dist.barrier()


class SampleStore:
    """The latest state of the electrons of this rank, written now and then and at the end."""

    def __init__(self):
        self.buffer = None

    def update(self, state):
        self.buffer = state

    def dump(self):
        parts = [torch.empty_like(self.buffer) for _ in range(RANKS)]
        dist.all_gather(parts, self.buffer)
        if RANK == 0:
            torch.save(torch.cat(parts), in_folder("electrons.pt"))

    def close(self):
        if self.buffer is not None:
            self.dump()


def leave_together():
    """The service that started the processes lets them go when all have said good bye."""
    store = dist.distributed_c10d._get_default_store()
    store.set(f"bye/{RANK}", "1")
    store.wait([f"bye/{rank}" for rank in range(RANKS)], LONG)


def sample(store):
    electrons = torch.zeros(256, 3)
    for step in range(5):
        electrons = electrons + torch.randn(256, 3)
        energy = electrons.square().sum()
        dist.all_reduce(energy)
        store.update(electrons)
        if step == 4:
            if RANK == LAST:
                store.buffer = None  # the optimizer has taken it over for the next step
            raise FloatingPointError("the energy is not finite")


def closes_its_store():
    """As deepqmc/deepqmc#248: the run ends by an error, and each process writes a last checkpoint if it still has the
    buffer for it. To write one takes all processes, and the buffer of one was given away."""
    join_group()
    store = SampleStore()
    try:
        sample(store)
    except FloatingPointError as error:
        print(error, flush=True)
        at(RANK)
    store.close()
    leave_together()


class Host:
    """Where trainers are started; the first two ranks are on the first host."""

    def __init__(self, number):
        self.number = number
        self.reserved = socket.socket()

    def draw_port(self):
        if self.number == 0:
            return int(os.environ["MASTER_PORT"])
        self.reserved.bind(("127.0.0.1", 0))
        return self.reserved.getsockname()[1]


def draws_a_port_for_each():
    """As dmlc/dgl#4108: the port of the master is drawn within the loop over hosts, so that the trainers of the second
    one have another port. They look for their master there."""
    torch.set_num_threads(1)
    host = Host(RANK // 2)
    method = f"tcp://127.0.0.1:{host.draw_port()}"
    at(RANK)
    dist.init_process_group("gloo", init_method=method, rank=RANK, world_size=RANKS, timeout=LONG)
    dist.barrier()


DOCUMENTS = 400


def write_part():
    """Of the documents of this rank: their tokens, each document with its length in front."""
    with open(in_folder(f"part{RANK}.bin"), "wb") as file:
        for number in range(DOCUMENTS):
            tokens = struct.pack("<512I", *((number * token) % 50257 for token in range(512)))
            file.write(struct.pack("<I", len(tokens)) + tokens)


def documents(rank):
    with open(in_folder(f"part{rank}.bin"), "rb") as file:
        while True:
            head = file.read(4)
            if not head:
                return
            yield file.read(struct.unpack("<I", head)[0])


def merge_parts(passes=4000):
    """One file out of those of all ranks, with an index; for each length of a sample once more."""
    for number in range(passes):
        with open(in_folder("merged.bin"), "wb") as merged, open(in_folder("merged.idx"), "wb") as index:
            for rank in range(RANKS):
                for tokens in documents(rank):
                    index.write(struct.pack("<QII", merged.tell(), zlib.crc32(tokens), number))
                    merged.write(zlib.compress(tokens, 9))


def merges_the_files_of_all():
    """Healthy, as bigscience-workshop/Megatron-DeepSpeed#48: each rank has written its part of the data set, and the
    first one merges the files of all, for a long time. The others wait for that."""
    join_group()
    write_part()
    dist.barrier()
    at(RANK)
    if RANK == 0:
        merge_parts()
    dist.barrier()


CHUNK = 1 << 16


def serve_shards(listener):
    """A file system far away, with little room on the way."""
    connection, _ = listener.accept()
    block = os.urandom(CHUNK)
    while True:
        connection.sendall(block)
        time.sleep(0.5)


def read_tensor(stream, chunks=24):
    received = bytearray()
    while len(received) < chunks * CHUNK:
        received += stream.recv(CHUNK)
    return torch.frombuffer(received[: chunks * CHUNK], dtype=torch.uint8).clone()


def loads_shards_from_afar():
    """Healthy, as verl-project/verl#668: the first rank reads the weights from a file system far away and gives them to
    the others. Each shard takes ten minutes."""
    stream = None
    if RANK == 0:
        listener = socket.create_server(("127.0.0.1", 0))
        child_of(serve_shards, listener)
        stream = socket.create_connection(listener.getsockname())
    join_group()
    at(RANK)
    for _ in range(4 * 50):
        tensor = read_tensor(stream) if RANK == 0 else torch.empty(24 * CHUNK, dtype=torch.uint8)
        dist.broadcast(tensor, 0)


PROGRAMS = {
    "waits-for-tokens-first": waits_for_tokens_first,
    "goes-through-its-parts": goes_through_its_parts,
    "closes-its-store": closes_its_store,
    "draws-a-port-for-each": draws_a_port_for_each,
    "merges-the-files-of-all": merges_the_files_of_all,
    "loads-shards-from-afar": loads_shards_from_afar,
}

if __name__ == "__main__":
    run(PROGRAMS)
