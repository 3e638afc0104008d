"""Engines of several processes that hang, and healthy ones, thirty-first set: `thirty_first_engines.py NAME FOLDER`."""

import collections
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")
MODULE = "tests.inferiors.live.thirty_first_engines"


class Jobserver:
    """Of a build: a pipe with a byte for each process that may run."""

    def __init__(self, tokens):
        self.reading, self.writing = os.pipe()
        os.write(self.writing, b"+" * tokens)

    def acquire(self):
        return os.read(self.reading, 1)

    def release(self, token):
        os.write(self.writing, token)


class CompileServer:
    """Compiles what its clients ask for, as long as it is not in its cache."""

    def __init__(self, jobserver):
        self.jobserver, self.cache = jobserver, {}
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(in_folder("cache.sock"))
        self.socket.listen(8)

    def compile(self, source):
        token = self.jobserver.acquire()
        try:
            work_for(0.1)
            return b"object of " + source
        finally:
            self.jobserver.release(token)

    def serve(self):
        while True:
            client, _ = self.socket.accept()
            with client:
                source = client.recv(256)
                if source not in self.cache:
                    if source.startswith(b"large"):
                        at("main")
                    self.cache[source] = self.compile(source)
                client.sendall(self.cache[source])


def compile_by(jobserver, source):
    token = jobserver.acquire()
    if source.startswith("large"):
        at(source[-1])
        wait_for_role("b")
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(in_folder("cache.sock"))
        server.sendall(source.encode())
        print(server.recv(256), flush=True)
    jobserver.release(token)


def compiler(jobserver, sources, after=None):
    """Some sources need what is made from others before."""
    if after:
        wait_for_role(after)
    for source in sources:
        compile_by(jobserver, source)


def wants_a_token_too():
    """As mozilla/sccache#232: a build may run two processes at a time. Both have a token, and ask the server to compile
    something; it has the same jobserver, and takes a token before it runs the compiler."""
    jobserver = Jobserver(2)
    server = CompileServer(jobserver)
    child_of(compiler, jobserver, ["small.c", "large_a"])
    child_of(compiler, jobserver, ["large_b"], "a")
    server.serve()


def verification_tool():
    """Compares replicas until it is told to stop."""
    at("tool")
    for line in sys.stdin:
        if line == "stop\n":
            return
        work_for(0.1)


class Node:
    """Where a test runs its commands, from several threads."""

    def __init__(self):
        self.tool, self.started = None, threading.Event()

    def start_tool(self):
        command = [sys.executable, "-m", MODULE, "verification-tool", sys.argv[2]]
        self.tool = subprocess.Popen(command, stdin=subprocess.PIPE, close_fds=False, text=True)
        self.started.set()

    def run_short(self, command, meanwhile=None):
        reading, writing = os.pipe2(0)
        short = subprocess.Popen(command, stdout=writing, close_fds=False)
        if meanwhile:
            meanwhile()
        os.close(writing)
        with os.fdopen(reading) as output:
            if meanwhile:
                at("main")
            text = output.read()
        short.wait()
        return text

    def stop(self):
        self.tool.communicate("stop\n")


def inherits_a_pipe():
    """As confluentinc/ducktape#140: a short command has a pipe for what it says. While it is started another thread
    starts a long one, which gets all open files, the pipe among them. The short command is done, and its output has no
    end; the long one would be stopped after that."""
    node = Node()
    command = [sys.executable, "-c", "print(4711)"]
    print(node.run_short(command), flush=True)

    def start_beside():
        thread(node.start_tool)
        node.started.wait()
        wait_for_role("tool")

    print(node.run_short(command, start_beside), flush=True)
    node.stop()


def web_server(listening, secure):
    """Ends the connection after an answer; a secure one is kept for the next request."""
    connection, _ = listening.accept()
    while True:
        request = connection.recv(4096)
        if not request:
            return
        body = b"<users/>"
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        connection.sendall(head + body)
        if not secure:
            connection.close()
            return
        at("server")


class HttpSocket:
    """Asks a server for a page."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))

    def get(self, page):
        self.socket.sendall(f"GET {page} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        response = b""
        while part := self.socket.recv(1024):
            response += part
        return response.partition(b"\r\n\r\n")[2]


def reads_until_the_end():
    """As cakephp/cakephp#6776: the client reads an answer until the server ends the connection. That one does so for
    plain connections, and keeps the secure ones."""
    for secure in (False, True):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            child_of(web_server, listening, secure)
            client = HttpSocket(listening.getsockname()[1])
            if secure:
                at("main")
            print(client.get("/users.xml"), flush=True)


class Broker:
    """Has the jobs that were added, by queue; who wants one gets it, or nothing after two seconds."""

    def __init__(self, path):
        self.jobs, self.added = collections.deque(), threading.Condition()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(16)

    def pop(self):
        with self.added:
            self.added.wait_for(lambda: self.jobs, 2.0)
            return self.jobs.popleft() if self.jobs else None

    def push(self, job):
        with self.added:
            self.jobs.append(job)
            self.added.notify()

    def answer(self, client):
        for line in client.makefile("rb"):
            if line.startswith(b"push "):
                self.push(line[5:])
                client.sendall(b"ok\n")
            else:
                client.sendall(self.pop() or b"nil\n")

    def serve(self):
        at("broker")
        while True:
            client, _ = self.socket.accept()
            thread(self.answer, client)


def broker(path):
    Broker(path).serve()


class Processor:
    """One of the threads that work on jobs."""

    def __init__(self, path):
        self.socket, self.done, self.asked = socket.socket(socket.AF_UNIX), 0, 0
        self.socket.connect(path)
        self.replies = self.socket.makefile("rb")
        thread(self.run)

    def run(self):
        while True:
            self.socket.sendall(b"brpop queue:default\n")
            job = self.replies.readline()
            self.asked += 1
            if job != b"nil\n":
                work_for(0.1)
                self.done += 1


def jobs_are_not_added():
    """Healthy, as sidekiq/sidekiq#2984: the service that adds jobs has stopped. The workers ask for some, and are idle;
    the process says so from time to time."""
    path = in_folder("redis.sock")
    child_of(broker, path)
    wait_for_role("broker")
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    processors = [Processor(path) for _ in range(3)]
    for number in range(9):
        client.sendall(f"push job {number}\n".encode())
        client.recv(16)
    client.close()
    beat = 0
    while True:
        time.sleep(1.0)
        beat += 1
        print(f"beat {beat}: {sum(one.done for one in processors)} jobs done", flush=True)
        if beat == 4:
            at("main")


def hub(listening):
    """Has the weights of a model, and a slow line."""
    client, _ = listening.accept()
    at("hub")
    block = os.urandom(1 << 16)
    client.recv(256)
    for _ in range(1 << 20):
        client.sendall(block)
        time.sleep(0.1)


def engine(port, connection):
    """Downloads its model before it says that it is ready."""
    with socket.create_connection(("127.0.0.1", port)) as server, open(in_folder("model.safetensors"), "wb") as file:
        server.sendall(b"GET /model.safetensors\n")
        have = 0
        while part := server.recv(1 << 16):
            file.write(part)
            have += len(part)
            if have > 1 << 18 and not os.path.exists(in_folder("engine")):
                at("engine")
    connection.send("ready")


def engine_downloads_its_model():
    """Healthy, as vllm-project/vllm#17676: the front end waits for the engine to start, and says nothing but that. The
    engine downloads a large model."""
    listening = socket.create_server(("127.0.0.1", 0))
    front, back = FORK.Pipe()
    child_of(hub, listening)
    process = child_of(engine, listening.getsockname()[1], back)
    wait_for_role("engine")
    at("main")
    while not front.poll(10.0):
        print(f"waiting for the engine {process.pid} to start", flush=True)


SOURCE = """
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct Table : Table<N - 1> { std::map<std::string, std::vector<std::array<long, N>>> rows; };
template <> struct Table<0> {};
int size_NUMBER() { static Table<60> table; std::regex word("[a-z]+NUMBER"); return table.rows.size(); }
"""


def kernel_build():
    """One source after the other."""
    at("build")
    for number in range(100_000):
        source, made = in_folder(f"part{number}.cpp"), in_folder(f"part{number}.o")
        with open(source, "w") as file:
            file.write("#include <array>\n" + SOURCE.replace("NUMBER", str(number)))
        subprocess.run(["g++", "-O2", "-c", source, "-o", made], check=True)
        os.remove(source)
        os.remove(made)


def compiles_without_a_word():
    """Healthy, as cawilliamson/ansible-gpdpocket#60: a task of an update compiles a kernel, for hours. What is
    said about that is kept until it is done."""
    command = [sys.executable, "-m", MODULE, "kernel-build", sys.argv[2]]
    print("TASK [boot : build new kernel (this may take a while)]", flush=True)
    task = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for_role("build")
    at("main")
    print(task.communicate()[0], flush=True)


PROGRAMS = {
    "wants-a-token-too": wants_a_token_too,
    "inherits-a-pipe": inherits_a_pipe,
    "reads-until-the-end": reads_until_the_end,
    "jobs-are-not-added": jobs_are_not_added,
    "engine-downloads-its-model": engine_downloads_its_model,
    "compiles-without-a-word": compiles_without_a_word,
    "verification-tool": verification_tool,
    "kernel-build": kernel_build,
}

if __name__ == "__main__":
    run(PROGRAMS)
