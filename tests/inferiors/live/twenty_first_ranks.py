"""Ranks of a job over Gloo that hang, and healthy ones, twenty-first set: `twenty_first_ranks.py NAME FOLDER`, each."""

import itertools
import os
import signal
import threading
import time

import torch
import torch.distributed as dist

from tests.inferiors.live.place import LONG, at, child_of, in_folder, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def fetch_checkpoint(path):
    """From the hub, into the cache of this machine."""
    weights = {f"h.{number}.weight": torch.ones(32, 32) for number in range(4)}
    torch.save(weights, path)


def checkpoint_path():
    path = in_folder("checkpoint.pt")
    if RANK == 0:
        fetch_checkpoint(path)
        at(RANK)
        dist.barrier()
    return path


class ParallelLayer:
    """Each rank has some of the columns; what they give is added up."""

    def __init__(self, weight):
        self.weight = weight.chunk(RANKS, 1)[RANK].contiguous()

    def __call__(self, hidden):
        part = hidden.chunk(RANKS, 1)[RANK] @ self.weight.t()
        dist.all_reduce(part)
        return torch.tanh(part)


def generate(layers, tokens):
    hidden = torch.ones(1, 32)
    for _ in range(tokens):
        for layer in layers:
            hidden = layer(hidden)
    return hidden


def weights_downloaded_once():
    """As huggingface/transformers-bloom-inference#40: the first rank downloads the weights, and calls a barrier at the
    end of that. When the script was put in order, the barrier of the others got lost; they go on to the next step."""
    join_group()
    checkpoint_path()
    if RANK != 0:
        at(RANK)
    sizes = torch.tensor([RANK + 1.0] * 8)
    dist.all_reduce(sizes)
    layers = [ParallelLayer(weight) for weight in torch.load(in_folder("checkpoint.pt")).values()]
    generate(layers, 20)


class Transfer:
    """One that is not on the stream of the computation. It goes when it is waited for."""

    def __init__(self, tensor, peer):
        self.tensor, self.peer, self.done = tensor, peer, False

    def wait(self):
        if not self.done:
            dist.send(self.tensor, self.peer)
            self.done = True


class PipelineLink:
    """To the stage before, and to the one after; the last one is followed by the first."""

    def __init__(self):
        self.previous, self.next = (RANK - 1) % RANKS, (RANK + 1) % RANKS

    def send_forward(self, tensor):
        return Transfer(tensor, self.next)

    def recv_forward(self, shape):
        tensor = torch.empty(shape)
        dist.recv(tensor, self.previous)
        return tensor

    def exchange(self, tensor):
        task = self.send_forward(tensor)
        received = self.recv_forward(tensor.shape)
        task.wait()
        return received


def exchange_in_a_ring():
    """As PaddlePaddle/PaddleFleet#2080: each rank sends to the next one and receives from the one before. The send is
    asked for first, but goes only when it is waited for; that is after the receive, and so nobody sends."""
    join_group()
    link = PipelineLink()
    hidden = torch.full((4, 16), float(RANK))
    for _ in range(3):
        work_for(0.02)
        dist.all_reduce(hidden)
    at(RANK)
    link.exchange(hidden)


def serve_prefill(port):
    import zmq

    pull = zmq.Context().socket(zmq.PULL)
    pull.bind(f"tcp://127.0.0.1:{port}")
    open(in_folder("bound"), "w").close()
    for _ in range(5):
        pull.recv_multipart()
    os.kill(os.getpid(), signal.SIGKILL)  # it has no more memory


class Endpoint:
    """A connection to a prefill instance, and the lock for it."""

    def __init__(self, context, port):
        import zmq

        self.lock, self.alive = threading.Lock(), True
        self.socket = context.socket(zmq.PUSH)
        self.socket.sndhwm = 4
        self.socket.connect(f"tcp://127.0.0.1:{port}")


class DecodeScheduler:
    """Of one data parallel rank. All ranks agree on the size of each step."""

    def __init__(self, port):
        import zmq

        self.endpoint = Endpoint(zmq.Context(), port) if RANK == 1 else None
        self.room = itertools.count()
        if self.endpoint:
            thread(self.heartbeat)

    def heartbeat(self):
        while True:
            time.sleep(0.3)
            if os.path.exists(in_folder("unreachable")):
                with self.endpoint.lock:
                    self.endpoint.alive = False
                    self.endpoint.socket.close()
                return

    def send_metadata(self):
        import zmq

        room = next(self.room)
        with self.endpoint.lock:
            if not self.endpoint.socket.poll(0, zmq.POLLOUT):
                open(in_folder("unreachable"), "w").close()
                at(RANK)
            self.endpoint.socket.send_multipart([str(room).encode(), b"indices of the blocks" * 8])

    def pop_preallocated(self):
        if self.endpoint and self.endpoint.alive:
            self.send_metadata()

    def sync_batch(self):
        sizes = [torch.empty(1, dtype=torch.int64) for _ in range(RANKS)]
        dist.all_gather(sizes, torch.tensor([RANK + 1]))
        return int(max(sizes))

    def step(self):
        self.pop_preallocated()
        work_for(0.01)
        return self.sync_batch()


def metadata_to_a_prefill_instance():
    """As sgl-project/sglang#31144: a prefill instance has died. One of the decode ranks tells it about each request, by
    a socket without a limit of time; when its queue is full, the send waits. It has the lock that the heartbeat would
    need to give up the instance. The other ranks are in the collective of the next step."""
    join_group()
    port = 0
    if RANK == 1:
        from tests.inferiors.torch_job import free_port

        port = free_port()
        child = child_of(serve_prefill, port)
        while not os.path.exists(in_folder("bound")):
            time.sleep(0.02)
    scheduler = DecodeScheduler(port)
    for step in itertools.count():
        if RANK == 1 and step == 5:
            child.join()
            time.sleep(0.2)
        if RANK != 1 and step >= 5:
            at(RANK)
        scheduler.step()


def batches_of(durations, longest=30.0):
    """Utterances in their order, as many in a batch as are not longer than that together."""
    batch = []
    for duration in durations:
        if batch and sum(batch) + duration > longest:
            yield batch
            batch = []
        batch.append(duration)
    yield batch


def utterances_of_each_node():
    """As k2-fsa/snowfall#152: each node has utterances of its own, and they do not make as many batches everywhere. The
    nodes that have fewer are at the end of the epoch; the first one is in the gradients of one more batch."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(24, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    durations = [20.0 if RANK == 0 else 15.0] + [15.0] * 11
    for number, batch in enumerate(batches_of(durations)):
        if number == 6:
            at(RANK)
        loss = model(torch.full((len(batch), 24), sum(batch))).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    at(RANK)
    dist.barrier()


def one_rank_computes_longer():
    """Healthy, as traceopt-ai/traceml#158: one rank computes for longer than the others in each step. What one sees is
    that the others take long for their gradients, as they wait for it in there."""
    join_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step in itertools.count():
        if step == 3:
            at(RANK)
        rows = torch.randn(16, 64)
        if RANK == 2:
            work_for(1.5)
        model(rows).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Checkpoint:
    """Shards of a mixture of experts. Some ranks get more of them than the others do."""

    def __init__(self):
        self.shards = 400 if RANK in (0, 2) else 4
        self.scales = []

    def load_weights(self):
        for number in range(4):
            self.scales.append(torch.full((64, 64), number + 1.0))

    def post_load_weights(self):
        for number in itertools.cycle(range(self.shards)) if RANK == 0 else range(self.shards):
            scale = self.scales[number % 4]
            self.scales[number % 4] = (scale @ scale.t()).softmax(1) * scale.numel()
            work_for(0.05 if RANK == 0 else 0.005)


def heavier_shards_after_the_load():
    """Healthy, as sgl-project/sglang#39128: after the load the weights are brought into another form. One rank has the
    heaviest shards and takes many minutes for that; those that are ready wait for it in a barrier with a limit that is
    now high enough."""
    join_group()
    checkpoint = Checkpoint()
    checkpoint.load_weights()
    if RANK == 0:
        at(RANK)
    checkpoint.post_load_weights()
    at(RANK)
    dist.monitored_barrier(timeout=LONG, wait_all_ranks=True)


PROGRAMS = {
    "weights-downloaded-once": weights_downloaded_once,
    "exchange-in-a-ring": exchange_in_a_ring,
    "metadata-to-a-prefill-instance": metadata_to_a_prefill_instance,
    "utterances-of-each-node": utterances_of_each_node,
    "one-rank-computes-longer": one_rank_computes_longer,
    "heavier-shards-after-the-load": heavier_shards_after_the_load,
}

if __name__ == "__main__":
    run(PROGRAMS)
