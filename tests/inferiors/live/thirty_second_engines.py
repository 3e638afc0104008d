"""Engines of several processes that hang, and healthy ones, thirty-second set: `..._engines.py NAME FOLDER`."""

import fcntl
import http.server
import io
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


class Deployment:
    """One at a time changes what the proxy is told."""

    def __init__(self, name):
        self.name = name

    def configure(self, services):
        with open(in_folder("proxy.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with open(in_folder("proxy.cfg"), "w") as file:
                file.writelines(f"server {service}\n" for service in services)
            if not os.path.exists(in_folder("proxy.pid")):
                self.start_proxy(services)

    def start_proxy(self, services):
        """In the background, as the program does by itself when it is told to."""
        pid = os.fork()
        if pid == 0:
            os.setsid()
            proxy(services)
        with open(in_folder("proxy.pid"), "w") as file:
            file.write(str(pid))


def proxy(services):
    listener = socket.create_server(("127.0.0.1", 0))
    at("daemon")
    while True:
        client, _ = listener.accept()
        client.sendall(services[0].encode())
        client.close()


def configures_its_proxy():
    """As brooklyncentral/clocker#382: the first deployment starts the proxy, the second one wants to tell it more."""
    first = FORK.Process(target=Deployment("first").configure, args=(["web1"],))
    first.start()
    first.join()
    wait_for_role("daemon")
    at("main")
    Deployment("second").configure(["web1", "web2"])


class TokenPipe:
    """As many jobs may run at once, in all programs of a build, as there are tokens here."""

    def __init__(self, tokens):
        self.reader, self.writer = os.pipe()
        self.give_back(tokens)

    def give_back(self, count=1):
        os.write(self.writer, b"+" * count)

    def seen(self):
        return bool(select.select([self.reader], [], [], 0)[0])

    def take(self):
        return os.read(self.reader, 1)


class Builder:
    """Of one program of the build."""

    def __init__(self, tokens):
        self.tokens, self.jobs = tokens, []

    def start(self, seconds):
        self.jobs.append(FORK.Process(target=work_for, args=(seconds,)))
        self.jobs[-1].start()

    def reap(self):
        for job in list(self.jobs):
            if not job.is_alive():
                job.join()
                self.jobs.remove(job)
                self.tokens.give_back()


def make(tokens, turn, taken):
    """The other program: a rule of it has two jobs at once."""
    builder = Builder(tokens)
    turn.wait()
    tokens.take()
    taken.set()
    builder.start(0.2)
    at("make")
    tokens.take()
    builder.start(0.2)


def builds_with_tokens():
    """As michaelforney/samurai#94: between the look at the pipe and the read somebody else takes what was there."""
    tokens, turn, taken = TokenPipe(2), FORK.Event(), FORK.Event()
    FORK.Process(target=make, args=(tokens, turn, taken)).start()
    builder = Builder(tokens)
    tokens.take()
    builder.start(0.3)
    while True:
        builder.reap()
        if tokens.seen():
            turn.set()
            taken.wait()
            at("main")
            tokens.take()
            builder.start(0.3)


class Function:
    """Runs the code of a user in a process of its own, for each request."""

    def __init__(self):
        self.reader, writer = os.pipe()
        os.dup2(writer, 1)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w"), 1 << 16))

    def log(self):
        """A long line for a request, which goes to what collects the output; that reads now and then."""
        sys.stdout.write("GET /" + "a" * 200_000 + "\n")
        sys.stdout.flush()

    def call(self):
        child = os.fork()
        if child == 0:
            self.handle()
            os._exit(0)
        return child

    def handle(self):
        """The result is logged as well."""
        at("child")
        sys.stdout.write("200\n")
        sys.stdout.flush()


def drain(reader):
    while os.read(reader, 1 << 16):
        time.sleep(0.001)


def logs_its_requests():
    """As vmware-archive/runtimes#94: a process is started for a request while another request is logged."""
    function = Function()
    thread(function.log)
    time.sleep(0.5)
    child = function.call()
    thread(drain, function.reader)
    at("main")
    os.waitpid(child, 0)


class Coordinator:
    """Tells all engines when all of them are there."""

    def __init__(self):
        import zmq

        self.context = zmq.Context()
        self.publish, self.answers = self.context.socket(zmq.PUB), self.context.socket(zmq.PULL)
        self.ports = [one.bind_to_random_port("tcp://127.0.0.1") for one in (self.publish, self.answers)]

    def start(self):
        """The engine says hello, hears that all are there, and says that it is ready."""
        self.answers.recv()
        self.publish.send(b"all are there")
        at("main")
        return self.answers.recv()


def engine(ports):
    import zmq

    context = zmq.Context()
    answers = context.socket(zmq.PUSH)
    answers.connect(f"tcp://127.0.0.1:{ports[1]}")
    answers.send(b"hello")
    work_for(0.8)  # it loads its weights
    start = context.socket(zmq.SUB)
    start.connect(f"tcp://127.0.0.1:{ports[0]}")
    start.setsockopt(zmq.SUBSCRIBE, b"")
    at("engine")
    start.recv()
    answers.send(b"ready")


def run_engine(ports):
    engine(ports.get())


def publishes_that_all_are_ready():
    """As vllm-project/vllm#21538: an engine is there, and subscribes a little later."""
    ports = FORK.SimpleQueue()
    child_of(run_engine, ports)
    coordinator = Coordinator()
    ports.put(coordinator.ports)
    coordinator.start()


class Front(http.server.BaseHTTPRequestHandler):
    """Has the requests until somebody fetches them: none."""

    def do_GET(self):
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def detect(port):
    at("detector")
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/next") as answer:
            if answer.status == 200:
                work_for(0.5)
        time.sleep(0.01)


def asks_for_images():
    """Healthy, as johnolafenwa/DeepStack#82: no image comes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
    child_of(detect, server.server_address[1])
    at("main")
    server.serve_forever()


UNIT = """
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
{blocks}
"""
BLOCK = """
struct block_{number} {{
    std::map<std::string, std::vector<std::function<float(float)>>> taps;
    bool work(const std::string &name) {{
        auto &mine = taps[name];
        mine.push_back([](float x) {{ return x * {number}.0f; }});
        std::sort(mine.begin(), mine.end(), [](auto &a, auto &b) {{ return a(1) < b({number}); }});
        return std::regex_match(name, std::regex("[a-z]+{number}"));
    }}
}};
bool run_{number}(const std::string &name) {{ return block_{number}().work(name); }}
"""


def compile_library():
    """One unit after the other."""
    for unit in range(500):
        blocks = "".join(BLOCK.format(number=number) for number in range(24))
        with open(in_folder("unit.cc"), "w") as file:
            file.write(UNIT.format(blocks=blocks))
        subprocess.run(["g++", "-O2", "-c", "-o", in_folder(f"unit{unit % 4}.o"), in_folder("unit.cc")], check=True)


def build():
    at("builder")
    compile_library()


def compiles_its_radio():
    """Healthy, as ptrkrysik/gr-gsm#526: the installer waits for a library that is built from its sources."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    builder = child_of(build)
    at("main")
    builder.join()


PROGRAMS = {
    "configures-its-proxy": configures_its_proxy,
    "builds-with-tokens": builds_with_tokens,
    "logs-its-requests": logs_its_requests,
    "publishes-that-all-are-ready": publishes_that_all_are_ready,
    "asks-for-images": asks_for_images,
    "compiles-its-radio": compiles_its_radio,
}

if __name__ == "__main__":
    run(PROGRAMS)
