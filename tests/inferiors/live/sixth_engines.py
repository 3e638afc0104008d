"""Engines of several processes that hang, and their healthy twins, sixth set: `sixth_engines.py NAME FOLDER`."""

import asyncio
import itertools
import json
import multiprocessing
import os
import signal
import socket
import threading
import time

from tests.inferiors.live.place import at, child_of, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def generate(requests, tokens):
    at("engine")
    while True:
        request = requests.get()
        for token in range(8):
            tokens.put((request, token))


def detokenize(tokens, texts):
    at("detokenizer")
    while True:
        request, token = tokens.get()
        texts.put((request, str(token)))


def stages():
    """Front end, engine, detokenizer, and back: three queues with room for four each."""
    requests, tokens, texts = (FORK.Queue(4) for _ in range(3))
    child_of(generate, requests, tokens)
    child_of(detokenize, tokens, texts)
    at("main")
    return requests, texts


def three_queues_full():
    """The front end takes the first text when all its requests are in; they have more tokens than there is room for."""
    requests, texts = stages()
    for number in range(64):
        requests.put(number)
    for _ in range(64 * 8):
        texts.get()


def queues_drain():
    """The twin: a thread takes the texts, slower than they come, so that the queues are full most of the time."""
    requests, texts = stages()

    def write_out():
        while True:
            texts.get()
            work_for(0.01)

    thread(write_out)
    for number in itertools.count():
        requests.put(number)


def cache_node(name, told):
    """Gives cache blocks away, one client after the other; those that it has not it asks of the next node."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        told.send(server.getsockname())
        following = told.recv()
        while True:
            with server.accept()[0] as client:
                block = client.recv(64)
                at(name)
                with socket.create_connection(following) as peer:
                    peer.sendall(block)
                    client.sendall(peer.recv(64))


def cache_nodes_in_circle():
    """Nobody has the block: a asks b, b asks c, and c asks a, which answers nobody before it has its own answer."""
    nodes = []
    for name in "abc":
        ours, theirs = FORK.Pipe()
        child_of(cache_node, name, theirs)
        theirs.close()
        nodes.append((ours, ours.recv()))
    for number, (ours, _) in enumerate(nodes):
        ours.send(nodes[(number + 1) % 3][1])
    with socket.create_connection(nodes[0][1]) as client:
        client.sendall(b"block 7")
        at("main")
        client.recv(64)


def prefill(connection):
    at("prefill")
    while connection.recv(4096):
        connection.sendall(b".")


class Endpoint:
    """The way to the prefill server. A thread closes it when the server has not answered for a while."""

    def __init__(self, connection):
        self.connection, self.lock, self.answered = connection, threading.Lock(), time.monotonic()
        thread(self.hear)
        thread(self.watch)

    def hear(self):
        while self.connection.recv(4096):
            self.answered = time.monotonic()

    def watch(self):
        while True:
            time.sleep(0.1)
            if time.monotonic() - self.answered > 1.0:
                with self.lock:
                    self.connection.close()
                return

    def send(self, metadata):
        with self.lock:
            self.connection.sendall(metadata)


def prefill_stopped():
    """The prefill server is stopped by a signal. Decode's scheduler fills the socket and stays in send() under the lock
    that the thread which would close the connection needs."""
    ours, theirs = socket.socketpair()
    server = child_of(prefill, theirs)
    theirs.close()
    endpoint = Endpoint(ours)
    wait_for_role("prefill")
    endpoint.send(bytes(1024))
    os.kill(server.pid, signal.SIGSTOP)
    at("main")
    while True:
        endpoint.send(bytes(1024))


class Client:
    """An asyncio library for code without a loop: a thread runs its loop."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        thread(self.loop.run_forever)

    async def fetch(self, name):
        await asyncio.sleep(0.01)
        return len(name)

    def size(self, name):
        return asyncio.run_coroutine_threadsafe(self.fetch(name), self.loop).result()


def load_shard(client, answers):
    at("worker")
    answers.send(client.size("model-00001"))


def loop_thread_not_forked():
    """The worker has a copy of the client, and of its loop, but not the thread that runs it."""
    client = Client()
    client.size("config")
    ours, theirs = FORK.Pipe()
    child_of(load_shard, client, theirs)
    at("main")
    ours.recv()


def stream_tokens(connection, beats):
    """The engine: sends the tokens of each request, and a sign of life when there is none."""
    at("engine")
    connection.settimeout(1.0 if beats else None)
    while True:
        try:
            request = json.loads(connection.recv(4096))
        except socket.timeout:
            connection.sendall(b'{"request": "beat"}\n')
            continue
        for token in range(request["tokens"]):
            line = json.dumps({"request": request["request"], "token": token})
            connection.sendall(line.encode() + b"\n")


class FrontEnd:
    """Requests of clients go to the engine; a task hands its answers to who waits for them."""

    def __init__(self):
        ours, theirs = socket.socketpair()
        self.ours, self.theirs, self.answers = ours, theirs, {"beat": asyncio.Queue()}

    async def start(self, beats):
        child_of(stream_tokens, self.theirs, beats)
        self.theirs.close()
        self.reader, self.writer = await asyncio.open_connection(sock=self.ours)
        self.handler = asyncio.get_running_loop().create_task(self.hand_out())

    async def hand_out(self):
        while line := await self.reader.readline():
            answer = json.loads(line)
            self.answers[answer["request"]].put_nowait(answer)

    async def generate(self, request, tokens):
        """None for as many tokens as the client gives up after."""
        self.answers[request] = asyncio.Queue()
        self.writer.write(json.dumps({"request": request, "tokens": tokens}).encode())
        for _ in range(3 if request == "left" else tokens):
            await self.answers[request].get()
        del self.answers[request]

    async def serve(self, *requests):
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
            at("main")
            for request in requests:
                await self.generate(request, 100000)
            await server.serve_forever()


def output_handler_died():
    """A client leaves after three tokens. The next token of its request is an error for the task that hands out, which
    ends; nobody reads what the engine goes on to send."""

    async def main():
        front_end = FrontEnd()
        await front_end.start(beats=False)
        await front_end.serve("left", "next")

    asyncio.run(main())


def front_end_at_rest():
    """The twin: a request has been answered, the engine says every second that it lives, and no client comes."""

    async def main():
        front_end = FrontEnd()
        await front_end.start(beats=True)
        await front_end.generate("first", 1000)
        await front_end.serve()

    asyncio.run(main())


def shard(number, started, connection, is_last):
    started.wait()
    connection.send("ready")
    while True:
        if is_last:
            at(f"worker{number}")
        connection.send(100 // connection.recv())


def restarted_worker():
    """Worker 2 died of an error and was started again. It waits at the barrier of the start, which the others have long
    passed; the engine waits for it."""
    started = FORK.Barrier(3)
    pipes = [FORK.Pipe() for _ in range(3)]
    workers = [child_of(shard, number, started, pipes[number][1], number < 2) for number in range(3)]
    for ours, _ in pipes:
        ours.recv()
    wait_for_role("worker0")
    wait_for_role("worker1")
    pipes[2][0].send(0)
    workers[2].join()

    def again(*arguments):
        at("worker2")
        shard(*arguments)

    child_of(again, 2, started, pipes[2][1], False)
    at("main")
    pipes[2][0].recv()


PROGRAMS = {
    "three-queues-full": three_queues_full,
    "queues-drain": queues_drain,
    "cache-nodes-in-circle": cache_nodes_in_circle,
    "prefill-stopped": prefill_stopped,
    "loop-thread-not-forked": loop_thread_not_forked,
    "output-handler-died": output_handler_died,
    "front-end-at-rest": front_end_at_rest,
    "restarted-worker": restarted_worker,
}

if __name__ == "__main__":
    run(PROGRAMS)
