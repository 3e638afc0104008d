"""Caches, imports and ends of programs that hang, and a healthy twin, fifth set: `fifth_caches.py NAME FOLDER`."""

import http.client
import importlib
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import filelock

from tests.inferiors.live.place import at, in_folder, run, thread, work_for

FORK = multiprocessing.get_context("fork")
FILE = 8 << 20


def compile_kernel(name):
    """Puts a kernel into the cache, under the lock of the cache."""
    at("worker")
    with filelock.FileLock(in_folder("kernels.lock")):
        work_for(0.1)
        return name


def cache_lock_over_compile():
    """The lock is kept while a process of the compile pool builds what is not in the cache, and wants the lock too."""
    with ProcessPoolExecutor(1, mp_context=FORK) as pool, filelock.FileLock(in_folder("kernels.lock")):
        at("main")
        pool.submit(compile_kernel, "rms_norm").result()


def hub(told, pause, stops_after):
    """A server of model files that sends pieces of 64 KiB, so many or without end, with a pause after each."""
    import http.server

    class Files(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(FILE))
            self.end_headers()
            for number in range(FILE >> 16):
                if number == stops_after:
                    at("hub")
                    time.sleep(86400)
                self.wfile.write(bytes(1 << 16))
                time.sleep(pause)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Files)
    told.send(server.server_address)
    server.serve_forever()


def download(address, name):
    """One file of the model, under the lock of its entry in the cache."""
    with filelock.FileLock(in_folder(f"{name}.lock")):
        if os.path.exists(in_folder(name)):
            return
        client = http.client.HTTPConnection(*address)
        client.request("GET", f"/{name}")
        answer = client.getresponse()
        with open(in_folder(f"{name}.incomplete"), "wb") as file:
            while piece := answer.read(1 << 16):
                file.write(piece)
        client.close()
        os.rename(in_folder(f"{name}.incomplete"), in_folder(name))


def downloads(pause, stops_after=None):
    """The hub, and a process that downloads file after file; each file's lock is taken when this returns."""
    ours, theirs = FORK.Pipe()
    FORK.Process(target=hub, args=(theirs, pause, stops_after), daemon=True).start()
    address = ours.recv()

    def each():
        at("downloader")
        for number in range(1 << 20):
            download(address, f"model-{number}")

    FORK.Process(target=each, daemon=True).start()
    while not os.path.exists(in_folder("model-0.incomplete")):
        time.sleep(0.05)
    return address


def download_stalled():
    """Another process of this host downloads the model under its lock, and the hub has stopped to send."""
    address = downloads(0.01, stops_after=20)
    at("main")
    download(address, "model-0")


def download_trickles():
    """The twin: the hub is slow, a file takes some seconds, and comes."""
    address = downloads(0.05)
    at("main")
    for number in range(1 << 20):
        download(address, f"model-{number}")


class Engine:
    """A worker process that ends when it is told; it is told when the engine is thrown away."""

    def __init__(self):
        self.requests = FORK.Queue()
        self.worker = FORK.Process(target=self.work)
        self.worker.start()

    def work(self):
        while (request := self.requests.get()) is not None:
            if request == "last":
                at("worker")

    def __del__(self):
        self.requests.put(None)
        self.worker.join()


def engine_left_to_exit():
    """The engine lies in a module's variable. At exit Python first joins the processes, then throws variables away."""
    global ENGINE
    ENGINE = Engine()
    for request in ("first", "last"):
        ENGINE.requests.put(request)
    while not os.path.exists(in_folder("worker")):
        time.sleep(0.05)
    at("main")


OPERATORS = """
from tests.inferiors.live.place import work_for
work_for(1.0)  # builds its tables
"""


def run_worker(answers):
    at("worker")
    importlib.import_module("operators_of_engine")
    answers.send("ready")


def import_before_fork():
    """A thread warms up a module that takes a second to import; meanwhile the worker is forked, which imports it."""
    with open(in_folder("operators_of_engine.py"), "w") as file:
        file.write(OPERATORS)
    sys.path.insert(0, sys.argv[2])
    warms = thread(importlib.import_module, "operators_of_engine")
    while "operators_of_engine" not in sys.modules:
        time.sleep(0.01)
    ours, theirs = FORK.Pipe()
    FORK.Process(target=run_worker, args=(theirs,), daemon=True).start()
    warms.join()
    at("main")
    ours.recv()


PROGRAMS = {
    "cache-lock-over-compile": cache_lock_over_compile,
    "download-stalled": download_stalled,
    "download-trickles": download_trickles,
    "engine-left-to-exit": engine_left_to_exit,
    "import-before-fork": import_before_fork,
}

if __name__ == "__main__":
    run(PROGRAMS)
