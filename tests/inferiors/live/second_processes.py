"""Processes of one program that wait for each other for ever, second set: `second_processes.py NAME FOLDER`."""

import asyncio
import fcntl
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import shared_memory
from multiprocessing.managers import SyncManager

from tests.inferiors.live.place import at, run, thread
from tests.inferiors.live.processes import fork, join, place, started, until_waits


def loader_under_lock():
    """The trainer holds the dataset's lock while it waits for a batch; the loader's worker wants the lock."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    lock = fork.Lock()

    class Cached(Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            at("worker")
            with lock:
                return torch.zeros(4)

    loader = iter(DataLoader(Cached(), batch_size=4, num_workers=1, multiprocessing_context="fork"))
    at("main")
    with lock:
        next(loader)


def semaphore_not_given_back():
    """A worker ended between acquire() and release() of a semaphore with one slot."""
    slots = fork.BoundedSemaphore(1)

    def work():
        slots.acquire()
        os._exit(3)

    (one,) = started(work)
    one.join()
    at("main")
    slots.acquire()


def flags_in_shared_memory():
    """Parent and child each poll for the other's flag first."""
    block = shared_memory.SharedMemory(create=True, size=2)
    block.unlink()  # the name is not needed: the child has it by fork

    def child():
        at("child")
        while not block.buf[0]:
            time.sleep(0.01)
        block.buf[1] = 1

    started(child)
    at("main")
    while not block.buf[1]:
        time.sleep(0.01)
    block.buf[0] = 1


READY = fork.Event()


def wait_until_ready():
    READY.wait()


def initializer_waits():
    """The pool's initializer waits for what the parent says after the first result."""
    with fork.Pool(2, wait_until_ready) as pool:
        at("main")
        pool.map(abs, range(4))
        READY.set()


def stopped_manager():
    """The process of a manager was stopped; the parent asks it."""
    manager = SyncManager(ctx=fork)
    manager.start()
    shared = manager.dict()
    server = manager._process.pid
    os.kill(server, signal.SIGSTOP)
    place("manager", server)
    at("main")
    shared["step"] = 1


def both_pipes_full():
    """All goes into cat before anything is read from it."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    place("child", child.pid)
    at("main")
    child.stdin.write(b"x" * (1 << 20))
    child.stdin.close()
    child.stdout.read()


def grandchild_holds_pipe():
    """run(capture_output=True): the script ended, the daemon that it started has its output still."""
    source = f"import subprocess as s; p = s.Popen(['sleep', '86400']); open({os.path.join(sys.argv[2], 'p')!r}, 'w')"
    source += f".write(str(p.pid)); import os; os.rename({os.path.join(sys.argv[2], 'p')!r}, "
    source += f"{os.path.join(sys.argv[2], 'grandchild')!r})"
    at("main")
    subprocess.run([sys.executable, "-S", "-c", source], capture_output=True, check=True)


def event_after_join():
    """The parent joins first and sets the event then."""
    stop = fork.Event()

    def child():
        at("child")
        stop.wait()

    join(started(child))
    stop.set()


def own_copy_of_pipe():
    """The child reads until the end of a pipe whose writing end it has inherited."""
    reading, writing = os.pipe()

    def child():
        at("child")
        with open(reading, "rb") as file:
            file.read()

    (one,) = started(child)
    os.write(writing, b"all there is")
    os.close(writing)
    join([one])


def both_wait_for_greeting():
    """Two nodes with a TCP connection: each reads the other's greeting before it sends its own."""
    server = socket.create_server(("127.0.0.1", 0))

    def greet(connection, role):
        at(role)
        connection.recv(16)
        connection.sendall(b"hello")

    def listen():
        greet(server.accept()[0], "a")

    def connect():
        greet(socket.create_connection(server.getsockname()), "b")

    join(started(listen, connect))


def lock_and_queue():
    """One has the file's lock and waits for the other's message; the other wants the lock before it sends."""
    messages, locked = fork.Queue(), fork.Event()

    def reader():
        with open(os.path.join(sys.argv[2], "index.lock"), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            locked.set()
            at("reader")
            messages.get()

    def writer():
        locked.wait()
        with open(os.path.join(sys.argv[2], "index.lock"), "w") as file:
            at("writer")
            fcntl.flock(file, fcntl.LOCK_EX)
            messages.put("done")

    join(started(reader, writer))


def shared_condition():
    """The child's notify came before the parent's wait."""
    ready = fork.Condition()

    def child():
        with ready:
            ready.notify_all()

    (one,) = started(child)
    one.join()
    at("main")
    with ready:
        ready.wait()


def asyncio_child_full():
    """await child.wait() with a pipe that nobody reads."""

    async def main():
        source = "import sys; sys.stdout.write('x' * (1 << 22))"
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", source, stdout=pipe)
        place("child", child.pid)
        await asyncio.to_thread(until_waits, child.pid)
        at("main")
        await child.wait()

    asyncio.run(main())


def worker_thread_died():
    """The child's reader thread died of a bad message; its main thread waits for a result, the parent for an answer."""
    requests, answers = fork.Queue(), fork.Queue()

    def serve():
        results = queue.Queue()

        def read():
            while True:
                results.put(len(requests.get()))

        threading.excepthook = lambda *_: None
        thread(read)
        at("child")
        while True:
            answers.put(results.get())

    started(serve)
    requests.put(7)
    at("main")
    answers.get()


def lock_in_mapped_file():
    """lockf over two ranges of one file in opposite order would be told by the kernel; flock of two files is not."""
    meet = fork.Barrier(3)

    def take(role, number):
        with open(os.path.join(sys.argv[2], f"shard{number}"), "w") as one:
            fcntl.flock(one, fcntl.LOCK_EX)
            meet.wait()
            at(role)
            with open(os.path.join(sys.argv[2], f"shard{(number + 1) % 3}"), "w") as next_one:
                fcntl.flock(next_one, fcntl.LOCK_EX)

    join(started((take, "a", 0), (take, "b", 1), (take, "c", 2)))


def spawn_context_queue():
    """A coordinator waits for three results of two workers; each sent its one and waits for more work."""
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    work = [spawn.Queue(), spawn.Queue()]
    for number in range(2):
        spawn.Process(target=work_on, args=(number, work[number], results, sys.argv[2]), daemon=True).start()
        work[number].put(number)
    for _ in range(2):
        results.get()
    at("main")
    results.get()


def work_on(number, work, results, folder):
    sys.argv[1:] = ["", folder]
    results.put(work.get())
    at(f"worker{number}")
    work.get()


PROGRAMS = {
    "loader-under-lock": loader_under_lock,
    "semaphore-slot": semaphore_not_given_back,
    "flags": flags_in_shared_memory,
    "initializer-waits": initializer_waits,
    "stopped-manager": stopped_manager,
    "both-pipes-full": both_pipes_full,
    "grandchild": grandchild_holds_pipe,
    "event-after-join": event_after_join,
    "own-copy-of-pipe": own_copy_of_pipe,
    "greeting": both_wait_for_greeting,
    "lock-and-queue": lock_and_queue,
    "shared-condition": shared_condition,
    "asyncio-child-full": asyncio_child_full,
    "reader-thread-died": worker_thread_died,
    "ring-of-file-locks": lock_in_mapped_file,
    "three-of-two": spawn_context_queue,
}

if __name__ == "__main__":
    run(PROGRAMS)
