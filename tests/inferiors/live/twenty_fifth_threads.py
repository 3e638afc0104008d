"""Engines of one process that hang, and healthy ones, twenty-fifth set: `twenty_fifth_threads.py NAME FOLDER`."""

import ctypes
import http.server
import os
import queue
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for
from tests.inferiors.live.twenty_fifth_extension import extension


class LlamaProxy:
    """One model. A request has its lock from before its first word until after the last."""

    def __init__(self):
        self.lock = threading.Lock()

    def acquire(self):
        self.lock.acquire()
        return self

    def release(self):
        self.lock.release()

    def create_completion(self, prompt):
        work_for(0.05)
        return f"{prompt} and so on"


class Application:
    """Its calls that could wait go to a few threads."""

    THREADS = 4

    def __init__(self, loop):
        from concurrent.futures import ThreadPoolExecutor

        self.loop, self.pool = loop, ThreadPoolExecutor(self.THREADS)
        self.proxy, self.arrived = LlamaProxy(), 0

    def in_thread(self, call, *arguments):
        return self.loop.run_in_executor(self.pool, call, *arguments)

    async def body_of(self, number):
        """The first client sends its prompt when the others have come."""
        import asyncio

        while number == 0 and self.arrived <= self.THREADS:
            await asyncio.sleep(0.01)
        return f"prompt {number}"

    async def complete(self, number):
        self.arrived += 1
        acquired = self.in_thread(self.proxy.acquire)
        proxy = await acquired
        try:
            prompt = await self.body_of(number)
            if number == 0:
                at("main")
            return await self.in_thread(proxy.create_completion, prompt)
        finally:
            await self.in_thread(proxy.release)


async def serve_completions():
    import asyncio

    application = Application(asyncio.get_running_loop())
    requests = []
    for number in range(8):
        requests.append(asyncio.create_task(application.complete(number)))
        while number == 0 and not application.proxy.lock.locked():
            await asyncio.sleep(0.01)
    await asyncio.gather(*requests)


def completes_many_requests():
    """As abetlen/llama-cpp-python#1798: each request waits for the model in a thread of the application. There are
    more requests than threads, and the one that has the model needs a thread to compute in."""
    import asyncio

    asyncio.run(serve_completions())


class AsyncioManager:
    """A loop in a thread of its own, which does the work of a library. Callers wait for it."""

    def __init__(self):
        import asyncio

        self.loop = asyncio.new_event_loop()
        thread(self.loop.run_forever)

    def run(self, coroutine):
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()


class Run:
    """What is logged goes to a service in the order of its steps."""

    def __init__(self, manager):
        self.manager, self.lock, self.step, self.sent = manager, threading.Lock(), 0, []

    async def publish(self, record):
        self.sent.append(record)

    async def flush(self, started, publishing):
        started.set()
        publishing.wait()
        with self.lock:
            last = self.step
        await self.publish(("flush", last))

    def log(self, values, publishing=None):
        with self.lock:
            self.step += 1
            if publishing:
                publishing.set()
                at("main")
            self.manager.run(self.publish((self.step, values)))


def logs_from_the_actor():
    """As ServiceNow/Fast-LLM#548: the library of the logs works in a loop in a thread. Who logs has the lock of the run
    and waits for the loop; the loop is in something that another thread wanted, and that takes the lock."""
    manager = AsyncioManager()
    experiment = Run(manager)
    for number in range(98):
        experiment.log({"reward": number})
    started, publishing = threading.Event(), threading.Event()
    thread(manager.run, experiment.flush(started, publishing))
    started.wait()
    experiment.log({"reward": 98}, publishing)


CONNECTED = ctypes.CFUNCTYPE(None, ctypes.c_int)


class YMQ:
    """Sockets whose loops are threads of a library in C++."""

    def __init__(self, loader=ctypes.CDLL, count=2):
        self.library = extension(loader)
        self.library.io_context_new.restype = ctypes.c_void_p
        for name in ("io_context_connect", "io_context_free"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p]
        self.library.io_context_connect.argtypes += [ctypes.c_int, CONNECTED]
        self.context = self.library.io_context_new(count)
        self.connected, self.sockets = CONNECTED(self.on_connected), []

    def on_connected(self, number):
        self.sockets.append(number)

    def connect(self, number):
        self.library.io_context_connect(self.context, number, self.connected)

    def close(self):
        self.library.io_context_free(self.context)


def interrupted_while_starting():
    """As finos/opengris-scaler#984: a context of sockets is freed while one of them connects. Who frees it has the lock
    of the interpreter and joins the loops, one of which wants to call Python."""
    first = YMQ()
    first.connect(0)
    first.close()
    second = YMQ(ctypes.PyDLL)
    at("main")
    second.connect(1)
    second.close()


class PeriodicThreads:
    """They are begun again in a forked process, and that is logged."""

    def __init__(self):
        self.log = None
        os.register_at_fork(after_in_child=self.restart)

    def restart(self):
        if self.log:
            at("child")
            self.log.info("periodic threads are begun again")


class SlowStream:
    """Of a collector of logs that is behind at times."""

    def __init__(self):
        self.behind = threading.Event()

    def write(self, text):
        if "long" in text:
            self.behind.set()
            work_for(3)

    def flush(self):
        pass


def handle_request(results):
    results.put(os.getpid())


def forks_for_a_request():
    """As DataDog/dd-trace-py#18900: a process is forked while another thread writes to the log. In the child, before
    the fork returns, threads are begun again, and a word about it goes to the log."""
    periodic = PeriodicThreads()
    import logging
    import multiprocessing

    stream = SlowStream()
    handler = logging.StreamHandler(stream)
    log = logging.getLogger("tracer")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.info("begun")
    periodic.log = log
    thread(log.info, "a long report on what was traced")
    stream.behind.wait()
    results = multiprocessing.get_context("fork").SimpleQueue()
    child = child_of(handle_request, results)
    wait_for_role("child")
    at("main")
    results.get()
    child.join()


class Streams(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404)
        self.end_headers()

    def log_message(self, *words):
        pass


def compress_files(jobs):
    while True:
        jobs.get()
        work_for(0.05)


def serves_on_a_port():
    """Healthy, as scosman/zipstreamer#34: a server says that it starts on a port, and nothing after that, as nobody has
    asked it for anything."""
    jobs = queue.Queue()
    for _ in range(3):
        thread(compress_files, jobs)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Streams)
    print(f"server starting on port {server.server_port}", flush=True)
    at("main")
    server.serve_forever()


def write_experts(path, experts):
    import torch

    torch.save({f"layers.25.experts.{number}.w3.weight": torch.ones(256, 512) for number in range(experts)}, path)


def loads_experts():
    """Healthy, as sgl-project/sglang#122: the weights of a model with many experts are loaded, one small matrix after
    the other, for a long time."""
    import torch

    torch.set_num_threads(1)
    write_experts(in_folder("experts.pt"), 32)
    parameters = {}
    for layer in range(1_000_000):
        weights = torch.load(in_folder("experts.pt"))
        for name, weight in weights.items():
            parameters[name] = weight.to(torch.float16).t().contiguous()
            print(f"Loading model.{layer}.{name}", flush=True)
            time.sleep(0.02)  # from a disk that many read
            if layer == 0 and len(parameters) == 8:
                at("main")


PROGRAMS = {
    "completes-many-requests": completes_many_requests,
    "logs-from-the-actor": logs_from_the_actor,
    "interrupted-while-starting": interrupted_while_starting,
    "forks-for-a-request": forks_for_a_request,
    "serves-on-a-port": serves_on_a_port,
    "loads-experts": loads_experts,
}

if __name__ == "__main__":
    run(PROGRAMS)
