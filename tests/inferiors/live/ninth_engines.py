"""Engines of several processes that hang, and healthy ones, ninth set: `ninth_engines.py NAME FOLDER`."""

import ctypes
import itertools
import mmap
import multiprocessing
import operator
import os
import socket
import sqlite3
import sys
import tempfile
import threading
import time

from tests.inferiors.live.ninth_extension import extension
from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def decode(handles, write):
    """Takes caches, whose memory comes as a handle that it asks the other process for, and says when it is done."""
    at("worker")
    while True:
        handles.get()
        work_for(1.0)
        os.write(write, b"d")


def prefill(wait):
    """Gives caches to another process, by the queue of PyTorch, and waits for each with `wait`."""
    import torch
    import torch.multiprocessing

    torch.set_num_threads(1)
    handles, (read, write) = FORK.SimpleQueue(), os.pipe()
    child_of(decode, handles, write)
    wait_for_role("worker")
    at("main")
    for number in itertools.count():
        handles.put(torch.full((4096,), float(number)))
        wait(read)


def tensor_handle_needs_interpreter():
    """The wait for the answer is in C++ and keeps the interpreter's lock, which the thread needs that gives the handle
    of the cache to the other process."""
    prefill(extension(ctypes.PyDLL).answer_wait)


def tensor_handles_pass():
    """Healthy: the wait gives the interpreter's lock away, and each cache takes a second."""
    prefill(extension().answer_wait)


def follow(steps, done, is_old):
    """A worker, for each step whose number is not an old one."""
    last = 0
    at("worker")
    while True:
        while is_old(steps[0], last):
            time.sleep(0.001)
        last = steps[0]
        done.release()


def follower(is_old):
    """What has a worker make a step, whose number is a byte of shared memory."""
    steps, done = mmap.mmap(-1, 4096), FORK.Semaphore(0)
    child_of(follow, steps, done, is_old)
    wait_for_role("worker")

    def step(number):
        steps[0] = number % 256
        done.acquire()

    return step


def sequence_wraps():
    """After step 255 comes step 0, which the worker takes for an old one."""
    step = follower(operator.le)
    for number in range(1, 257):
        if number == 256:
            at("main")
        step(number)


def scheduler_awaits_client():
    """Healthy: three steps have been made, the worker looks for the next, and a client is still to come."""
    step = follower(operator.eq)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for number in itertools.count(1):
            if number == 4:
                at("main")
            if number > 3:
                server.accept()[0].close()
            step(number)


class Cache:
    """Prompts and their answers in a file, by a connection that all threads share."""

    def __init__(self):
        self.database, self.asked = sqlite3.connect(in_folder("cache.db"), check_same_thread=False), threading.Event()
        self.database.execute("CREATE TABLE answers (prompt, answer)")
        self.database.create_function("packed", 1, self.packed)

    def packed(self, text):
        self.asked.set()
        time.sleep(2.0)
        return text

    def add(self, prompt, answer):
        with self.database:
            self.database.execute("INSERT INTO answers VALUES (?, packed(?))", (prompt, answer))

    def number(self):
        return self.database.execute("SELECT count(*) FROM answers").fetchone()[0]


def fork_while_caching():
    """The worker is forked while a thread adds an answer, and uses the connection that it has got with it."""
    cache = Cache()
    ours, theirs = FORK.Pipe()
    adds = thread(cache.add, "2 + 2", "4")
    cache.asked.wait()
    worker = child_of(lambda: theirs.send(cache.number()))
    at("worker", worker.pid)
    adds.join()
    at("main")
    ours.recv()


PROGRAMS = {
    "tensor-handle-needs-interpreter": tensor_handle_needs_interpreter,
    "tensor-handles-pass": tensor_handles_pass,
    "sequence-wraps": sequence_wraps,
    "scheduler-awaits-client": scheduler_awaits_client,
    "fork-while-caching": fork_while_caching,
}

if __name__ == "__main__":
    tempfile.tempdir = sys.argv[2]  # the sockets of handles go with it
    run(PROGRAMS)
