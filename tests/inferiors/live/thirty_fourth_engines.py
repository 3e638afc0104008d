"""Engines of several processes, thirty-fourth set: `thirty_fourth_engines.py NAME FOLDER`."""

import contextlib
import fcntl
import getpass
import hashlib
import http.server
import os
import pty
import shlex
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for


class Resolver:
    """Hosts by name; one is looked up at a time."""

    def __init__(self, server):
        self.server, self.known = server, {}
        self.lock, self.asking = threading.Lock(), threading.Event()

    def lookup(self, host):
        with self.lock:
            if host not in self.known:
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                    client.sendto(host.encode(), self.server)
                    self.asking.set()
                    self.known[host] = client.recvfrom(512)[0].decode()
            return self.known[host]


def name_server(server):
    """A slow one."""
    while True:
        host, client = server.recvfrom(512)
        time.sleep(1.5)
        server.sendto(f"10.0.0.{len(host)}".encode(), client)


def keep_alive(resolver):
    for number in range(1000):
        resolver.lookup(f"scheduler{number}.example")
        time.sleep(0.2)


def run_task(resolver, name):
    at("child")
    print(f"{name} goes to {resolver.lookup('storage.example')}", flush=True)


def looks_up_hosts():
    """As spotify/luigi#534: a worker tells the scheduler from a thread that it is there, and forks for each task."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    thread(name_server, server)
    resolver = Resolver(server.getsockname())
    thread(keep_alive, resolver)
    resolver.asking.wait()
    child = child_of(run_task, resolver, "copy-tables")
    at("main")
    child.join()
    print(f"the task has ended: {child.exitcode}", flush=True)


REFUSED = b"HTTP/1.1 400 Bad Request\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"


def refuse(listener):
    """A server that knows no web sockets, and keeps connections for the next request."""
    connection = listener.accept()[0]
    for number in range(1000):
        request = b""
        while b"\r\n\r\n" not in request:
            if number == 1 and not request:
                at("server")
            data = connection.recv(4096)
            if not data:
                return
            request += data
        connection.sendall(REFUSED)


class WebSocketClient:
    OPENING, OPEN, CLOSING, CLOSED = "opening", "open", "closing", "closed"

    def __init__(self, address):
        self.state, self.closed = self.OPENING, threading.Event()
        self.sock = socket.create_connection(address)

    def connect(self):
        self.sock.sendall(b"GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n")
        thread(self.read)

    def read(self):
        while self.state != self.CLOSED:
            data = self.sock.recv(4096)
            if not data:
                self.end()
            elif self.state == self.OPENING:
                self.state = self.OPEN if b" 101 " in data else self.CLOSING
                print(f"handshake: {data[:24]!r}, {self.state}", flush=True)
            elif self.state == self.OPEN:
                print(f"frame: {data!r}", flush=True)

    def end(self):
        self.state = self.CLOSED
        self.sock.close()
        self.closed.set()


def is_refused_its_handshake():
    """As TooTallNate/Java-WebSocket#354: a client asks for a web socket, and gets a status of 400."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(refuse, listener)
    address = listener.getsockname()
    listener.close()
    client = WebSocketClient(address)
    client.connect()
    wait_for_role("server")
    at("main")
    client.closed.wait()


class Command:
    """Runs a program at a terminal of its own, and collects what it says."""

    def __init__(self, *words, environment=None):
        self.said = []
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(words[0], words, {**os.environ, **(environment or {})})
        self.reader = thread(self.collect)

    def collect(self):
        with contextlib.suppress(OSError):
            while data := os.read(self.terminal, 4096):
                self.said.append(data)

    def wait(self):
        status = os.waitpid(self.pid, 0)[1]
        self.reader.join()
        return status


def ssh():
    """What git calls: the key of the user has a passphrase."""
    at("ssh")
    getpass.getpass("Enter passphrase for key: ")


def fetches_with_a_passphrase():
    """As amoffat/sh#298: a repository is fetched by ssh."""
    repository = in_folder("mirror")
    subprocess.run(["git", "init", "-q", repository], check=True)
    words = [sys.executable, "-m", "tests.inferiors.live.thirty_fourth_engines", "ssh", sys.argv[2]]
    command = " ".join(map(shlex.quote, words))
    environment = {"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "simple"}
    fetch = Command("git", "-C", repository, "fetch", "ssh://git.example/tools.git", environment=environment)
    wait_for_role("ssh")
    at("main")
    print(f"fetched: {fetch.wait()}", flush=True)


class Store:
    """A store of packages; who uses it has the lock of it shared."""

    SCHEMA = 11

    def __init__(self, folder):
        self.folder = folder
        self.lock = os.open(os.path.join(folder, "big-lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not os.path.exists(self._schema()):
            self._write_schema(10)

    def _schema(self):
        return os.path.join(self.folder, "schema")

    def _write_schema(self, number):
        with open(self._schema(), "w") as file:
            file.write(str(number))

    def use(self):
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def upgrade(self):
        with open(self._schema()) as file:
            current = int(file.read())
        if current < self.SCHEMA:
            print("waiting for exclusive access to the store...", flush=True)
            at("main")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            self._write_schema(self.SCHEMA)
            fcntl.flock(self.lock, fcntl.LOCK_SH)


def serve_cache(folder):
    """Gives packages out of the store to who asks for them."""
    store = Store(folder)
    store.use()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        at("cache")
        while True:
            connection = listener.accept()[0]
            connection.close()


def migrates_its_store():
    """As DeterminateSystems/nix-src#594: a newer version comes to a store that a cache serves."""
    folder = in_folder("store")
    os.mkdir(folder)
    child_of(serve_cache, folder)
    wait_for_role("cache")
    Store(folder).upgrade()


SOURCE = """
#include <map>
#include <string>
#include <tuple>
#include <vector>
template <int N> struct Level {{
    std::map<std::string, std::vector<std::tuple<int, std::string>>> entries;
    int visit(int depth) {{
        entries[std::to_string(N)].emplace_back(depth, std::string(N % 7, 'x'));
        return static_cast<int>(entries.size()) + Level<N - 1>().visit(depth + 1);
    }}
}};
template <> struct Level<0> {{
    int visit(int depth) {{ return depth; }}
}};
int subsystem_{number}() {{ return Level<300>().visit({number}); }}
"""


def make(folder, writer):
    at("make")
    for number in range(500):
        source = os.path.join(folder, f"subsystem_{number}.cpp")
        with open(source, "w") as file:
            file.write(SOURCE.format(number=number))
        subprocess.run(["g++", "-O2", "-c", source, "-o", os.path.join(folder, "subsystem.o")], check=True)
        if number % 100 == 99:
            os.write(writer, f"  LD  part{number // 100}\n".encode())


def builds_a_kernel():
    """As linux-noah/noah#18, healthy: many files are compiled one after the other."""
    folder = in_folder("linux")
    os.mkdir(folder)
    reader, writer = os.pipe()
    child_of(make, folder, writer)
    os.close(writer)
    at("main")
    with open(reader) as lines:
        for line in lines:
            print(line, end="", flush=True)


class Hub(http.server.BaseHTTPRequestHandler):
    SIZE, PART = 1 << 30, 1 << 16

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(self.SIZE))
        self.end_headers()
        for _ in range(self.SIZE // self.PART):
            self.wfile.write(os.urandom(self.PART))
            time.sleep(0.25)

    def log_message(self, *_):
        pass


def serve_models(server):
    at("hub")
    server.serve_forever()


def downloads_its_captioner():
    """As kijai/ComfyUI-Florence2#166, healthy: the model comes slowly, from a hub."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    child_of(serve_models, server)
    wait_for_role("hub")
    address = f"http://127.0.0.1:{server.server_port}/florence-2/model.safetensors"
    server.socket.close()
    digest, opener = hashlib.sha256(), urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address) as response, open(in_folder("model.safetensors"), "wb") as file:
        at("main")
        while part := response.read(1 << 16):
            digest.update(part)
            file.write(part)
    work_for(0.1)


PROGRAMS = {
    "looks-up-hosts": looks_up_hosts,
    "is-refused-its-handshake": is_refused_its_handshake,
    "fetches-with-a-passphrase": fetches_with_a_passphrase,
    "ssh": ssh,
    "migrates-its-store": migrates_its_store,
    "builds-a-kernel": builds_a_kernel,
    "downloads-its-captioner": downloads_its_captioner,
}

if __name__ == "__main__":
    run(PROGRAMS)
