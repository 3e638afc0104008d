"""Engines of one process that hang, and healthy ones, thirty-third set: `thirty_third_threads.py NAME FOLDER`."""

import asyncio
import concurrent.futures
import contextlib
import ctypes
import http.client
import http.server
import itertools
import queue
import random
import selectors
import socket
import sqlite3
import threading
import time

import numpy

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.thirty_third_extension import extension


class LightLock:
    """Shared by those who read, or of one who writes."""

    def __init__(self):
        self.changed = threading.Condition()
        self.shared, self.exclusive = 0, False

    @contextlib.contextmanager
    def for_reading(self):
        with self.changed:
            self.changed.wait_for(lambda: not self.exclusive)
            self.shared += 1
        try:
            yield
        finally:
            with self.changed:
                self.shared -= 1
                self.changed.notify_all()

    @contextlib.contextmanager
    def for_writing(self):
        with self.changed:
            self.changed.wait_for(lambda: not self.exclusive and not self.shared)
            self.exclusive = True
        try:
            yield
        finally:
            with self.changed:
                self.exclusive = False
                self.changed.notify_all()


class TextIndex:
    """What comes between two writes to the disk is in a cache in memory."""

    def __init__(self, name):
        self.name, self.lock, self.cache = name, LightLock(), {}

    def size(self):
        return sum(map(len, self.cache.values()))


class Caches:
    """Of all indexes; together they are kept below a limit."""

    LIMIT = 20_000

    def __init__(self, *names):
        self.indexes = {name: TextIndex(name) for name in names}

    def add(self, name, number, text):
        index = self.indexes[name]
        with index.lock.for_reading():
            if sum(each.size() for each in self.indexes.values()) > self.LIMIT:
                self.evict_largest()
            index.cache[number] = text

    def evict_largest(self):
        largest = max(self.indexes.values(), key=TextIndex.size)
        if largest.name == "articles":
            at("main")
        with largest.lock.for_writing():
            largest.cache.clear()


def evicts_its_own_cache():
    """As timescale/pg_textsearch#392: who adds to an index has its lock for reading, and frees memory where there is
    too much in use. The largest cache is mostly the one that was just added to, and its lock is wanted for writing."""
    caches = Caches("titles", "articles")
    for number in range(300):
        caches.add("titles", number, "a title")
    for number in itertools.count():
        caches.add("articles", number, "words of an article " * 40)


class Action:
    """A task that was handed to the service of actions."""

    def __init__(self, name):
        self.name, self.ended, self.error = name, threading.Event(), None


class ActionService(threading.Thread):
    """Runs one action after the other, until it goes away."""

    def __init__(self, capacity):
        super().__init__(daemon=True)
        self.actions, self.capacity = queue.Queue(), capacity

    def run(self):
        for _ in range(self.capacity):
            action = self.actions.get()
            work_for(0.05)
            action.ended.set()


class Controller:
    """Hands tasks to the service, and watches whether that is still there."""

    def __init__(self, service):
        self.service, self.open = service, []

    async def watch(self):
        while True:
            await asyncio.sleep(0.2)
            if not self.service.is_alive():
                for action in self.open:
                    action.error = ConnectionError("the service of actions is down")
                    action.ended.set()

    def call(self, name):
        action = Action(name)
        self.open.append(action)
        self.service.actions.put(action)
        action.ended.wait()
        self.open.remove(action)
        if action.error:
            raise action.error


async def parent_task(controller):
    watch = asyncio.create_task(controller.watch())
    for number in range(4):
        await asyncio.sleep(0.05)
        if number == 3:
            controller.service.join()
            at("main")
        controller.call(f"child{number}")
    watch.cancel()


def calls_a_task_from_the_loop():
    """As flyteorg/flyte-sdk#1472: a task of the loop calls another one and waits for it in the thread of the loop. The
    service that runs tasks has gone away, and what watches for that and would raise an error runs in this loop."""
    service = ActionService(3)
    service.start()
    asyncio.run(parent_task(Controller(service)))


def simulate_cell(meeting, states, number, rounds):
    """All cells of a row advance together."""
    for _ in range(rounds):
        states[number] = (states[number] * 5 + 1) % 1009
        work_for(0.01)
        meeting.wait()
    return states[number]


def simulate_row(pool, cells):
    meeting, states = threading.Barrier(cells), list(range(cells))
    return [pool.submit(simulate_cell, meeting, states, number, 10) for number in range(cells)]


def meets_with_few_workers():
    """As rust-threadpool/rust-threadpool#56: jobs of a pool wait for each other. There are more of them than workers,
    and those that have not begun are waited for."""
    with concurrent.futures.ThreadPoolExecutor(4, thread_name_prefix="cells") as pool:
        for cells in (2, 4, 6):
            jobs = simulate_row(pool, cells)
            if cells == 6:
                at("main")
            print([job.result() for job in jobs], flush=True)


class Signals:
    """Values from one thread to another one, without room in between: who sends goes on when it was received."""

    def __init__(self):
        self.turn, self.sent, self.received = threading.Lock(), threading.Semaphore(0), threading.Semaphore(0)
        self.value = None

    def send(self, value):
        with self.turn:
            self.value = value
            self.sent.release()
            self.received.acquire()

    def receive(self, timeout=None):
        if not self.sent.acquire(timeout=timeout):
            return None
        value = self.value
        self.received.release()
        return value


class HealthCheck(threading.Thread):
    """Asks whether the other end of the tunnel is there. After some failures it wants a new lease and is done."""

    def __init__(self, renew, failures):
        super().__init__(daemon=True)
        self.stop, self.renew, self.failures = Signals(), renew, failures

    def run(self):
        while self.stop.receive(timeout=0.05) is None:
            self.failures -= 1
            if self.failures == 0:
                self.renew.set()
                return


class TunnelAgent:
    def __init__(self):
        self.renew, self.check = threading.Event(), None

    def keep_peers(self):
        while True:
            time.sleep(5)
            work_for(0.01)

    def take_lease(self, failures):
        self.check = HealthCheck(self.renew, failures)
        self.check.start()

    def renew_lease(self, failures):
        self.check.stop.send("a new lease")
        self.take_lease(failures)


def stops_a_health_check():
    """As utilitywarehouse/wiresteward#380: a new lease is taken and the old check is told to stop, which waits until it
    has received that. It was the check that wanted the lease, and it has ended by that."""
    agent = TunnelAgent()
    thread(agent.keep_peers)
    agent.take_lease(1000)
    time.sleep(0.2)
    agent.renew_lease(3)
    agent.renew.wait()
    agent.check.join()
    at("main")
    agent.renew_lease(1000)


ON_MESSAGE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
SIZES = []


def unpack(message):
    SIZES.append(message)
    return len(SIZES)


def waits_for_progress():
    """As rapidsai/rapidsmpf#188: the wait for messages, in C++, is called with the lock of the interpreter. A thread
    that brings them on hands each to a function in Python, and wants that lock."""
    library, plain = extension(), extension(ctypes.PyDLL)
    on_message = ON_MESSAGE(unpack)
    library.open_engine(on_message)
    for message in range(8):
        library.post_message(message)
    print(library.wait_for_messages(), flush=True)
    at("main")
    plain.post_message(8)
    print(plain.wait_for_messages(), flush=True)


class ShardServer(threading.Thread):
    """Answers a request at once; one for a slow shard when it is told to, with an error."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener, self.fail = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def run(self):
        while True:
            thread(self.answer, self.listener.accept()[0])

    def answer(self, connection):
        if b"slow" in connection.recv(64):
            self.fail.wait()
            connection.sendall(b"503\n")
        else:
            connection.sendall(b"200\n")


class AsyncClient:
    """Requests are sent by whoever asks; what comes back is handled by one thread. So many are on their way at most."""

    def __init__(self, address, limit):
        self.address, self.available = address, threading.Semaphore(limit)
        self.selector, self.answers = selectors.DefaultSelector(), queue.Queue()
        thread(self.handle)

    def request(self, shard, tries=2):
        self.available.acquire()
        connection = socket.create_connection(self.address)
        connection.sendall(shard.encode())
        self.selector.register(connection, selectors.EVENT_READ, (shard, tries))

    def handle(self):
        while True:
            for key, _ in self.selector.select(0.1):
                self.selector.unregister(key.fileobj)
                self.complete(key.fileobj.recv(64), *key.data)
                self.available.release()

    def complete(self, answer, shard, tries):
        if answer.startswith(b"503") and tries:
            self.request(shard, tries - 1)
        else:
            self.answers.put((shard, answer))


def sends_again_on_failure():
    """As apache/solr#4236: a request that has failed is sent again by the thread that handles what comes back, before
    it gives back the permit of that request. No other is left, and all are given back by this thread."""
    server = ShardServer()
    server.start()
    client = AsyncClient(server.listener.getsockname(), 2)
    for number in range(6):
        client.request(f"shard{number}")
    for _ in range(6):
        client.answers.get()
    for number in range(2):
        client.request(f"slow{number}")
    server.fail.set()
    at("main")
    client.request("shard6")
    print(client.answers.get(), flush=True)


def fill(database, pages):
    database.execute("create table pages (path text, version integer, created integer, valid_from integer, valid_to)")
    rows = ((f"notes/{number % 997}.md", number, number * 60) for number in range(pages))
    database.executemany("insert into pages (path, version, created) values (?, ?, ?)", rows)
    database.commit()


def rewrites_each_row():
    """Healthy, as akitaonrails/ai-memory#776: a migration of a large database fills two columns of each row in one
    transaction, the second one from the next version of the page. It says nothing for 22 hours."""
    database = sqlite3.connect(":memory:")
    fill(database, 400_000)
    at("main")
    database.execute("update pages set valid_from = created")
    database.execute(
        "update pages set valid_to = (select min(later.created) from pages later"
        " where later.path = pages.path and later.version > pages.version)"
    )
    database.commit()


class Network:
    """Reactions between metabolites; at rest nothing is made or used up on the whole."""

    def __init__(self, metabolites=40, reactions=64):
        generator = numpy.random.default_rng(7)
        self.stoichiometry = generator.integers(-2, 3, size=(metabolites, reactions)).astype(float)

    def is_mode(self, reactions):
        part = self.stoichiometry[:, list(reactions)]
        singular = numpy.linalg.svd(part, compute_uv=False)
        return int((singular < 1e-9).sum()) == 1

    def modes(self, size):
        for reactions in itertools.combinations(range(self.stoichiometry.shape[1]), size):
            if self.is_mode(reactions):
                yield reactions


def computes_its_modes():
    """Healthy, as cnapy-org/CNApy#104: all modes of a network are computed, and the window shows nothing meanwhile."""
    network = Network()
    at("main")
    print(sum(1 for size in range(6, 12) for _ in network.modes(size)), flush=True)


class WorkflowHost:
    """Workflows wait in a queue; one that runs is not run twice, but put back for later."""

    def __init__(self):
        self.waiting, self.active = queue.Queue(), {}

    def execute(self, name):
        for step in range(100_000):
            work_for(0.5)
            self.active[name] = step
        del self.active[name]

    def consume(self):
        while True:
            name = self.waiting.get()
            if name in self.active:
                self.waiting.put(name)
                time.sleep(0.001)
            else:
                self.active[name] = 0
                thread(self.execute, name)


def puts_it_back():
    """Healthy, as danielgerlag/workflow-core#1352: a workflow that is in work already comes once more, and is taken
    from the queue and put back all the time until it is done, which takes a quarter of an hour."""
    host = WorkflowHost()
    for name in ("import", "import"):
        host.waiting.put(name)
    at("main")
    host.consume()


class Registry(http.server.BaseHTTPRequestHandler):
    """Has had too many requests."""

    def do_GET(self):
        self.send_response(429)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def download(port, name):
    """The archive, after as many tries as it takes; each wait is longer than the one before it."""
    for attempt in itertools.count():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", f"/{name}")
        response = connection.getresponse()
        if response.status == 200:
            return response.read()
        connection.close()
        delay = min(2**attempt, 60) * random.uniform(0.8, 1.2)
        print(f"{name}: {response.status}, once more in {delay:.0f} s", flush=True)
        time.sleep(delay)
    return b""


def backs_off():
    """Healthy, as facebookresearch/CompilerGym#264: the benchmarks come from a server that limits requests, and the
    client waits for longer after each refusal."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread(server.serve_forever)
    at("main")
    download(server.server_address[1], "benchmarks.tar.bz2")


PROGRAMS = {
    "evicts-its-own-cache": evicts_its_own_cache,
    "calls-a-task-from-the-loop": calls_a_task_from_the_loop,
    "meets-with-few-workers": meets_with_few_workers,
    "stops-a-health-check": stops_a_health_check,
    "waits-for-progress": waits_for_progress,
    "sends-again-on-failure": sends_again_on_failure,
    "rewrites-each-row": rewrites_each_row,
    "computes-its-modes": computes_its_modes,
    "puts-it-back": puts_it_back,
    "backs-off": backs_off,
}

if __name__ == "__main__":
    run(PROGRAMS)
