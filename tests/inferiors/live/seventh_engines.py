"""Engines of several processes that hang, and their healthy twins, seventh set: `seventh_engines.py NAME FOLDER`."""

import asyncio
import ctypes
import http.client
import http.server
import itertools
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time

from tests.inferiors.live.place import at, child_of, in_folder, read_for_ever, run, wait_for_role, work_for
from tests.inferiors.live.seventh_extension import extension

FORK = multiprocessing.get_context("fork")


def evaluate(results):
    """A worker for one request: its first line of the log has the local time."""
    print(time.strftime("%F %T", time.localtime()), "worker", os.getpid(), flush=True)
    results.send(os.getpid())


def times_of_log_and_fork():
    """An extension's thread writes times into its log all the while, and each request has a worker forked for it. When
    the fork comes while the thread has the C library's lock of the time zone, the worker waits for that lock."""
    extension().log_start()
    while True:
        ours, theirs = FORK.Pipe()
        worker = child_of(evaluate, theirs)
        if not ours.poll(3.0):
            at("worker", worker.pid)
            at("main")
        ours.recv()
        worker.join()


def engine_that_asks(address, ready):
    """Takes its configuration from the front end before it is ready."""
    client = http.client.HTTPConnection(*address)
    client.request("GET", "/config")
    at("engine")
    ready.send(client.getresponse().status)


class Front(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def ready_asks_back():
    """The front end listens already, but serves only when its engine is ready; the engine asks it for something."""
    ours, theirs = FORK.Pipe()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front) as server:
        child_of(engine_that_asks, server.server_address, theirs)
        at("main")
        ours.recv()
        server.serve_forever()


def generate(path, seconds):
    """The engine: one request after the other, an answer for each."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        at("engine")
        with server.accept()[0] as connection, connection.makefile("rwb") as lines:
            for line in lines:
                work_for(seconds)
                lines.write(line)
                lines.flush()


class Router:
    """Requests of many clients over one connection; the answers are handed to who waits for them."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.waiting, self.lock = reader, writer, {}, asyncio.Lock()
        self.routes = asyncio.get_running_loop().create_task(self.route())

    async def route(self):
        while line := await self.reader.readline():
            async with self.lock:
                self.waiting.pop(json.loads(line)["request"]).set_result(line)

    async def send(self, number):
        answer = self.waiting[number] = asyncio.get_running_loop().create_future()
        self.writer.write(json.dumps({"request": number}).encode() + b"\n")
        await self.writer.drain()
        return answer

    async def ask_under_lock(self, number):
        async with self.lock:
            return await (await self.send(number))

    async def ask(self, number):
        async with self.lock:
            answer = await self.send(number)
        return await answer


async def router(seconds):
    """A front end with its own server, and the way to a new engine."""
    child_of(generate, in_folder("socket"), seconds)
    wait_for_role("engine")
    await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    return Router(*await asyncio.open_unix_connection(in_folder("socket")))


def route_needs_lock():
    """The lock is for the order of requests, and kept until the answer is there, which is handed out under it."""

    async def main():
        asks = await router(0.1)
        at("main")
        await asks.ask_under_lock(0)

    asyncio.run(main())


def answers_routed():
    """The twin: the lock is given back when the request was sent. The engine takes two seconds for each of four."""

    async def main():
        asks = await router(2.0)

        async def client(first):
            for number in itertools.count(first, 4):
                await asks.ask(number)

        at("main")
        await asyncio.gather(*(client(first) for first in range(4)))

    asyncio.run(main())


def ended(child):
    """Waits until the child has ended, and leaves it to be asked for."""
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def convert(seconds):
    code = f"from tests.inferiors.live.place import work_for; work_for({seconds})"
    return subprocess.Popen([sys.executable, "-c", code])


def children_by_signals():
    """Two converters end while the main thread is busy: one signal stands for both, and only one is asked for."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    converters = [convert(0.1) for _ in range(2)]
    for one in converters:
        ended(one)
    at("main")
    while converters:
        signal.sigwait({signal.SIGCHLD})
        pid = os.waitpid(-1, os.WNOHANG)[0]
        converters = [one for one in converters if one.pid != pid]


def children_by_turns():
    """The twin: all that have ended are asked for at each signal, and new ones started in their place."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    converters = {one.pid: one for one in (convert(1.0), convert(1.5))}
    at("main")
    while True:
        signal.sigwait({signal.SIGCHLD})
        for one in list(converters.values()):
            if os.waitpid(one.pid, os.WNOHANG)[0]:
                converters.pop(one.pid).returncode = 0
                new = convert(1.0)
                converters[new.pid] = new


def shard(number, connection):
    while True:
        at(f"worker{number}")
        connection.send(connection.recv() + 1)


ATTACH = 16


def look_into(pid):
    """Somebody's debugger, attached to a process; its user has gone for lunch."""
    if ctypes.CDLL(None, use_errno=True).ptrace(ATTACH, pid, None, None):
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(pid, 0)
    at("debugger")
    read_for_ever()


def left_in_debugger():
    """Worker 1 stands still under a debugger; the driver sent both workers a step and waits for its answer."""
    pipes = [FORK.Pipe() for _ in range(2)]
    workers = [child_of(shard, number, theirs) for number, (_, theirs) in enumerate(pipes)]
    wait_for_role("worker1")
    child_of(look_into, workers[1].pid)
    wait_for_role("debugger")
    at("main")
    while True:
        for ours, _ in pipes:
            ours.send(1)
        for ours, _ in pipes:
            ours.recv()


PROGRAMS = {
    "times-of-log-and-fork": times_of_log_and_fork,
    "ready-asks-back": ready_asks_back,
    "route-needs-lock": route_needs_lock,
    "answers-routed": answers_routed,
    "children-by-signals": children_by_signals,
    "children-by-turns": children_by_turns,
    "left-in-debugger": left_in_debugger,
}

if __name__ == "__main__":
    run(PROGRAMS)
