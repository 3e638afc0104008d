"""Programs of one process that hang, and healthy ones, thirtieth set: `thirtieth_threads.py NAME FOLDER`."""

import asyncio
import ctypes
import gc
import importlib
import importlib.abc
import importlib.machinery
import itertools
import lzma
import os
import random
import socket
import sys
import threading
import time

from tests.inferiors.live.place import at, in_folder, run, thread
from tests.inferiors.live.thirtieth_extension import extension


class Session:
    """Of a user; what it leaves is collected at once."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        gc.collect()


def watch(cache):
    """Says where the cache is slow; it cannot."""
    while True:
        began = time.monotonic()
        time.sleep(0.2)
        if time.monotonic() - began > 5:
            print(f"{cache} is slow", file=sys.stderr, flush=True)


def collects_with_its_lock():
    """As awolverp/cachebox#84: a cache drops a value with its lock, and the finaliser of that collects garbage. The
    collector walks through the cache as well, and wants the lock for that; all others wait for the interpreter."""
    library = extension(ctypes.PyDLL)
    library.newest_type.restype = ctypes.py_object
    cache = library.newest_type()()
    thread(watch, cache)
    gc.collect()
    print(cache.put("no session"), cache.put(Session(1)), flush=True)
    at("main")
    cache.put(Session(2))


class SharedBuffer:
    """What executors have written; a task of its own flushes it."""

    LIMIT = 200

    def __init__(self):
        self.size, self.pending = 0, []

    async def flush(self):
        while self.pending:
            size = self.pending.pop()
            await asyncio.sleep(0.001)  # to the storage
            self.size -= size

    async def write(self, size):
        if self.size > self.LIMIT:
            at("main")
        while self.size > self.LIMIT:
            time.sleep(0.01)
        self.size += size
        self.pending.append(size)
        if len(self.pending) == 1:
            self.flushing = asyncio.create_task(self.flush())


async def execute_plan(buffer):
    for size in (40, 80, 60):
        await buffer.write(size)
        await asyncio.sleep(0.02)
    await asyncio.gather(*(buffer.write(size) for size in (90, 120, 60)))


def waits_without_a_yield():
    """As risingwavelabs/risingwave#3196: who writes into a full buffer waits until there is room, in a loop that does
    not let any other task run. There is one thread, and the task that flushes the buffer is to run in it."""
    asyncio.run(execute_plan(SharedBuffer()))


def answer(database):
    while True:
        connection, _ = database.accept()
        thread(answer_one, connection)


def answer_one(connection):
    with connection.makefile("rwb") as lines:
        for line in lines:
            lines.write(b"done: " + line)
            lines.flush()


def forward(proxy, address):
    while True:
        client, _ = proxy.accept()
        database = socket.create_connection(address)
        thread(copy, client, database)
        thread(copy, database, client)


def copy(source, target):
    while True:
        data = source.recv(4096)
        if not data:
            return
        target.sendall(data)


def selects_through_its_proxy():
    """As pymssql/pymssql#540: the way to the database is a proxy, which is a thread here. The client, in C, lets go of
    the interpreter to execute a statement, but not to select a database; the proxy cannot forward that."""
    database, proxy = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    thread(answer, database)
    thread(forward, proxy, database.getsockname())
    client = extension()
    connection = client.log_in(proxy.getsockname()[1])
    for statement in (b"set names utf8", b"select 1"):
        print(client.execute(connection, statement), flush=True)
    at("main")
    extension(ctypes.PyDLL).execute(connection, b"use requests")


class ImportHooks(importlib.abc.MetaPathFinder):
    """What is to be done when a module has been imported."""

    def __init__(self):
        self.lock, self.hooks, self.asked = threading.RLock(), {}, {}

    def after(self, name, hook):
        with self.lock:
            self.hooks[name] = hook

    def find_spec(self, name, path=None, target=None):
        if name in self.asked:
            self.asked[name].set()
        with self.lock:
            if name not in self.hooks:
                return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = HookedLoader(spec.loader, self)
        return spec

    def loaded(self, module):
        with self.lock:
            hook = self.hooks.pop(module.__name__, None)
            if hook is not None:
                hook(module)


class HookedLoader(importlib.abc.Loader):
    """Loads as another one does, and says so."""

    def __init__(self, loader, hooks):
        self.loader, self.hooks = loader, hooks

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.hooks.loaded(module)


MODELS, FORMULAS = "thirtieth_models", "thirtieth_formulas"


def hooks_after_an_import():
    """As mlflow/mlflow#23466: a hook patches the models when they have been imported, with the lock of all hooks, and
    imports the formulas for that. A thread has their import lock, and asks the hooks for them."""
    for name in (MODELS, FORMULAS):
        with open(in_folder(f"{name}.py"), "w") as file:
            file.write("FITS = True\n")
    sys.path.insert(0, in_folder(""))
    hooks, patching = ImportHooks(), threading.Event()
    asked = hooks.asked[FORMULAS] = threading.Event()

    def patch(module):
        patching.set()
        asked.wait()
        at("main")
        module.formulas = importlib.import_module(FORMULAS)

    def load_beside():
        patching.wait()
        importlib.import_module(FORMULAS)

    hooks.after(MODELS, patch)
    sys.meta_path.insert(0, hooks)
    beside = thread(load_beside)
    importlib.import_module(MODELS)
    beside.join()


def volume(number):
    """Of a backup: some blocks of it are not wanted any more."""
    words = random.Random(number)
    return b"".join(words.randbytes(2000) * 2 for _ in range(200))


def compacts_its_backup():
    """Healthy, as duplicati/duplicati#3084: what is left of many volumes is written into new ones. That takes two days,
    in which the progress does not change."""
    kept = lzma.compress(b"")
    for number in itertools.count():
        blocks = lzma.decompress(kept)[:400_000] + volume(number)
        kept = lzma.compress(blocks, preset=6)
        with open(in_folder("volume"), "wb") as file:
            file.write(kept)
            os.fsync(file.fileno())
        if number == 1:
            at("main")


def loads_tensor_by_tensor():
    """Healthy, as vllm-project/vllm#3182: each tensor of a large model is taken from its file as a whole, converted and
    copied to where it belongs, one after the other. It takes minutes and not seconds."""
    import torch

    torch.set_num_threads(1)
    torch.save({f"layer{number}": torch.randn(512, 512) for number in range(8)}, in_folder("model.pt"))
    weights = {f"layer{number}": torch.empty(512, 512, dtype=torch.bfloat16) for number in range(8)}
    for shard in itertools.count():
        for name, place in weights.items():
            tensor = torch.load(in_folder("model.pt"), weights_only=True)[name]
            place.copy_(tensor.t().contiguous().to(torch.bfloat16))
        if shard == 2:
            at("main")


PROGRAMS = {
    "collects-with-its-lock": collects_with_its_lock,
    "waits-without-a-yield": waits_without_a_yield,
    "selects-through-its-proxy": selects_through_its_proxy,
    "hooks-after-an-import": hooks_after_an_import,
    "compacts-its-backup": compacts_its_backup,
    "loads-tensor-by-tensor": loads_tensor_by_tensor,
}

if __name__ == "__main__":
    run(PROGRAMS)
