"""Services around an engine that hang, and their healthy twins, seventh set: `seventh_services.py NAME FOLDER`."""

import fcntl
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import threading
from multiprocessing import forkserver
from multiprocessing.managers import BaseManager

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.seventh_engines import in_folder, wait_for_role

FORK = multiprocessing.get_context("fork")
SERVER = multiprocessing.get_context("forkserver")
KERNELS = """
import fcntl
with open({path!r}, "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)  # nobody else writes to the cache while its list is read
    NAMES = ["rms_norm", "rotary"]
"""


def serve(answers):
    answers.send("ready")


def starts_under_cache_lock():
    """A worker is started under the lock of the kernel cache. The server that would fork it first imports the module
    of the kernels, which takes the lock as well."""
    with open(in_folder("kernels_of_engine.py"), "w") as file:
        file.write(KERNELS.format(path=in_folder("kernels.lock")))
    os.environ["PYTHONPATH"] += os.pathsep + sys.argv[2]
    SERVER.set_forkserver_preload(["kernels_of_engine"])
    ours, theirs = SERVER.Pipe()
    worker = SERVER.Process(target=serve, args=(theirs,))
    with open(in_folder("kernels.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        forkserver.ensure_running()
        at("server", forkserver._forkserver._forkserver_pid)
        at("main")
        worker.start()
        ours.recv()


def beat():
    """A sign of life for who watches the service."""
    stop, number = threading.Event(), 0
    while not stop.wait(1.0):
        number += 1
        print("alive for", number, "s", flush=True)


def task(seconds, answers):
    work_for(seconds)
    answers.send("done")


def workers_replaced():
    """Healthy: two workers at a time are forked by a server, and each ends after one task, as its memory grows."""
    thread(beat)
    at("main")
    while True:
        started = []
        for seconds in (0.8, 0.3):
            ours, theirs = SERVER.Pipe()
            worker = SERVER.Process(target=task, args=(seconds, theirs))
            worker.start()
            theirs.close()
            started.append((ours, worker))
        for ours, worker in started:
            ours.recv()
            worker.join()


class Registry:
    """Adapters that the engine has loaded, for all processes."""

    def __init__(self):
        self.lock, self.adapters = threading.Lock(), {}

    def has(self, name):
        with self.lock:
            return name in self.adapters

    def load(self, name, catalogue):
        with self.lock:
            self.adapters[name] = catalogue.path(name)


class Catalogue:
    """Where adapters lie; of one that is loaded it is in memory."""

    def __init__(self, registry):
        self.registry = registry

    def path(self, name):
        return f"{'/dev/shm' if self.registry.has(name) else '/models'}/{name}"


class Manager(BaseManager):
    pass


Manager.register("Registry", Registry)
Manager.register("Catalogue", Catalogue)


def registry_asks_itself():
    """Registry and catalogue live in one manager's process: the registry asks the catalogue under its lock, and the
    catalogue asks the registry."""
    with Manager(ctx=FORK) as manager:
        registry = manager.Registry()
        catalogue = manager.Catalogue(registry)
        at("manager", manager._process.pid)
        at("main")
        registry.load("summaries", catalogue)


def database():
    made = sqlite3.connect(in_folder("samples"), timeout=86400.0, isolation_level=None)
    made.execute("CREATE TABLE IF NOT EXISTS samples (id INTEGER PRIMARY KEY, uses INTEGER)")
    return made


def trains(in_transaction):
    """A loader of two workers that take samples from a database, those used least, 64 at a time, and count each use."""
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Samples(IterableDataset):
        def __iter__(self):
            made, number = database(), get_worker_info().id
            if number == 0:  # it is told where the cache of the tokenizer is by the other one
                wait_for_role("worker1")
                at("worker0")
            while True:
                made.execute("BEGIN IMMEDIATE")
                if number == 1:
                    at("worker1")
                rows = made.execute("SELECT id FROM samples ORDER BY uses, id LIMIT 64").fetchall()
                made.executemany("UPDATE samples SET uses = uses + 1 WHERE id = ?", rows)
                if in_transaction:
                    yield from (row[0] for row in rows)
                made.execute("COMMIT")
                if not in_transaction:
                    yield from (row[0] for row in rows)

    database().executemany("INSERT INTO samples VALUES (?, 0)", ((number,) for number in range(512)))
    at("main")
    loader = DataLoader(Samples(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    for number, batch in enumerate(loader):
        print("step", number, int(batch.sum()), flush=True)
        work_for(0.05)


def samples_within_transaction():
    """The samples are handed out before the transaction ends. Worker 1 was first, has handed out as many as the loader
    wants in advance, and is not asked for more before worker 0 has its first batch; worker 0 waits for the database."""
    trains(in_transaction=True)


def samples_after_transaction():
    """The twin: the transaction ends first, and the workers have the database in turns."""
    trains(in_transaction=False)


PROGRAMS = {
    "starts-under-cache-lock": starts_under_cache_lock,
    "workers-replaced": workers_replaced,
    "registry-asks-itself": registry_asks_itself,
    "samples-within-transaction": samples_within_transaction,
    "samples-after-transaction": samples_after_transaction,
}

if __name__ == "__main__":
    tempfile.tempdir = sys.argv[2]  # the sockets of servers go with it
    run(PROGRAMS)
