"""Engines of one process with threads that hang, and a healthy twin, sixth set: `sixth_threads.py NAME FOLDER`."""

import atexit
import importlib
import json
import os
import queue
import sys
import threading
import time

from tests.inferiors.live.place import at, run, thread, work_for


class Blocks:
    """The blocks of a cache, which requests take and give back."""

    def __init__(self, count):
        self.free, self.changed = count, threading.Condition()

    def take(self, count):
        with self.changed:
            self.changed.wait_for(lambda: self.free >= count)
            self.free -= count

    def give(self, count):
        with self.changed:
            self.free += count
            self.changed.notify_all()


def blocks_held_by_both():
    """Two requests take blocks for the prefix that they load, and both need more for the rest than are left."""
    blocks, done = Blocks(1000), queue.Queue()
    loaded = threading.Barrier(2)  # both loads end in the same step

    def request(name):
        blocks.take(400)
        loaded.wait()
        blocks.take(350)
        work_for(0.01)
        blocks.give(750)
        done.put(name)

    for name in ("first", "second"):
        thread(request, name)
    at("main")
    for _ in range(2):
        done.get()


def blocks_come_back():
    """The twin: each request takes all its blocks at once; most of the six wait for those of the others."""
    blocks, done = Blocks(1000), queue.Queue()

    def request(name):
        while True:
            blocks.take(450)
            work_for(0.02)
            blocks.give(450)
            done.put(name)

    for number in range(6):
        thread(request, number)
    at("main")
    while True:
        done.get()


class Exporter:
    """Metrics are written by a thread; the program does not end before all are written."""

    def __init__(self):
        self.records = queue.Queue()
        thread(self.export)
        atexit.register(self.records.join)

    def export(self):
        while True:
            json.dumps(self.records.get(), allow_nan=False)
            self.records.task_done()


def metrics_at_exit():
    """The mean of no requests is not a number, which ends the exporter's thread; at exit two records are left."""
    exporter = Exporter()
    for mean in (1.5, float("nan"), 2.5):
        exporter.records.put({"mean latency": mean})
    at("main")


OPERATORS = """
from tests.inferiors.live.place import work_for
import __main__
work_for(1.0)  # builds its tables
__main__.REGISTRY.add("quantized")
"""


class Registry:
    """Operators by name; one that is not known may come with its module."""

    def __init__(self):
        self.lock, self.names = threading.Lock(), set()

    def add(self, name):
        with self.lock:
            self.names.add(name)

    def find(self, name):
        with self.lock:
            if name not in self.names:
                importlib.import_module(f"{name}_operators")
            return name


REGISTRY = Registry()


def registry_and_import():
    """A thread imports a module that registers its operator; the main thread wants the operator meanwhile, and imports
    the same module under the registry's lock."""
    with open(os.path.join(sys.argv[2], "quantized_operators.py"), "w") as file:
        file.write(OPERATORS)
    sys.path.insert(0, sys.argv[2])
    thread(importlib.import_module, "quantized_operators")
    while "quantized_operators" not in sys.modules:
        time.sleep(0.01)
    at("main")
    REGISTRY.find("quantized")


PROGRAMS = {
    "blocks-held-by-both": blocks_held_by_both,
    "blocks-come-back": blocks_come_back,
    "metrics-at-exit": metrics_at_exit,
    "registry-and-import": registry_and_import,
}

if __name__ == "__main__":
    run(PROGRAMS)
