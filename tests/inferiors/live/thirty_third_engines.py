"""Engines of several processes that hang, and healthy ones, thirty-third set: `thirty_third_engines.py NAME FOLDER`."""

import asyncio
import hashlib
import itertools
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


async def answer_requests(reader, writer):
    """One request a line, each with a number that its answer has too."""
    while True:
        line = await reader.readline()
        if not line:
            return
        number = None
        try:
            request = json.loads(line)
            number = request["id"]
            answer = {"id": number, "result": sum(request["params"])}
        except ValueError as error:
            answer = {"id": number, "error": {"code": -32700, "message": str(error)}}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
        if number is None:
            at("server")


async def serve_requests(listener):
    async with await asyncio.start_server(answer_requests, sock=listener) as server:
        await server.serve_forever()


class Client:
    """Its calls wait for the answers with their numbers."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.numbers, self.calls = itertools.count(1), {}
        self.receiver = asyncio.create_task(self.receive())

    async def receive(self):
        while True:
            answer = json.loads(await self.reader.readline())
            call = self.calls.pop(answer["id"], None)
            if call is None:
                print("an answer that nobody waits for", answer, flush=True)
            elif "error" in answer:
                call.set_exception(RuntimeError(answer["error"]["message"]))
            else:
                call.set_result(answer["result"])

    async def call(self, method, parameters):
        number = next(self.numbers)
        call = self.calls[number] = asyncio.get_running_loop().create_future()
        request = f'{{"id": {number}, "method": "{method}", "params": {parameters}}}\n'
        self.writer.write(request.encode())
        if method == "sum" and None in parameters:
            at("main")
        return await call


async def ask(address):
    client = Client(*await asyncio.open_connection(*address))
    for size in range(5):
        print(await client.call("sum", list(range(size))), flush=True)
    print(await client.call("sum", [1, None, 2]), flush=True)


def answers_without_a_number():
    """As status-im/nim-json-rpc#196: the server could not read a request, so that it does not know its number, and
    answers with an error that has none. The client finds no call of its own for that."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(lambda: asyncio.run(serve_requests(listener)))
    asyncio.run(ask(listener.getsockname()))


SEARCH = """
import sys
for number in range(int(sys.argv[1])):
    print(f"rg: /srv/home{number}/.cache/private: Permission denied (os error 13)", file=sys.stderr, flush=True)
    if number % 50 == 0:
        print(f"/srv/home{number}/notes.txt:3:what was looked for", flush=True)
"""


def search(folders):
    """The lines that were found, of those folders that may be read."""
    words = [sys.executable, "-c", SEARCH, str(folders)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        if folders > 1000:
            at("search", process.pid)
            at("main")
        found = list(process.stdout)
        process.wait()
    return found


def searches_without_rights():
    """As HKUDS/OpenHarness#204: a search is started with a pipe for its errors, and only what it finds is read. There
    are many folders that it has no right to read, and it says so for each."""
    for folders in (100, 50_000):
        print(len(search(folders)), flush=True)


def show_pictures(listener):
    """One client after the other; each sends the name of a picture on a line."""
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            if os.path.exists(in_folder("silent")):
                at("server")
            name = stream.readline().strip()
            work_for(0.05)
            stream.write(b"shown " + name + b"\n")


def watch_screen(address):
    """A viewer that wants to hear what is shown, and has nothing to send."""
    at("silent")
    connection = socket.create_connection(address)
    connection.recv(64)


def show(address, name):
    connection = socket.create_connection(address)
    connection.sendall(name + b"\n")
    return connection.recv(64)


def one_client_is_silent():
    """As SFTtech/videoscreen#4: the server waits for the line of a client that sends none, and meanwhile it takes no
    other client."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(show_pictures, listener)
    address = listener.getsockname()
    for number in range(3):
        print(show(address, b"picture%d" % number), flush=True)
    child_of(watch_screen, address)
    wait_for_role("silent")
    wait_for_role("server")
    at("main")
    print(show(address, b"picture3"), flush=True)


class Pollers:
    """Threads that wait for what comes from the network, one at a time. A child begins without any of it."""

    def __init__(self):
        self.lock, self.polling = threading.Lock(), threading.Event()
        self.inside, self.outside = socket.socketpair()
        os.register_at_fork(after_in_child=self.begin_anew)

    def poll(self):
        while True:
            with self.lock:
                self.polling.set()
                self.inside.settimeout(3)
                try:
                    self.inside.recv(64)
                except OSError:
                    pass
                self.polling.clear()
            time.sleep(0.01)

    def begin_anew(self):
        at("child")
        with self.lock:
            self.polling = threading.Event()


def work_alone():
    work_for(1)


def forks_while_it_polls():
    """As grpc/grpc#22624: after a fork the library cleans up in the child before anything else, for which it takes the
    lock of its pollers. A thread had that lock at the time of the fork, and is not in the child."""
    pollers = Pollers()
    thread(pollers.poll)
    pollers.polling.wait()
    child = FORK.Process(target=work_alone)
    child.start()
    wait_for_role("child")
    at("main")
    child.join()


COMMAND = """
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct Table {{ static std::string name() {{ return Table<N - 1>::name() + std::to_string(N); }} }};
template <> struct Table<0> {{ static std::string name() {{ return "{name}"; }} }};
int main(int argc, char **argv)
{{
    std::map<std::string, std::vector<std::string>> words;
    std::regex pattern("[a-z]+{number}");
    for (int number = 1; number < argc; ++number)
        if (std::regex_match(argv[number], pattern))
            words[argv[number]].push_back(Table<400>::name());
    return int(words.size());
}}
"""


def build_commands():
    """Each command is compiled from its source when the system starts."""
    at("builder")
    for number, name in itertools.product(range(50), ("ls", "cat", "cp", "mv", "grep", "dhclient", "wget", "mount")):
        source = in_folder(f"{name}.cpp")
        with open(source, "w") as file:
            file.write(COMMAND.format(name=name, number=number))
        subprocess.run(["g++", "-O2", "-o", in_folder(f"bin-{name}"), source], check=True)


def compiles_its_commands():
    """Healthy, as u-root/u-root#576: the commands come as sources and are compiled at the start, on a slow machine. The
    shell comes after that, and until then nothing is said."""
    builder = child_of(build_commands)
    wait_for_role("builder")
    at("main")
    builder.join()


BLOCK = 1 << 15


def send_blocks(listener):
    """A peer with a slow disk."""
    connection, _ = listener.accept()
    for number in itertools.count():
        if number == 2:
            at("peer")
        time.sleep(1.5)
        body = os.urandom(BLOCK)
        connection.sendall(hashlib.sha256(body).digest() + body)


def receive(connection, size):
    received = b""
    while len(received) < size:
        received += connection.recv(size - len(received))
    return received


def import_blocks(connection):
    for number in range(100_000):
        digest, body = receive(connection, 32), receive(connection, BLOCK)
        if hashlib.sha256(body).digest() != digest:
            raise ValueError(f"block {number} is not what it says")
        work_for(0.3)
        if number % 8 == 0:
            print(f"imported {number} blocks", flush=True)
        if number == 2:
            at("main")


def imports_from_a_peer():
    """Healthy, as ethereum/go-ethereum#14420: a node gets its blocks from a peer, each after a while, and imports them.
    That takes days."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(send_blocks, listener)
    import_blocks(socket.create_connection(listener.getsockname()))


PROGRAMS = {
    "answers-without-a-number": answers_without_a_number,
    "searches-without-rights": searches_without_rights,
    "one-client-is-silent": one_client_is_silent,
    "forks-while-it-polls": forks_while_it_polls,
    "compiles-its-commands": compiles_its_commands,
    "imports-from-a-peer": imports_from_a_peer,
}

if __name__ == "__main__":
    run(PROGRAMS)
