"""Engines of one process that hang, twenty-first set: `twenty_first_threads.py NAME FOLDER`."""

import asyncio
import collections
import ctypes
import os
import signal
import threading
import time

from tests.inferiors.live.place import LONG, at, in_folder, run, work_for
from tests.inferiors.live.twenty_first_extension import extension


def is_counting(frame):
    """Whether the counters are locked where this is called from; there is one lock for those of all processes."""
    while frame:
        lock = frame.f_locals.get("lock")
        if frame.f_code.co_filename.endswith("values.py") and lock and lock.locked():
            return True
        frame = frame.f_back
    return False


class Arbiter:
    """Looks after workers, as gunicorn does. What it logs goes to an error service too, and requests are counted."""

    def __init__(self):
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = in_folder("metrics")
        os.mkdir(in_folder("metrics"))
        import prometheus_client

        self.requests = prometheus_client.Counter("sentry_requests", "Requests to the error service", ["outcome"])
        self.workers = set()
        signal.signal(signal.SIGCHLD, self.reap)

    def log_error(self, outcome):
        self.requests.labels(outcome).inc()

    def reap(self, number, frame):
        if is_counting(frame):
            at("main")
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self.workers.discard(pid)
            self.log_error("sent")

    def start_worker(self):
        pid = os.fork()
        if pid == 0:
            time.sleep(0.02)
            os._exit(3)
        self.workers.add(pid)

    def run(self):
        while True:
            if len(self.workers) < 4:
                self.start_worker()
            for _ in range(2000):  # a worker that does not answer
                self.log_error("sent")


def counts_ended_workers():
    """As canonical-ols/talisker#610: the main process logs an error, which is counted with a lock. In the midst of that
    a worker ends; the handler of the signal logs an error as well, and wants the lock."""
    Arbiter().run()


class BatchProcessor:
    """Spans go to the collector in batches, by a task of the loop."""

    def __init__(self):
        self.loop, self.spans, self.wanted = asyncio.get_running_loop(), collections.deque(), asyncio.Event()
        self.flushes, self.sent = [], 0
        self.task = self.loop.create_task(self.work())

    def on_end(self, span):
        self.spans.append(span)
        if len(self.spans) >= 8:
            self.wanted.set()

    async def export(self):
        while self.spans:
            batch = [self.spans.popleft() for _ in range(min(8, len(self.spans)))]
            await asyncio.sleep(0.01)  # the request to the collector
            self.sent += len(batch)

    async def work(self):
        while True:
            await self.wanted.wait()
            self.wanted.clear()
            await self.export()
            while self.flushes:
                self.flushes.pop().set()

    def force_flush(self):
        flushed = threading.Event()
        self.flushes.append(flushed)
        self.loop.call_soon_threadsafe(self.wanted.set)
        flushed.wait()


class Provider:
    def __init__(self):
        self.processor = BatchProcessor()

    def span(self, name):
        self.processor.on_end({"name": name, "end": time.time_ns()})

    def shut_down(self):
        self.processor.force_flush()


async def serve_and_trace():
    provider = Provider()
    for number in range(30):
        provider.span(f"request {number}")
        await asyncio.sleep(0.005)
    print(provider.processor.sent, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, provider.processor.force_flush)
    provider.span("shutdown")
    at("main")
    provider.shut_down()


def spans_flushed_from_the_loop():
    """As open-telemetry/opentelemetry-rust#3176: the runtime has one thread, and spans are sent by a task on it. A
    flush is called in another task of this thread, and blocks it until they are sent."""
    asyncio.run(serve_and_trace())


HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_long)


class Blocks:
    """Of a cache of keys and values. A transfer of one is recorded by an event, which goes away with the block."""

    def __init__(self):
        self.device, self.object = extension(), extension(ctypes.PyDLL)
        self.finished = []
        self.function = HOST_FUNCTION(self.finished.append)

    def store(self, number, microseconds):
        event = self.device.event_create()
        self.device.stream_copy(microseconds)
        self.device.stream_host_function(self.function, number)
        self.device.event_record(event)
        return event

    def release(self, event):
        self.object.event_destroy(event)  # as the destructor of a tensor does it


def event_of_a_freed_block():
    """As LMCache/LMCache#3362: when an event is destroyed, the runtime first waits until all streams have done what is
    left. The lock of the interpreter is kept over that, and a stream has a function in Python to call."""
    blocks = Blocks()
    for number in range(3):
        event = blocks.store(number, 1000)
        while len(blocks.finished) <= number:
            time.sleep(0.01)
        blocks.release(event)
    events = [blocks.store(number, 200_000) for number in range(2)]
    at("main")
    for event in events:
        blocks.release(event)


class Launcher:
    """Has the store of a job, and starts its workers."""

    def __init__(self, port, workers):
        self.port, self.workers, self.started = port, workers, []

    def create_store(self):
        import torch.distributed as dist

        return dist.TCPStore("127.0.0.1", self.port, self.workers + 1, True, LONG, wait_for_workers=True)

    def start_worker(self, rank):
        pid = os.fork()
        if pid == 0:
            import torch.distributed as dist

            store = dist.TCPStore("127.0.0.1", self.port, self.workers + 1, False, LONG)
            store.set(f"ready/{rank}", "1")
            os._exit(0)
        self.started.append(pid)

    def launch(self):
        import torch.distributed  # noqa: F401 - takes long, and is no part of what it waits for

        at("main")
        store = self.create_store()
        for rank in range(self.workers):
            self.start_worker(rank)
        store.wait([f"ready/{rank}" for rank in range(self.workers)])


def store_before_its_workers():
    """As pytorch/pytorch#30354: the store is made in the main thread, and its constructor returns when all workers have
    joined it. They are started on the lines after it."""
    from tests.inferiors.torch_job import free_port

    Launcher(free_port(), 4).launch()


def compile_extension(folder):
    """As torch does it: who makes the file compiles; the others wait until it is gone."""
    from torch.utils.file_baton import FileBaton

    baton = FileBaton(os.path.join(folder, "lock"))
    if baton.try_acquire():
        try:
            print(f"building in {folder}", flush=True)
            work_for(30)
            open(os.path.join(folder, "aten_op_executor.so"), "w").close()
        finally:
            baton.release()
    else:
        at("main")
        baton.wait()


def build_and_be_interrupted(folder):
    pid = os.fork()
    if pid == 0:
        compile_extension(folder)
        os._exit(0)
    while not os.path.exists(os.path.join(folder, "lock")):
        time.sleep(0.02)
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def extension_built_again():
    """As microsoft/onnxruntime#7740: the extensions of a module are built when it is first used, and that was broken
    off. The file that says that someone builds is still there, and the next run waits for its end."""
    folder = in_folder("torch_inline_extensions")
    os.mkdir(folder)
    build_and_be_interrupted(folder)
    compile_extension(folder)


PROGRAMS = {
    "counts-ended-workers": counts_ended_workers,
    "spans-flushed-from-the-loop": spans_flushed_from_the_loop,
    "event-of-a-freed-block": event_of_a_freed_block,
    "store-before-its-workers": store_before_its_workers,
    "extension-built-again": extension_built_again,
}

if __name__ == "__main__":
    run(PROGRAMS)
