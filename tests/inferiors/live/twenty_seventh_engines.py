"""Engines of several processes that hang, and healthy ones, twenty-seventh set: `..._engines.py NAME FOLDER`."""

import ctypes
import http.client
import http.server
import itertools
import json
import multiprocessing
import os
import select
import signal
import socket
import sys
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def munch(tasks, results):
    while True:
        number = tasks.get()
        if number is None:
            break
        work_for(0.01)
        results.put(str(number) * 3000)
    at("worker")


def write_results(results):
    with open(in_folder("results"), "w") as file:
        while True:
            result = results.get()
            if result is None:
                return
            file.write(result + "\n")


def two_queues_and_two_workers():
    """As python/cpython#116400: there is a worker that computes and one that writes the results. Both are told at once
    that there is no more; the one that writes ends before the last result, and the other one cannot put the rest."""
    tasks, results = FORK.Queue(), FORK.Queue()
    muncher, writer = child_of(munch, tasks, results), child_of(write_results, results)
    for number in range(100):
        tasks.put(number)
    tasks.put(None)
    results.put(None)
    wait_for_role("worker")
    at("main")
    muncher.join()
    writer.join()


def compare(recordings, comparisons):
    """A process of its own, as a playback may need too much memory."""
    while True:
        number = recordings.get()
        outputs = [bytearray(1 << 16) for _ in range(number)]
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)  # as the system does when there is no memory left
        comparisons.put({"recording": number, "equal": all(output == outputs[0] for output in outputs)})


class Equalizer:
    def __init__(self):
        self.recordings, self.comparisons = FORK.Queue(), FORK.Queue()
        self.worker = child_of(compare, self.recordings, self.comparisons)

    def play(self, number):
        self.recordings.put(number)
        return self.comparisons.get()


def playbacks_of_recordings():
    """As Optibus/playback#44: playbacks are compared by a worker. It has died, and the main process waits for what it
    finds."""
    equalizer = Equalizer()
    for number in range(1, 6):
        if number == 3:
            at("main")
        print(equalizer.play(number), flush=True)


def cluster(processors):
    import ray

    ray.init(num_cpus=processors, include_dashboard=False, log_to_driver=False)
    return ray


def claim(roles):
    """The first role that no other process has."""
    for role in roles:
        try:
            os.close(os.open(in_folder(f"{role}-claimed"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return role
    raise RuntimeError("there are more actors than roles")


class Replica:
    """An actor."""

    def __init__(self, arguments, number):
        sys.argv = list(arguments)
        self.number = number
        at(claim("ab"))

    def get(self):
        return self.number


def actors_for_two_processors():
    """As ray-project/ray#1734: each actor has a processor for as long as it lives. There are ten of them and two
    processors, and all are asked for an answer."""
    ray = cluster(2)
    actors = [ray.remote(num_cpus=1)(Replica).remote(sys.argv, number) for number in range(10)]
    wait_for_role("a")
    wait_for_role("b")
    at("main")
    print([ray.get(actor.get.remote()) for actor in actors], flush=True)


class Watch:
    """Tells when a file changes or goes."""

    IN_ATTRIB, IN_CLOSE_WRITE, IN_DELETE_SELF = 0x4, 0x8, 0x400

    def __init__(self, path):
        library = ctypes.CDLL(None)
        self.descriptor = library.inotify_init1(0)
        kinds = self.IN_ATTRIB | self.IN_CLOSE_WRITE | self.IN_DELETE_SELF
        library.inotify_add_watch(self.descriptor, path.encode(), kinds)

    def wait(self):
        select.select([self.descriptor], [], [])
        os.read(self.descriptor, 4096)


def open_exclusive(path):
    try:
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return None


def own_pidfile(path):
    while True:
        descriptor = open_exclusive(path)
        if descriptor is not None:
            os.write(descriptor, f"{os.getpid()}\n".encode())
            os.close(descriptor)
            return
        print("waiting for another process to finish", flush=True)
        watch = Watch(path)
        at("main")
        watch.wait()


def precompile(path):
    own_pidfile(path)
    os.kill(os.getpid(), signal.SIGKILL)  # somebody has interrupted it


def package_compiled_once():
    """As JuliaLang/julia#50214: a process that compiles a package has a file with its number. One was interrupted and
    has left it; whether that process is there is not looked at, and the next one waits until the file goes."""
    path = in_folder("package.pidfile")
    child_of(precompile, path).join()
    own_pidfile(path)
    with open(in_folder("package.ji"), "w") as file:
        file.write("compiled")
    os.remove(path)


def execute(listener):
    connection, _ = listener.accept()
    with connection.makefile("rw") as stream:
        for count, line in enumerate(stream, 1):
            call = json.loads(line)
            stream.write(json.dumps({"id": call["id"], "result": len(call["statement"])}) + "\n")
            stream.flush()
            if count == 1:
                at("server")


class Connection:
    """Answers come for whoever waits for that number. A thread receives them."""

    def __init__(self, address):
        self.stream = socket.create_connection(address).makefile("rw")
        self.numbers, self.waiting, self.results = itertools.count(), {}, {}

    def receive(self):
        for line in self.stream:
            answer = json.loads(line)
            self.results[answer["id"]] = answer["result"]
            self.waiting[answer["id"]].release()

    def call(self, statement):
        number, answered = next(self.numbers), threading.Semaphore(0)
        self.waiting[number] = answered
        self.stream.write(json.dumps({"id": number, "statement": statement}) + "\n")
        self.stream.flush()
        wait_for_role("server")
        at("main")
        answered.acquire()
        return self.results.pop(number)


def statement_of_a_client():
    """As MonetDB/MonetDB-old#376: a statement is executed by a server, and the answer has come. The client waits to be
    told so by the thread of the connection, which was not started."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(execute, listener)
    print(Connection(listener.getsockname()).call("f();"), flush=True)


class Applications(http.server.BaseHTTPRequestHandler):
    """Takes some requests an hour."""

    left = 3

    def do_GET(self):
        type(self).left -= 1
        if self.left < 0:
            at("service")
            self.send_response(429)
            self.send_header("Retry-After", "1580")
        else:
            self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words):
        pass


def serve_for_ever(server):
    server.serve_forever()


def refresh(port, name):
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", f"/applications/{name}")
        response = connection.getresponse()
        response.read()
        if response.status != 429:
            return
        wait_for_role("service")
        at("main")
        time.sleep(float(response.headers["Retry-After"]))


def service_says_when_to_return():
    """Healthy, as netskopeoss/terraform-provider-netskope#108: a service takes no more requests in this hour and says
    for how long. The client sleeps until then, and says nothing."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Applications)
    child_of(serve_for_ever, server)
    for name in ("one", "two", "three", "bentley"):
        refresh(server.server_address[1], name)


class Worker:
    """Runs queries, each in a thread. Told to end, it takes no more of them."""

    def __init__(self, requests, health):
        self.requests, self.health = requests, health
        self.changed, self.active, self.draining = threading.Condition(), 0, threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.draining.set())

    def query(self, pages):
        for _ in range(pages):
            work_for(0.05)
            time.sleep(0.2)  # the storage
        with self.changed:
            self.active -= 1
            self.changed.notify_all()

    def beat(self):
        while True:
            self.health.value = 2 if self.draining.is_set() else 1
            time.sleep(0.5)

    def run(self):
        thread(self.beat)
        while not self.draining.is_set():
            if self.requests.poll(0.2):
                self.active += 1
                thread(self.query, self.requests.recv())
        at("worker")
        with self.changed:
            self.changed.wait_for(lambda: self.active == 0)


def run_worker(requests, health):
    Worker(requests, health).run()


def queries_end_before_the_worker():
    """Healthy, as PostHog/duckgres#690: a worker is told to end. It ends the queries that it has, for up to an hour,
    and the one that has told it waits for that."""
    (requests, takes), health = FORK.Pipe(), FORK.Value("i", 0)
    worker = child_of(run_worker, takes, health)
    for _ in range(2):
        requests.send(14_000)
    while takes.poll() or health.value == 0:
        time.sleep(0.05)
    worker.terminate()
    wait_for_role("worker")
    at("main")
    worker.join()


class SlowReplica:
    """An actor that loads much before it takes calls."""

    def __init__(self, arguments):
        sys.argv = list(arguments)
        role = claim("ab")
        for layer in range(6000):
            work_for(0.02)
            time.sleep(0.1)
            if layer == 3:
                at(role)

    def step(self):
        return None


def actors_that_load():
    """Healthy, as ray-project/ray#8326: actors take long to begin. It is said that they are pending, and the program
    waits for what they were asked."""
    ray = cluster(2)
    actors = [ray.remote(num_cpus=1)(SlowReplica).remote(sys.argv) for _ in range(2)]
    answers = [actor.step.remote() for actor in actors]
    wait_for_role("a")
    wait_for_role("b")
    at("main")
    ray.get(answers)


PROGRAMS = {
    "ends-its-queues": two_queues_and_two_workers,
    "compares-playbacks": playbacks_of_recordings,
    "ten-actors": actors_for_two_processors,
    "precompiles-a-package": package_compiled_once,
    "calls-a-remote-procedure": statement_of_a_client,
    "refreshes-a-resource": service_says_when_to_return,
    "drains-before-it-ends": queries_end_before_the_worker,
    "actors-begin-slowly": actors_that_load,
}

if __name__ == "__main__":
    run(PROGRAMS)
