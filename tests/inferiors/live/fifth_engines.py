"""Engines of several processes that hang, and their healthy twins, fifth set: `fifth_engines.py NAME FOLDER`."""

import asyncio
import logging
import multiprocessing
import os
import pickle
import select
import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory

from tests.inferiors.live.place import LONG, at, child_of, run, thread, work_for
from tests.inferiors.torch_job import free_port

FORK = multiprocessing.get_context("fork")
log = logging.getLogger("engine")


class Rank:
    """One shard of the model: runs in a process of its own what the driver sends it."""

    def __init__(self, rank):
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=LONG)
        self.rank, self.torch, self.dist = rank, torch, dist

    def execute(self, step):
        if step == 3:
            at(self.rank)
        hidden = self.torch.ones(64)
        self.dist.all_reduce(hidden)
        return int(hidden.sum())

    def execute_long(self, step):
        at(self.rank)
        work_for(3.0 if self.rank == 1 else 0.5)
        return self.execute(step)


def rank_main(rank, connection):
    one = Rank(rank)
    while True:
        method, step, _ = connection.recv()
        connection.send(getattr(one, method)(step))


class Driver:
    """Sends each step to all ranks and takes the result of rank 0 first."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        os.environ.update(WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        self.connections, self.processes = [], []
        for rank in range(3):
            ours, theirs = context.Pipe()
            os.environ["RANK"] = str(rank)
            process = context.Process(target=rank_main, args=(rank, theirs), daemon=True)
            process.start()
            theirs.close()
            self.connections.append(ours)
            self.processes.append(process)
        del os.environ["RANK"]

    def step(self, method, number, options=None):
        for rank, connection in enumerate(self.connections):
            try:
                connection.send((method, number, (options or {}).get(rank)))
            except (AttributeError, TypeError, pickle.PicklingError):
                log.exception("step %d is not for rank %d", number, rank)
        return [connection.recv() for connection in self.connections]


def command_to_two():
    """What rank 2 should have besides the step cannot be pickled: the driver logs it, and waits for the results."""
    driver = Driver()
    for number in range(3):
        driver.step("execute", number)
    with open(os.path.join(sys.argv[2], "2"), "w") as file:  # it cannot know that it will not be asked again
        file.write(str(driver.processes[2].pid))
    at("main")
    driver.step("execute", 3, {2: lambda token: token})


def long_steps():
    """The twin: all ranks have every step, and rank 1 needs three seconds for each."""
    driver = Driver()
    number = 0
    while True:
        if number == 3:
            at("main")
        driver.step("execute" if number < 3 else "execute_long", number)
        number += 1


class Ring:
    """Messages in shared memory: each slot has the message's number and who has read it; both sides look for a change
    with short sleeps, as there is nobody to wake them."""

    SLOTS, SIZE, READERS = 4, 1024, 2
    HEAD = struct.Struct("<qbb")

    def __init__(self):
        self.memory = shared_memory.SharedMemory(create=True, size=self.SLOTS * self.SIZE)
        self.memory.unlink()  # the workers inherit it; nothing is left when all are gone
        for slot in range(self.SLOTS):
            self.HEAD.pack_into(self.memory.buf, slot * self.SIZE, -1, 1, 1)

    def head(self, number):
        return self.HEAD.unpack_from(self.memory.buf, number % self.SLOTS * self.SIZE)

    def write(self, number, message):
        while not all(self.head(number)[1:]):
            time.sleep(0.001)
        place = number % self.SLOTS * self.SIZE
        self.memory.buf[place + 16 : place + 16 + len(message)] = message
        self.HEAD.pack_into(self.memory.buf, place, number, 0, 0)

    def read(self, number, reader):
        while self.head(number)[0] != number:
            time.sleep(0.001)
        place = number % self.SLOTS * self.SIZE
        message = bytes(self.memory.buf[place + 16 : place + 16 + 64])
        self.memory.buf[place + 8 + reader] = 1
        return message


def read_ring(ring, reader):
    number = 0
    while True:
        length = int(ring.read(number, reader)[:1] or b"0")
        work_for(0.002 * (12 // length if reader == 1 else 1))
        number += 1


def ring_worker(ring, reader):
    """The steps are run by a thread; the main thread waits for the order to stop."""
    stop = threading.Event()
    thread(read_ring, ring, reader)
    at(f"worker{reader}")
    stop.wait()


def ring_reader_died(messages=b"33303333333333333333"):
    """One message has the length 0, which ends the thread of worker 1 by an exception; soon all slots are unread."""
    ring = Ring()
    for reader in range(2):
        child_of(ring_worker, ring, reader)
    at("main")
    for number, message in enumerate(messages):
        ring.write(number, bytes([message]))


def ring_at_rest():
    """The twin: twenty messages were read by both workers; the server waits for its next client."""
    ring = Ring()
    for reader in range(2):
        child_of(ring_worker, ring, reader)
    number = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        for number in range(20):
            ring.write(number, b"3")
        at("main")
        while True:
            with server.accept()[0] as client:
                number += 1
                ring.write(number, client.recv(1))


def engine_core(requests, answers):
    at("engine")
    while True:
        number, prompt = requests.get()
        try:
            answers.put((number, [ord(letter) for letter in prompt]))
        except TypeError:
            log.exception("request %d failed", number)


def request_lost():
    """The engine logs the error of a request without a prompt and answers nothing; generate() counts the answers."""
    requests, answers = FORK.Queue(), FORK.Queue()
    child_of(engine_core, requests, answers)
    prompts = ["one", "two", None, "four"]
    for number, prompt in enumerate(prompts):
        requests.put((number, prompt))
    done = dict(answers.get() for _ in range(3))
    at("main")
    while len(done) < len(prompts):
        done.update([answers.get()])


def chunks_in_same_executor():
    """Two requests are prepared by the two threads of the loop's executor; each asks the loop to have its text split,
    which the loop gives to the same executor."""

    async def split(text):
        return await asyncio.to_thread(text.split)

    def prepare(loop, text):
        return asyncio.run_coroutine_threadsafe(split(text), loop).result()

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(2, "tokenizer"))
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        async with server:
            at("main")
            await asyncio.gather(*(asyncio.to_thread(prepare, loop, text) for text in ("a b", "c d")))

    asyncio.run(main())


def drain(reading):
    while os.read(reading, 1 << 16):
        pass


def loader_with_bars():
    """A thread writes a long report by tqdm, under tqdm's lock, when the loader forks its worker, which has a bar."""
    from torch.utils.data import DataLoader, Dataset
    from tqdm import tqdm

    class Shards(Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            if index == 0:
                at("worker")
            with tqdm(total=1, desc=f"shard {index}") as bar:
                bar.update()
            return index

    reading, writing = os.pipe()
    report = os.fdopen(writing, "w")
    with tqdm(total=1, desc="model"):
        pass
    thread(tqdm.write, "x" * (1 << 21), report)
    select.select([reading], [], [])  # the thread is in write(), and stays until somebody reads
    batches = iter(DataLoader(Shards(), batch_size=4, num_workers=1, multiprocessing_context="fork"))
    thread(drain, reading)
    at("main")
    next(batches)


PROGRAMS = {
    "command-to-two": command_to_two,
    "long-steps": long_steps,
    "ring-reader-died": ring_reader_died,
    "ring-at-rest": ring_at_rest,
    "request-lost": request_lost,
    "chunks-in-same-executor": chunks_in_same_executor,
    "loader-with-bars": loader_with_bars,
}

if __name__ == "__main__":
    run(PROGRAMS)
