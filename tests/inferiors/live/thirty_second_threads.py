"""Single processes in Python that hang, and healthy ones, thirty-second set: `thirty_second_threads.py NAME FOLDER`."""

import asyncio
import collections
import concurrent.futures
import contextlib
import heapq
import queue
import random
import sqlite3
import threading
import time

import numpy

from tests.inferiors.live.place import at, in_folder, run, thread, work_for


class CaseDatabase:
    """The database of a case. A few connections are shared by all who read and write it."""

    def __init__(self, path, connections=2):
        self.free = queue.Queue()
        for _ in range(connections):
            self.free.put(sqlite3.connect(path, check_same_thread=False))
        self.write_lock = threading.RLock()

    @contextlib.contextmanager
    def connection(self):
        taken = self.free.get()
        try:
            yield taken
        finally:
            self.free.put(taken)


class HostAddressManager:
    def __init__(self, case):
        self.case, self.recent = case, {}
        with case.connection() as connection:
            connection.execute("create table addresses (name text, address text)")
            connection.commit()

    def add(self, name, address, arrived):
        with self.case.connection() as connection:
            arrived()
            with self.case.write_lock:
                connection.execute("insert into addresses values (?, ?)", (name, address))
                connection.commit()
                self.recent[name] = address

    def merge(self, names, arrived):
        with self.case.write_lock:
            arrived()
            for name in names:
                with self.case.connection() as connection:
                    row = connection.execute("select address from addresses where name = ?", (name,)).fetchone()
                self.recent[name] = row and row[0]


def caches_host_addresses():
    """As sleuthkit/sleuthkit#2402: two modules add addresses while the manager merges what is known of some hosts."""
    manager = HostAddressManager(CaseDatabase(in_folder("case.db")))
    manager.add("mail", "10.0.0.2", lambda: None)
    manager.merge(["mail"], lambda: None)
    together = threading.Barrier(3)
    modules = [thread(manager.add, f"host{number}", f"10.0.1.{number}", together.wait) for number in range(2)]
    at("main")
    manager.merge(["mail", "host0"], together.wait)
    for module in modules:
        module.join()


class Lock:
    """Of a library for several event loops: who takes it goes through a checkpoint of the loop afterwards."""

    def __init__(self):
        self.owner, self.waiters = None, collections.deque()

    async def acquire(self):
        if self.owner is None:
            self.owner = asyncio.current_task()
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.append(waiter)
        await waiter
        self.owner = asyncio.current_task()

    def release(self):
        self.owner = None
        if self.waiters:
            self.waiters.popleft().set_result(None)

    async def __aenter__(self):
        await self.acquire()

    async def __aexit__(self, *_):
        self.release()


class ConnectionPool:
    def __init__(self):
        self.lock, self.connections = Lock(), {}

    async def request(self, url):
        async with self.lock:
            connection = self.connections.setdefault(url, object())
            await asyncio.sleep(0.01)
        return connection


async def fetch_all():
    pool = ConnectionPool()
    await asyncio.gather(*(pool.request(f"https://host{number}/") for number in range(4)))
    first = asyncio.ensure_future(pool.request("https://host4/"))
    second = asyncio.ensure_future(pool.request("https://host5/"))
    await asyncio.sleep(0)
    first.cancel()  # who asked has gone
    at("main")
    await second


def cancels_a_request():
    """As agronholm/anyio#398, with the lock of its own as the library had it."""
    asyncio.run(fetch_all())


class SameAsRetriever:
    """Which names mean the same thing. At most three retrievals go on at once."""

    def __init__(self):
        self.permits = threading.Semaphore(3)
        self.cache = {}

    def retrieve(self, uri):
        if uri in self.cache:
            return self.cache[uri]
        self.permits.acquire()
        names = self.ask(uri)
        self.permits.release()
        self.cache[uri] = names
        return names

    def ask(self, uri):
        time.sleep(0.02)
        if "%" in uri:
            raise ValueError(f"illegal character in {uri}")
        return {uri, uri.replace("http:", "https:")}


def annotate(retriever, uris, results):
    for uri in uris:
        try:
            results.put(retriever.retrieve(uri))
        except ValueError as error:
            results.put(error)
    results.put(None)


def limits_its_retrievals():
    """As dice-group/gerbil#350: some of the names that the data sets have are not well formed."""
    retriever, results = SameAsRetriever(), queue.Queue()
    uris = [f"http://example.org/{'%' * (number % 5 == 4)}{number}" for number in range(24)]
    annotators = [thread(annotate, retriever, uris[first::2], results) for first in range(2)]
    at("main")
    for annotator in annotators:
        annotator.join()


class IndexReader:
    """One thread reads documents from a file, others put them into parts of an index."""

    def __init__(self, writers):
        self.documents = queue.Queue(maxsize=100)
        self.writers = concurrent.futures.ThreadPoolExecutor(writers)
        self.futures = [self.writers.submit(self.write, [None] * 20) for _ in range(writers)]

    def write(self, part):
        while True:
            document = self.documents.get()
            if document is None:
                return part
            part[document % 41] = document  # a part has room for so many groups

    def read(self, count):
        for number in range(count):
            if number == 20:
                at("main")
            self.documents.put(number)
        for _ in self.futures:
            self.documents.put(None)
        return [future.result() for future in self.futures]


def reads_an_index():
    """As apache/maven-indexer#314: a document is put where a part has no room."""
    IndexReader(writers=2).read(10_000)


class Store:
    """Each transaction has a connection."""

    def __init__(self, path):
        self.path = path
        with self.transaction() as connection:
            connection.execute("create table jobs (name text, state text)")

    @contextlib.contextmanager
    def transaction(self):
        connection = sqlite3.connect(self.path, timeout=1_000_000, isolation_level=None)
        connection.execute("begin immediate")
        yield connection
        connection.execute("commit")
        connection.close()

    def add(self, name):
        with self.transaction() as connection:
            connection.execute("insert into jobs values (?, 'new')", (name,))

    def add_all(self, names):
        """All of them or none."""
        with self.transaction() as connection:
            connection.execute("delete from jobs where state = 'old'")
            for name in names:
                self.add(name)


def nests_its_transactions():
    """As korma/Korma#130: a function that has a transaction calls one that has another one."""
    store = Store(in_folder("jobs.db"))
    store.add("first")
    at("main")
    store.add_all(["second", "third"])


class Stage:
    """A part of a pipeline, which is connected to the next one in the same process."""

    ADDRESS = "inproc://frames"

    def __init__(self):
        import zmq
        import zmq.asyncio

        self.zmq, self.context = zmq, zmq.asyncio.Context()

    async def produce(self):
        socket = self.context.socket(self.zmq.PUSH)
        socket.bind(self.ADDRESS)
        for number in range(20):
            await socket.send_multipart([b"frame", b"%d" % number])

    async def consume(self):
        socket = self.context.socket(self.zmq.PULL)
        socket.connect(self.ADDRESS)
        for _ in range(20):
            await socket.recv_multipart()


async def run_stages():
    at("main")
    await asyncio.gather(Stage().produce(), Stage().consume())


def connects_inside_itself():
    """As zeromq/pyzmq#1282, with pushed messages instead of published ones, which would be dropped."""
    asyncio.run(run_stages())


class Cluster:
    """Jobs in the order in which they came, and the machines that would have had to run them, hour by hour."""

    def __init__(self, jobs):
        self.random = random.Random(82)
        self.jobs, self.costs = jobs, collections.Counter()

    def job(self, number):
        return number / 500, 60 * self.random.expovariate(1.0), self.random.choice((1, 2, 4, 8, 16))

    def model(self):
        running = []
        for number in range(self.jobs):
            start, minutes, cores = self.job(number)
            while running and running[0][0] <= start:
                end, used = heapq.heappop(running)
                self.costs[int(end // 60)] += 0.04 * used
            heapq.heappush(running, (start + minutes, cores))


def models_a_cluster():
    """Healthy, as aws-samples/hpc-cost-simulator#82: all jobs of a site, for years."""
    cluster = Cluster(2_000_000_000)
    at("main")
    cluster.model()


class ResponseGenerator:
    """A thread of its own makes tokens for the requests."""

    def __init__(self):
        self.requests, self.batch = queue.Queue(), []
        self.worker = thread(self.generate)

    def next_request(self):
        with contextlib.suppress(queue.Empty):
            return self.requests.get_nowait()
        return None

    def generate(self):
        while True:
            request = self.next_request()
            if request is not None:
                self.batch.append(request)
            for request, tokens in self.batch:
                work_for(0.01)
                tokens.put(len(request))
            self.batch.clear()

    def answer(self, prompt):
        tokens = queue.Queue()
        self.requests.put((prompt, tokens))
        return tokens.get()


def asks_its_queue():
    """Healthy, as ml-explore/mlx-lm#674: after its first request nobody asks for anything."""
    generator = ResponseGenerator()
    generator.answer("warm up")
    at("main")
    generator.worker.join()


class Graph:
    """An index of neighbours. To vacuum it, the neighbours of each element that is gone are found anew."""

    LIMIT, DELAY = 200, 0.02

    def __init__(self, size):
        self.vectors = numpy.random.default_rng(1).normal(size=(size, 32)).astype("float32")
        self.neighbors = {}
        self.balance = 0

    def pay(self, cost):
        """A vacuum sleeps when it has done so much."""
        self.balance += cost
        if self.balance > self.LIMIT:
            time.sleep(self.DELAY)
            self.balance = 0

    def repair(self, number):
        distances = ((self.vectors[:2000] - self.vectors[number]) ** 2).sum(1)
        self.neighbors[number] = numpy.argpartition(distances, 16)[:16]
        self.pay(120)

    def vacuum(self):
        for number in range(len(self.vectors)):
            self.repair(number)


def vacuums_by_a_budget():
    """Healthy, as pgvector/pgvector#450: neither the processor nor the memory is the limit."""
    graph = Graph(200_000)
    at("main")
    graph.vacuum()


class Preparation:
    """Counts the tokens of all documents and shuffles them, file by file."""

    def __init__(self, files):
        self.files = files

    def sizes(self, number):
        return numpy.random.default_rng(number).integers(10, 4000, size=100_000)

    def index(self, number):
        sizes = self.sizes(number)
        packed, sample, length = [], [], 0
        for document, size in enumerate(sizes.tolist()):
            if length + size > 8192:
                packed.append(tuple(sample))
                sample, length = [], 0
            sample.append(document)
            length += size
        random.Random(number).shuffle(packed)
        return len(packed)

    def prepare(self, workers):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return sum(pool.map(self.index, range(self.files)))


def prepares_its_data():
    """Healthy, as ServiceNow/Fast-LLM#202: there are very many files."""
    at("main")
    Preparation(100_000).prepare(3)


PROGRAMS = {
    "caches-host-addresses": caches_host_addresses,
    "cancels-a-request": cancels_a_request,
    "limits-its-retrievals": limits_its_retrievals,
    "reads-an-index": reads_an_index,
    "nests-its-transactions": nests_its_transactions,
    "connects-inside-itself": connects_inside_itself,
    "models-a-cluster": models_a_cluster,
    "asks-its-queue": asks_its_queue,
    "vacuums-by-a-budget": vacuums_by_a_budget,
    "prepares-its-data": prepares_its_data,
}

if __name__ == "__main__":
    run(PROGRAMS)
