"""Engines of one process that hang, and healthy ones, thirty-first set: `thirty_first_threads.py NAME FOLDER`."""

import asyncio
import concurrent.futures
import ctypes
import hashlib
import http.server
import json
import os
import queue
import signal
import socket
import sqlite3
import threading
import time
import urllib.request
import weakref

from tests.inferiors.live.place import at, in_folder, run, thread, work_for
from tests.inferiors.live.thirty_first_extension import extension

STEP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def double(number):
    return number * 2


def calls_back_from_a_thread():
    """As pybind/pybind11#1556: a library calls a function of Python. It knows the states of the threads that it has
    met, and makes a new one for a thread of Python, which has the interpreter's lock by its own state already."""
    step = STEP(double)
    print(extension().for_each(step, 3, 1), flush=True)
    library = extension(ctypes.PyDLL)
    at("main")
    worker = thread(library.for_each, step, 3, 0)
    worker.join()


class CloudDrive:
    """A file system whose files are somewhere else; what was changed is sent at the end."""

    def __init__(self):
        self.shutdown_lock, self.stopped = threading.Lock(), False
        self.changed, self.closing = ["notes.txt", "photo.jpg"], threading.Event()

    def shutdown(self):
        with self.shutdown_lock:
            if self.stopped:
                return
            self.closing.set()
            while self.changed:
                work_for(0.5)
                print(f"sent {self.changed.pop()}", flush=True)
            self.stopped = True

    def handle_shutdown(self, number, frame):
        at("main")
        self.shutdown()
        raise SystemExit(0)

    def main(self):
        """Until it is unmounted."""
        work_for(0.2)


def service_manager(drive):
    """Unmounts, which ends the main loop, and sends a signal as well."""
    drive.closing.wait()
    os.kill(os.getpid(), signal.SIGTERM)


def is_told_to_end_twice():
    """As IsmaeelAkram/icloud-linux#20: the drive is unmounted and shuts down. In the middle of that the signal comes,
    and its handler, which runs in the same thread, shuts down too."""
    drive = CloudDrive()
    signal.signal(signal.SIGTERM, drive.handle_shutdown)
    thread(service_manager, drive)
    try:
        drive.main()
    finally:
        drive.shutdown()


class ConnectionPool:
    def __init__(self, path, size):
        self.free = queue.Queue()
        for _ in range(size):
            self.free.put(sqlite3.connect(path, check_same_thread=False))

    def checkout(self):
        return self.free.get()

    def give_back(self, connection):
        self.free.put(connection)


class CostDao:
    """Costs of applications, and settings."""

    def __init__(self, pool):
        self.pool, self.summaries = pool, {}
        connection = pool.checkout()
        connection.execute("create table cost (app text, amount integer)")
        connection.executemany("insert into cost values (?, ?)", [(f"app{n}", n) for n in range(1000)])
        connection.commit()
        pool.give_back(connection)

    def stream(self, query):
        connection = self.pool.checkout()
        try:
            yield from connection.execute(query)
        finally:
            self.pool.give_back(connection)

    def summary(self, kind):
        rows = self.summaries[kind] = self.stream("select app, amount from cost order by amount desc")
        return [next(rows) for _ in range(3)]

    def setting(self, name):
        (count,) = self.stream("select count(*) from cost")
        return count


def handler_of(dao):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            what, name = self.path.strip("/").split("/")
            answer = json.dumps(dao.summary(name) if what == "cost-summary" else dao.setting(name)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    return Handler


def keeps_its_connections():
    """As finos/waltz#7588: a summary reads the first rows of a result and never closes it, so that its connection does
    not come back. When there is none left, each request to the database waits."""
    dao = CostDao(ConnectionPool(in_folder("waltz.db"), 3))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(dao))
    thread(server.serve_forever)
    pages = ["settings/theme", "cost-summary/year", "cost-summary/month", "cost-summary/week", "settings/theme"]
    for number, page in enumerate(pages):
        if number == len(pages) - 1:
            at("main")
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{page}") as answer:
            print(page, answer.read(), flush=True)


class TimeoutExecutor:
    """Ends the futures that take too long. Its thread ends when the executor is not there any more."""

    def __init__(self, delegate, seconds):
        self.delegate, self.seconds, self.jobs = delegate, seconds, []
        self.event, self.is_shut_down = threading.Event(), False
        self.thread = threading.Thread(
            target=self.job_loop, args=(weakref.ref(self, lambda _, event=self.event: event.set()), self.event)
        )
        self.thread.start()

    def submit(self, function, *arguments):
        future = self.delegate.submit(function, *arguments)
        self.jobs.append((time.monotonic() + self.seconds, future))
        self.event.set()
        return future

    @staticmethod
    def job_loop(reference, event):
        while True:
            executor = reference()
            if executor is None or executor.is_shut_down:
                return
            executor.jobs = [job for job in executor.jobs if not job[1].done()]
            for until, future in executor.jobs:
                if until < time.monotonic():
                    future.cancel()
            wait = min((until - time.monotonic() for until, _ in executor.jobs), default=None)
            del executor
            event.wait(wait)
            event.clear()


EXECUTORS = []


def ends_before_its_executor():
    """As rohanpm/more-executors#176: a script has an executor, and does not shut it down. It is kept by the module,
    which is there until the interpreter has ended."""
    executor = TimeoutExecutor(concurrent.futures.ThreadPoolExecutor(1), 1.0)
    EXECUTORS.append(executor)
    print([executor.submit(double, number).result() for number in range(4)], flush=True)
    time.sleep(1.5)
    at("main")


class Service:
    """Says whether something is done; that takes as long as it takes, or until the line is closed."""

    def __init__(self):
        self.asked, self.closed = threading.Event(), threading.Event()

    def is_done(self, number):
        self.asked.set()
        self.closed.wait()
        return False

    def close(self):
        self.closed.set()


class PollExecutor:
    """Asks a service again and again whether what was submitted is done."""

    def __init__(self, service):
        self.service, self.waiting = service, []
        self.event, self.is_shut_down = threading.Event(), False
        self.thread = thread(self.poll_loop)

    def poll_loop(self):
        while not self.is_shut_down:
            self.waiting = [one for one in self.waiting if not self.service.is_done(one)]
            self.event.clear()
            self.event.wait()

    def submit(self, number):
        self.waiting.append(number)
        self.event.set()

    def shutdown(self):
        self.is_shut_down = True
        self.event.set()
        self.service.close()
        self.thread.join()


def clears_its_event():
    """As rohanpm/more-executors#80: the thread has looked that it is not to end, and polls. Now it is shut down, which
    sets the event; the thread clears it and waits for the next one."""
    service = Service()
    executor = PollExecutor(service)
    executor.submit(1)
    service.asked.wait()
    at("main")
    executor.shutdown()


class BoundedPool:
    """Threads with a short line of tasks; there is no more than that."""

    def __init__(self, threads, length):
        self.tasks = queue.Queue(length)
        for _ in range(threads):
            thread(self.work)

    def work(self):
        while True:
            task, future = self.tasks.get()
            future.set_result(task())

    def submit(self, task):
        future = concurrent.futures.Future()
        try:
            self.tasks.put_nowait((task, future))
        except queue.Full:
            raise RuntimeError("the task was refused") from None
        return future


class SemaphoredExecutor:
    """No more tasks at a time than there are permits; who has one more waits."""

    def __init__(self, delegate, permits):
        self.delegate, self.permits = delegate, threading.Semaphore(permits)

    def submit(self, task):
        self.permits.acquire()
        future = self.delegate.submit(task)
        future.add_done_callback(lambda _: self.permits.release())
        return future


def read_manifest():
    work_for(0.05)
    return 1


def others_submit(pool):
    """As much as the pool takes; the last one of that."""
    last = None
    while True:
        try:
            last = pool.submit(read_manifest)
        except RuntimeError:
            return last


def loses_its_permits():
    """As apache/paimon#9508: manifests are read by a pool that others use as well. It is full at times and refuses a
    task, whose permit is not given back. After some of these there is no permit left."""
    pool = BoundedPool(1, 2)
    executor = SemaphoredExecutor(pool, 3)
    read, refused = [], 0
    for number in range(20):
        if number % 2:
            last = others_submit(pool)
        if refused == 3:
            at("main")
        try:
            read.append(executor.submit(read_manifest))
        except RuntimeError:
            refused += 1
            last.result()
        else:
            read[-1].result()
        print(f"{len(read)} manifests, {refused} refused", flush=True)


class SocketServer:
    """Of a daemon: each connection has a handler, which answers line after line."""

    def __init__(self):
        self.handlers, self.stopping = set(), asyncio.Event()

    async def handle(self, reader, writer):
        task = asyncio.current_task()
        self.handlers.add(task)
        try:
            while line := await reader.readline():
                if line == b"stop\n":
                    self.stopping.set()
                writer.write(b"ok " + line)
                await writer.drain()
        finally:
            self.handlers.discard(task)
            writer.close()

    async def serve(self, address):
        server = await asyncio.start_unix_server(self.handle, in_folder("daemon.sock"))
        address.put(in_folder("daemon.sock"))
        await self.stopping.wait()
        server.close()
        at("main")
        await asyncio.gather(*self.handlers)
        print("the journal is written", flush=True)


def talk(path, words, then):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    for word in words:
        client.sendall(word)
        client.recv(64)
    then(client)


def use_daemon(address):
    path = address.get()
    connected = threading.Event()

    def stay(client):
        connected.set()
        client.recv(64)

    thread(talk, path, [b"recall\n"], stay)
    connected.wait()
    talk(path, [b"store\n", b"stop\n"], socket.socket.close)


def drains_an_idle_client():
    """As CodeAbra/iai-personal-memory-engine#160: a daemon is stopped. It waits until the handlers of all connections
    are done; a client is connected and has nothing to ask, and its handler reads the next line."""
    address = queue.Queue()
    thread(use_daemon, address)

    async def serve():
        await SocketServer().serve(address)

    asyncio.run(serve())


class Upload:
    """A file is hashed, and then sent by parts."""

    PART = 1 << 23

    def __init__(self, path):
        self.path = path

    def hash(self):
        digest = hashlib.sha256()
        with open(self.path, "rb", buffering=0) as file:
            for number, part in enumerate(iter(lambda: file.read(self.PART), b"")):
                digest.update(part)
                if number == 3:
                    at("main")
        return digest.hexdigest()

    def send(self):
        return {"hash": self.hash(), "parts": os.path.getsize(self.path) // self.PART}


def hashes_before_it_sends():
    """Healthy, as thunderbird/tbpro-add-on#980: before a large file is sent it is hashed, without a word about how far
    that is."""
    path = in_folder("video.mkv")
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    print(Upload(path).send(), flush=True)


MIGRATIONS = (
    "create table testoutput (id integer primary key, path text)",
    "insert into testoutput (path) with recursive rows (number) as "
    "(select 1 union all select number + 1 from rows where number < 200000) "
    "select 'a/build/folder/test' || number from rows",
    "create index testoutput_path on testoutput (instr(hex(zeroblob(4000000)), path), path)",
)


def migrates_its_index():
    """Healthy, as Kitware/CDash#3668: the last step of a migration makes an index over the outputs of all tests, which
    are many. The database works on that, and the step is one statement."""
    with sqlite3.connect(in_folder("cdash.db")) as database:
        for number, step in enumerate(MIGRATIONS):
            if number == len(MIGRATIONS) - 1:
                at("main")
            database.execute(step)
            print(f"step {number} is done", flush=True)


class Processor:
    """Of robots: it sees where they are, plans, and sends what they are to do."""

    def __init__(self):
        self.last, self.loops = time.monotonic(), 0
        thread(self.run)

    def plan(self):
        paths = [(x * 7 % 13, y * 5 % 11) for x in range(400) for y in range(400)]
        return min(paths, key=lambda path: path[0] ** 2 + path[1] ** 2)

    def run(self):
        while True:
            for _ in range(4):
                self.plan()
            self.loops += 1
            self.last = time.monotonic()


def processing_is_late():
    """Healthy, as RoboJackets/robocup-software#1084: the window looks several times a second whether the processing is
    late, and says that it hangs. It is only slower than that."""
    processor = Processor()
    while True:
        time.sleep(0.1)
        late = time.monotonic() - processor.last
        if late > 0.1:
            print(f"processing hung for {late:.2f} s after {processor.loops} loops", flush=True)
        if processor.loops == 2:
            at("main")


PROGRAMS = {
    "calls-back-from-a-thread": calls_back_from_a_thread,
    "is-told-to-end-twice": is_told_to_end_twice,
    "keeps-its-connections": keeps_its_connections,
    "ends-before-its-executor": ends_before_its_executor,
    "clears-its-event": clears_its_event,
    "loses-its-permits": loses_its_permits,
    "drains-an-idle-client": drains_an_idle_client,
    "hashes-before-it-sends": hashes_before_it_sends,
    "migrates-its-index": migrates_its_index,
    "processing-is-late": processing_is_late,
}

if __name__ == "__main__":
    run(PROGRAMS)
