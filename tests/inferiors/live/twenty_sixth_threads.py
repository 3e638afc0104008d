"""Engines of one process that hang, and healthy ones, twenty-sixth set: `twenty_sixth_threads.py NAME FOLDER`."""

import asyncio
import concurrent.futures
import ctypes
import hashlib
import http.client
import http.server
import json
import os
import signal
import threading
import time

from tests.inferiors.live.place import at, in_folder, run, thread, work_for
from tests.inferiors.live.twenty_sixth_extension import extension


class AsyncToSync:
    """Makes a function of a coroutine function, for threads that a loop has begun. The coroutine runs in that loop."""

    threads = threading.local()

    def __init__(self, awaitable):
        self.awaitable, self.loop = awaitable, getattr(self.threads, "main_loop", None)

    def __call__(self, *arguments):
        if self.loop is None or self.loop.is_closed():
            return asyncio.run(self.awaitable(*arguments))
        return asyncio.run_coroutine_threadsafe(self.awaitable(*arguments), self.loop).result()


async def sync_to_async(function, *arguments):
    loop = asyncio.get_running_loop()

    def work():
        AsyncToSync.threads.main_loop = loop
        return function(*arguments)

    return await loop.run_in_executor(None, work)


async def find_text(number):
    await asyncio.sleep(0.01)
    return f"text {number}"


class Views:
    """Functions that wait, called in threads of the loop."""

    def __init__(self, loop):
        self.loop, self.found, self.finished, self.later = loop, [], threading.Event(), None

    def show(self, number):
        self.found.append(AsyncToSync(find_text)(number))

    def show_later(self, number):
        while self.loop.is_running():
            time.sleep(0.01)
        self.show(number)
        self.finished.set()

    async def launch(self):
        await sync_to_async(self.show, 0)
        self.later = asyncio.ensure_future(sync_to_async(self.show_later, 1))
        await asyncio.sleep(0.05)


def worker_outlives_its_loop():
    """As django/asgiref#562: a thread that a loop has begun calls a coroutine, which is given to that loop. The loop
    has stopped by then, and is not closed; the main thread waits for the other one to finish."""
    loop = asyncio.new_event_loop()
    views = Views(loop)
    loop.run_until_complete(views.launch())
    at("main")
    views.finished.wait()


class WriteBuffer:
    """Of records for a file. What is left in it is written when the process is told to end."""

    def __init__(self, path):
        self.lock, self.path, self.records = threading.Lock(), path, []
        self.encoding = threading.Event()
        signal.signal(signal.SIGTERM, self.on_term)

    def append(self, record):
        with self.lock:
            self.records.append(self.encode(record))
            if len(self.records) == 16:
                self.write()

    def encode(self, record):
        if record["tokens"] > 1000:
            self.encoding.set()
            work_for(5)
        return json.dumps(record)

    def write(self):
        with open(self.path, "a") as file:
            file.write("\n".join(self.records) + "\n")
        self.records.clear()

    def on_term(self, number, frame):
        at("main")
        with self.lock:
            self.write()
        os._exit(0)


def stop_when(encoding):
    encoding.wait()
    os.kill(os.getpid(), signal.SIGTERM)


def flushes_when_told_to_end():
    """As rajfirke/provena#42: a handler of SIGTERM takes the lock of a buffer. The signal came while the main thread
    appended to the buffer, and the handler waits for the thread that it interrupted."""
    buffer = WriteBuffer(in_folder("records.jsonl"))
    thread(stop_when, buffer.encoding)
    for number in range(20):
        buffer.append({"request": number, "tokens": 20 * number})
    buffer.append({"request": 20, "tokens": 4096})


NUMBERED = ctypes.CFUNCTYPE(None, ctypes.c_int)


class LiveCall:
    """Its media are in threads of a library in C++, which call Python for each frame and each line of the log."""

    def __init__(self):
        self.library = extension(ctypes.PyDLL)
        self.library.call_new.restype = ctypes.c_void_p
        self.frames, self.lines = [], []
        self.calls = NUMBERED(self.frames.append), NUMBERED(self.lines.append)
        self.call = ctypes.c_void_p(self.library.call_new(*self.calls))

    def mute(self, muted):
        self.library.call_mute(self.call, int(muted))


def beside_a_live_call():
    """As pytgcalls/ntgcalls#62: a thread of the media has the lock of the call and wants that of the interpreter, to
    call Python. The main thread has the latter and wants the former, and a thread of the log waits as well."""
    call = LiveCall()
    while len(call.frames) < 5:
        with open(in_folder("recording"), "ab") as file:
            file.write(bytes(1024))
        time.sleep(0.01)
    at("main")
    call.mute(True)


class Agent:
    """Sends messages by a thread in C++. A message keeps its arguments until it is sent."""

    def __init__(self):
        self.library = extension()
        self.library.agent_new.restype = ctypes.c_void_p
        self.agent = ctypes.c_void_p(self.library.agent_new())
        self.delete_now = extension(ctypes.PyDLL).agent_delete

    def send(self, reference):
        self.library.agent_send(self.agent, ctypes.py_object(reference))

    def delete(self):
        self.delete_now(self.agent)


class RemoteReference:
    """To a value that another process has. That process is told when the last one is gone."""

    def __init__(self, agent, number):
        self.agent, self.number = agent, number

    def __del__(self):
        self.agent.delete()


def gives_up_a_reference():
    """As pytorch/pytorch#56786: a reference is an argument of a call, and given up after that. Who gives it up has the
    lock of the interpreter and wants that of a pool; a thread of the pool has it, and wants the interpreter's lock to
    give up what a message has kept."""
    agent, number = Agent(), 0
    at("main")
    while True:
        agent.send([number])
        reference = RemoteReference(agent, number)
        agent.send(str(reference.number))
        del reference
        number += 1


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


class PooledServer(http.server.HTTPServer):
    """Each request is a task of a pool."""

    def __init__(self, address, handler, tasks):
        super().__init__(address, handler)
        self.tasks, self.answered = tasks, 0

    def process_request(self, request, client_address):
        self.tasks.submit(self.answer, request, client_address)

    def answer(self, request, client_address):
        self.finish_request(request, client_address)
        self.shutdown_request(request)
        self.answered += 1


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/health")
    connection.getresponse().read()
    connection.close()


def ask_some(server, count):
    together = threading.Barrier(count)

    def client():
        together.wait()
        ask(server.server_port)

    clients = [thread(client) for _ in range(count)]
    for one in clients:
        one.join()
    while server.answered < count:
        time.sleep(0.01)
    at("main")


def default_tasks_at_rest():
    """Healthy, as aogburn/yatda#20: the threads of a server's default tasks wait for the next task, and are idle, which
    was not seen in a dump of all threads."""
    tasks = concurrent.futures.ThreadPoolExecutor(8, "default task")
    server = PooledServer(("127.0.0.1", 0), Health, tasks)
    thread(ask_some, server, 12)
    server.serve_forever()


def sum_of_file(path, rounds):
    """The disk has the same over and over, and is a slow one."""
    digest = hashlib.sha256()
    for number in range(rounds):
        with open(path, "rb") as file:
            while True:
                block = file.read(1 << 20)
                if not block:
                    break
                digest.update(block)
                time.sleep(0.03)
        if number == 1:
            at("main")
    return digest.hexdigest()


def sums_up_its_model():
    """Healthy, as vladmandic/sdnext#922: a server says that it initializes, and nothing after that for minutes. The
    model is loaded for the first time, and the sum of its file is computed before."""
    with open(in_folder("model.safetensors"), "wb") as file:
        for _ in range(8):
            file.write(os.urandom(1 << 20))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health)
    thread(server.serve_forever)
    print("Initializing middleware", flush=True)
    print(sum_of_file(in_folder("model.safetensors"), 1_000_000), flush=True)


PROGRAMS = {
    "worker-outlives-its-loop": worker_outlives_its_loop,
    "flushes-when-told-to-end": flushes_when_told_to_end,
    "beside-a-live-call": beside_a_live_call,
    "gives-up-a-reference": gives_up_a_reference,
    "default-tasks-at-rest": default_tasks_at_rest,
    "sums-up-its-model": sums_up_its_model,
}

if __name__ == "__main__":
    run(PROGRAMS)
