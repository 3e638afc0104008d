"""Engines and trainers of torch.distributed ranks, all healthy, second set: `second_engines.py NAME FOLDER`, each."""

import asyncio
import http.server
import os
import pickle
import selectors
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

from tests.inferiors.live.place import LONG, at, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))


def join_group():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()


def engine(next_batch):
    """Rank 0 gets batches of requests, and broadcasts their size and their bytes; then all do a step."""
    join_group()
    at(RANK)
    while True:
        size = torch.zeros(1, dtype=torch.long)
        if RANK == 0:
            data = torch.frombuffer(bytearray(pickle.dumps(next_batch())), dtype=torch.uint8)
            size[0] = len(data)
        dist.broadcast(size, src=0)
        if RANK:
            data = torch.zeros(int(size), dtype=torch.uint8)
        dist.broadcast(data, src=0)
        dist.all_reduce(torch.ones(64))


def zmq_batch():
    """The scheduler blocks in a PULL socket."""
    import zmq

    with zmq.Context.instance().socket(zmq.PULL) as inbox:
        inbox.bind(f"ipc://{sys.argv[2]}/requests")
        return inbox.recv_pyobj()


def zmq_polled_batch():
    """The scheduler polls its sockets with a timeout, again and again."""
    import zmq

    poller = zmq.Poller()
    for kind, name in ((zmq.PULL, "requests"), (zmq.ROUTER, "control")):
        one = zmq.Context.instance().socket(kind)
        one.bind(f"ipc://{sys.argv[2]}/{name}")
        poller.register(one, zmq.POLLIN)
    while not poller.poll(1000):
        pass


def unix_socket_batch():
    """A selector over a listening socket and a wake-up pipe; detokenizer threads have nothing to do."""
    pool = ThreadPoolExecutor(3)
    list(pool.map(work_for, [0.01] * 3))
    with selectors.DefaultSelector() as ready, socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(sys.argv[2], "engine.sock"))
        server.listen()
        ready.register(server, selectors.EVENT_READ)
        ready.register(os.pipe()[0], selectors.EVENT_READ)
        ready.select()


def condition_batch():
    """An asyncio front end in a thread; the engine's loop waits a second at a time on a condition."""

    async def front_end():
        async def take(*_):
            with arrived:
                requests.append(1)
                arrived.notify()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        await server.serve_forever()

    requests, arrived = [], threading.Condition()
    thread(asyncio.run, front_end())
    while not requests:
        with arrived:
            arrived.wait(1.0)


def dummy_steps():
    """Data-parallel replicas without requests do dummy steps, so that no replica is ever alone."""
    join_group()
    at(RANK)
    while True:
        dist.all_reduce(torch.zeros(6))
        time.sleep(0.1)


def disaggregated():
    """Rank 0 prefills when a request comes by HTTP; ranks 1 and 2 wait for the cache that it would send them."""
    join_group()
    cache = torch.zeros(1024)
    at(RANK)
    while True:
        if RANK == 0:
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
                server.handle_request()
            for decoder in (1, 2):
                dist.send(cache, dst=decoder)
        else:
            dist.recv(cache, src=0)


def shared_memory_channel():
    """Followers look for a new step in shared memory, with short sleeps; the leader waits for a client."""
    join_group()
    name = [None]
    if RANK == 0:
        block = shared_memory.SharedMemory(create=True, size=64)
        name = [block.name]
    dist.broadcast_object_list(name, src=0)
    if RANK:
        block = shared_memory.SharedMemory(name=name[0])
    dist.barrier()
    if RANK == 0:
        block.unlink()
    at(RANK)
    while RANK and not block.buf[0]:
        time.sleep(0.001)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.accept()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)

    def forward(self, batch):
        return self.head(torch.relu(self.body(batch))).mean()


def trainer():
    model = DistributedDataParallel(Model())
    return model, torch.optim.SGD(model.parameters(), 0.01)


def step(model, optimizer, batch):
    optimizer.zero_grad()
    model(batch).backward()
    optimizer.step()


def uneven_inputs_joined():
    """Each rank has another number of batches, and join() keeps them together."""
    join_group()
    model, optimizer = trainer()
    at(RANK)
    while True:
        with Join([model]):
            for _ in range(4 + 4 * RANK):
                work_for(0.05)
                step(model, optimizer, torch.rand(8, 64))


def saves_beside():
    """Rank 0 writes its checkpoint in a thread while the steps go on."""
    join_group()
    model, optimizer = trainer()

    def save():
        while True:
            torch.save({"weights": torch.rand(1 << 20)}, os.path.join(sys.argv[2], "weights.pt"))
            os.sync()

    if RANK == 0:
        thread(save)
    at(RANK)
    while True:
        step(model, optimizer, torch.rand(8, 64))
        work_for(0.02)


def polls_the_store():
    """Rank 0 prepares the data set; the others ask the store for it twice a second."""
    join_group()
    store = dist.distributed_c10d._get_default_store()
    at(RANK)
    part = 0
    while True:
        part += 1
        if RANK == 0:
            work_for(3.0)
            store.set(f"part{part}", "done")
        while not store.check([f"part{part}"]):
            time.sleep(0.5)


class Remote(IterableDataset):
    """Batches from a store that answers slowly."""

    def __iter__(self):
        while True:
            time.sleep(1.5 if RANK == 1 else 0.1)
            yield torch.rand(64)


def slow_storage():
    """The worker of rank 1's loader waits a second and a half for each sample."""
    join_group()
    model, optimizer = trainer()
    for number, batch in enumerate(DataLoader(Remote(), batch_size=2, num_workers=1)):
        if number == 1:
            at(RANK)
        step(model, optimizer, batch)


def prefetched_batches():
    """The loader is far ahead: its workers wait for room while each rank computes two seconds for a step."""
    join_group()
    model, optimizer = trainer()
    data = [torch.rand(64) for _ in range(4096)]
    while True:
        for number, batch in enumerate(DataLoader(data, batch_size=8, num_workers=1)):
            if number == 1:
                at(RANK)
            work_for(2.0)
            step(model, optimizer, batch)


def rpc_servers():
    """Parameter servers without a question; the trainer works on its own for a while between two."""
    import torch.distributed.rpc as rpc

    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=3)
    at(RANK)
    while RANK == 0:
        work_for(1.5)
        rpc.rpc_sync("worker1", torch.add, args=(torch.ones(2), 1))
    rpc.shutdown()


def gathers_objects():
    """Steps of object collectives and a monitored barrier, each rank with its own pace."""
    join_group()
    at(RANK)
    while True:
        work_for(0.1 * (RANK + 1))
        dist.all_gather_object([None] * dist.get_world_size(), {"rank": RANK, "text": "x" * 2000})
        dist.monitored_barrier(timeout=LONG)


PROGRAMS = {
    "zmq-leader": lambda: engine(zmq_batch),
    "zmq-polling-leader": lambda: engine(zmq_polled_batch),
    "unix-socket-leader": lambda: engine(unix_socket_batch),
    "condition-leader": lambda: engine(condition_batch),
    "dummy-steps": dummy_steps,
    "disaggregated": disaggregated,
    "shared-memory-channel": shared_memory_channel,
    "uneven-inputs-joined": uneven_inputs_joined,
    "saves-beside": saves_beside,
    "polls-the-store": polls_the_store,
    "slow-storage": slow_storage,
    "prefetched": prefetched_batches,
    "rpc-servers": rpc_servers,
    "gathers-objects": gathers_objects,
}

if __name__ == "__main__":
    run(PROGRAMS)
