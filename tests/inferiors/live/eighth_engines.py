"""Engines of several processes that hang, and healthy ones, eighth set: `eighth_engines.py NAME FOLDER`."""

import asyncio
import collections
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import shared_memory

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for
from tests.inferiors.torch_job import free_port

FORK = multiprocessing.get_context("fork")
RANKS = 3


def launcher_reads_nothing():
    """Starts the ranks with pipes for their output, and waits for the end of one after the other."""
    same = {**os.environ, "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    words = [sys.executable, "-m", "tests.inferiors.live.eighth_ranks", "warns-with-every-step", sys.argv[2]]
    started = [
        subprocess.Popen(words, env={**same, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(RANKS)
    ]
    at("main")
    for one in started:
        one.wait()


def datagrams(name):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(in_folder(name))
    return made


def engine_core(lives):
    """Takes requests and gives outputs, over sockets that know nothing of connections, as those of ZeroMQ."""
    with datagrams("input") as inputs, datagrams("engine-out") as outputs:
        at("engine")
        for number in range(1 << 30):
            text = inputs.recv(4096)
            if not lives and number == 2:
                os.kill(os.getpid(), signal.SIGKILL)  # what the kernel does when memory is short
            work_for(0.05)
            outputs.sendto(text, in_folder("output"))


class FrontEnd:
    """Requests wait for the outputs that a thread receives."""

    def __init__(self):
        self.loop, self.waiting, self.sender = asyncio.get_running_loop(), {}, datagrams("front")
        thread(self.receive, datagrams("output"))

    def receive(self, outputs):
        while True:
            output = json.loads(outputs.recv(4096))
            self.loop.call_soon_threadsafe(self.waiting[output["request"]].put_nowait, output)

    async def generate(self, number):
        queue = self.waiting[number] = asyncio.Queue()
        self.sender.sendto(json.dumps({"request": number}).encode(), in_folder("input"))
        return await queue.get()


async def serve(number_of_requests):
    front = FrontEnd()
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    for number in range(number_of_requests):
        if number == number_of_requests - 1:
            at("main")
        await front.generate(number)
    await server.serve_forever()


def engine_was_killed():
    """The third request finds an engine that the kernel kills; nobody asks whether it is alive."""
    child_of(engine_core, False)
    wait_for_role("engine")
    asyncio.run(serve(3))


def engine_is_idle():
    """Healthy: three requests have been answered, and nobody asks for more."""
    child_of(engine_core, True)
    wait_for_role("engine")
    asyncio.run(serve(3))


LIMIT = 2048
"""Tokens; the prefill side refuses longer prompts."""


def prefill(requests, blocks):
    """Computes the cache of each request and sends it to the decode side. A long one is logged and dropped."""
    at("prefill")
    with requests.makefile("r") as lines:
        for line in lines:
            request = json.loads(line)
            if request["tokens"] > LIMIT:
                print("prompt too long, dropped:", request["number"], flush=True)
                continue
            work_for(0.05)
            blocks.sendall(b"k" * 4096)


def decode(requests, blocks):
    """For each request: its cache from the prefill side, then the answer."""
    at("decode")
    with requests.makefile("rw") as lines:
        for line in lines:
            received = 0
            while received < 4096:
                received += len(blocks.recv(4096 - received))
            lines.write(line)
            lines.flush()


def prefill_drops_request():
    """The router sends each request to both sides, with the fourth one of 3000 tokens."""
    (to_prefill, for_prefill), (to_decode, for_decode) = socket.socketpair(), socket.socketpair()
    sends, receives = socket.socketpair()
    child_of(prefill, for_prefill, sends)
    child_of(decode, for_decode, receives)
    wait_for_role("prefill")
    wait_for_role("decode")
    with to_decode.makefile("r") as answers:
        for number, tokens in enumerate((12, 500, 2000, 3000, 40)):
            if number == 3:
                at("main")
            for side in (to_prefill, to_decode):
                side.sendall(json.dumps({"number": number, "tokens": tokens}).encode() + b"\n")
            print("answer", answers.readline(), flush=True)


class Scheduler:
    """Requests that wait for blocks of the cache, in the order of their arrival, and those that run."""

    def __init__(self, blocks):
        self.free, self.waiting, self.running = blocks, collections.deque(), {}

    def add(self, number, blocks, seconds):
        self.waiting.append((number, blocks, seconds))

    def schedule(self):
        """Starts what fits; numbers of those that have ended by now."""
        while self.waiting and self.waiting[0][1] <= self.free:
            number, blocks, seconds = self.waiting.popleft()
            self.free -= blocks
            self.running[number] = blocks, time.monotonic() + seconds
        ended = [number for number, (_, until) in self.running.items() if until < time.monotonic()]
        for number in ended:
            self.free += self.running.pop(number)[0]
        return ended


def schedule_for_ever(requests):
    """The engine: as long as there are requests it steps, whether or not anything can be scheduled."""
    scheduler = Scheduler(blocks=64)
    at("engine")
    while True:
        while requests.poll(0 if scheduler.waiting or scheduler.running else None):
            scheduler.add(*requests.recv())
        for number in scheduler.schedule():
            requests.send(number)


def asks_scheduler(asked):
    ours, theirs = FORK.Pipe()
    child_of(schedule_for_ever, theirs)
    wait_for_role("engine")
    at("main")
    for batch in asked:
        for request in batch:
            ours.send(request)
        for _ in batch:
            ours.recv()


def nothing_schedulable():
    """The second request wants more blocks than the cache has at all: it waits at the head of the line, for ever."""
    asks_scheduler([[(0, 16, 0.05)], [(1, 80, 0.05), (2, 4, 0.05)]])


def waits_for_blocks():
    """Healthy: the second request of each batch has to wait until the first one ends and gives its blocks back."""

    def batches():
        number = 0
        while True:
            yield [(number, 48, 1.5), (number + 1, 60, 0.3)]
            number += 2

    asks_scheduler(batches())


class Engine:
    """Generates as long as it is not paused; commands come at any time."""

    def __init__(self, commands):
        self.commands, self.resumed, self.requests = commands, threading.Event(), collections.deque()
        self.arrived = threading.Semaphore(0)
        self.resumed.set()

    def obey(self):
        while True:
            word, value = self.commands.recv()
            if word == "pause":
                self.resumed.clear()
                self.commands.send("paused")
            elif word == "update":
                work_for(value)
                self.commands.send("updated")
            elif word == "resume":
                self.resumed.set()
            else:
                self.requests.append(value)
                self.arrived.release()

    def generate(self):
        while True:
            self.arrived.acquire()
            self.resumed.wait()
            work_for(0.1)
            self.commands.send(self.requests.popleft())


def rollout_engine(commands):
    engine = Engine(commands)
    thread(engine.obey)
    at("engine")
    engine.generate()


def rollouts(new_weights):
    """The trainer: rollouts of an engine, then new weights, for which the engine is paused. The next request is on its
    way meanwhile."""
    ours, theirs = FORK.Pipe()
    child_of(rollout_engine, theirs)
    wait_for_role("engine")
    ours.send(("generate", 0))
    for number in range(1, 1 << 30):
        ours.recv()
        ours.send(("pause", None))
        ours.recv()
        ours.send(("generate", number))
        if number == 1:
            at("main")
        try:
            ours.send(("update", new_weights(number)))
            ours.recv()
            ours.send(("resume", None))
        except KeyError as error:
            print("no new weights, old ones are kept:", error, flush=True)


def paused_and_not_resumed():
    """The trainer has no new weights for a name, logs it and wants the next rollout; the engine is paused."""
    rollouts(lambda number: {}[f"layers.{number}.mlp"])


def paused_for_update():
    """Healthy: each update of the weights takes two seconds."""
    rollouts(lambda number: 2.0)


class Devices:
    """A collector of metrics. Its names depend on the devices, which takes a second to find out."""

    def __init__(self, asked):
        self.asked = asked

    def describe(self):
        self.asked.set()
        time.sleep(1.0)
        return []

    def collect(self):
        return []


def serve_metrics(answers):
    from prometheus_client import Counter

    Counter("requests", "of this worker")
    answers.send("ready")


def fork_while_registering():
    """A thread registers the metrics of the devices while the worker is forked, which registers its own."""
    from prometheus_client import REGISTRY

    asked = threading.Event()
    thread(REGISTRY.register, Devices(asked))
    asked.wait()
    ours, theirs = FORK.Pipe()
    worker = child_of(serve_metrics, theirs)
    at("worker", worker.pid)
    at("main")
    ours.recv()


SLOTS, SLOT = 8, 64
"""A ring in shared memory: the first byte of a slot has the number of readers that have still to read it."""


def wait_for(memory, place, full):
    """As engines do it within a node: no system call but to let others run."""
    while (memory.buf[place] > 0) != full:
        os.sched_yield()


def write_ring(name, seconds, lives):
    memory = shared_memory.SharedMemory(name)
    at("writer")
    for number in range(1 << 30):
        place = number % SLOTS * SLOT
        wait_for(memory, place, False)
        if not lives and number == 11:
            os.kill(os.getpid(), signal.SIGKILL)
        work_for(seconds)
        memory.buf[place] = 2


def read_ring(name, number, lock):
    memory = shared_memory.SharedMemory(name)
    at(f"reader{number}")
    for step in range(1 << 30):
        place = step % SLOTS * SLOT
        wait_for(memory, place, True)
        with lock:
            memory.buf[place] -= 1
        while memory.buf[place] > 0:
            os.sched_yield()


def ring(seconds, lives):
    memory = shared_memory.SharedMemory(create=True, size=SLOTS * SLOT)
    name, lock = memory.name, FORK.Lock()
    child_of(write_ring, name, seconds, lives)
    readers = [child_of(read_ring, name, number, lock) for number in range(2)]
    for role in ("writer", "reader0", "reader1"):
        wait_for_role(role)
    memory.unlink()
    at("main")
    for one in readers:
        one.join()


def ring_writer_killed():
    """The engine's process, which writes the steps of the workers, has been killed: they look for the next one."""
    ring(0.01, False)


def ring_writer_slow():
    """Healthy: the workers look for the next step, which takes 1.2 seconds to be made."""
    ring(1.2, True)


PROGRAMS = {
    "launcher-reads-nothing": launcher_reads_nothing,
    "engine-was-killed": engine_was_killed,
    "engine-is-idle": engine_is_idle,
    "prefill-drops-request": prefill_drops_request,
    "nothing-schedulable": nothing_schedulable,
    "waits-for-blocks": waits_for_blocks,
    "paused-and-not-resumed": paused_and_not_resumed,
    "paused-for-update": paused_for_update,
    "fork-while-registering": fork_while_registering,
    "ring-writer-killed": ring_writer_killed,
    "ring-writer-slow": ring_writer_slow,
}

if __name__ == "__main__":
    run(PROGRAMS)
