"""One process that waits for itself for ever, and healthy ones, fourth set: `fourth_threads.py NAME FOLDER`."""

import asyncio
import http.client
import http.server
import logging
import logging.handlers
import os
import queue
import signal
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

from tests.inferiors.live.place import at, run, thread, work_for


class Urgent:
    """An entry of the log's queue, which is sorted; the signal comes within the sorting."""

    def __lt__(self, other):
        at("main")
        signal.raise_signal(signal.SIGUSR1)
        return False


def handler_logs_to_queue():
    """A signal's handler logs to a queue while the interrupted code is within the same queue."""
    lines = queue.PriorityQueue()
    log = logging.getLogger("engine")
    log.addHandler(logging.handlers.QueueHandler(lines))
    signal.signal(signal.SIGUSR1, lambda *_: log.warning("state asked for"))
    lines.put(Urgent())
    lines.put(Urgent())


def loop_ends_before_worker():
    """asyncio.run() joins its threads at the end; one waits for an event that is set after asyncio.run()."""
    closed = threading.Event()

    async def main():
        asyncio.get_running_loop().run_in_executor(None, closed.wait)
        at("main")

    asyncio.run(main())
    closed.set()


def slots_lost_by_errors():
    """A request that fails does not give its slot back; after two failures the third request waits."""
    slots = threading.BoundedSemaphore(2)

    def request(text):
        slots.acquire()
        length = len(text.encode())
        slots.release()
        return length

    with ThreadPoolExecutor(2) as pool:
        for bad in (None, 7):
            assert pool.submit(request, bad).exception()
        at("main")
        pool.submit(request, "hello").result()


def loop_compresses_in_thread():
    """Healthy: an event loop that waits for a thread which compresses one large block after the other."""
    block = os.urandom(1 << 16) * 256

    async def main():
        at("main")
        while True:
            await asyncio.to_thread(zlib.compress, block, 9)

    asyncio.run(main())


class Busy(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Busy.asked += 1
        work_for(0.02)
        self.send_response(200 if Busy.asked % 3 == 0 else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def retries_succeed():
    """Healthy: the server refuses twice and answers the third time; the client waits a little longer each time."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Busy)
    thread(server.serve_forever)
    at("main")
    while True:
        for attempt in range(8):
            client = http.client.HTTPConnection(*server.server_address)
            client.request("GET", "/")
            status = client.getresponse().status
            client.close()
            if status == 200:
                break
            time.sleep(0.1 * 2**attempt)


PROGRAMS = {
    "handler-logs-to-queue": handler_logs_to_queue,
    "loop-ends-before-worker": loop_ends_before_worker,
    "slots-lost-by-errors": slots_lost_by_errors,
    "loop-compresses-in-thread": loop_compresses_in_thread,
    "retries-succeed": retries_succeed,
}

if __name__ == "__main__":
    run(PROGRAMS)
