"""Engines of several processes that hang, and healthy ones, twelfth set: `twelfth_engines.py NAME FOLDER`."""

import fcntl
import itertools
import multiprocessing
import os
import select
import signal
import socket
import struct
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def listener(port=0):
    """Several processes may listen at the same port: the kernel gives each new connection to one of them."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    made.listen()
    return made


class Server:
    """Answers each byte of a connection with one, in an own thread for each connection."""

    def __init__(self, role, listens):
        self.role, self.listens, self.threads = role, listens, []
        self.wakes, self.wake = os.pipe()
        signal.signal(signal.SIGTERM, lambda *_: os.write(self.wake, b"t"))

    def answer(self, connection):
        while byte := connection.recv(1):
            connection.sendall(byte)

    def serve(self):
        """Until it is told to end: then what has been begun goes on to its end, and no more is accepted."""
        ready = select.poll()
        for file in (self.listens, self.wakes):
            ready.register(file, select.POLLIN)
        if self.role == "new":
            at("new")
        while self.wakes not in dict(ready.poll()):
            self.threads.append(threading.Thread(target=self.answer, args=(self.listens.accept()[0],)))
            self.threads[-1].start()
        at(self.role)
        for one in self.threads:
            one.join()


def serve(role, listens):
    Server(role, listens).serve()


def asks(connection):
    connection.sendall(b"?")
    connection.recv(1)


def clients_of(port, old, connected):
    """One connection is kept, as connections are, and each further one is for one request."""
    kept = socket.create_connection(("127.0.0.1", port))
    asks(kept)
    connected.set()
    wait_for_role("new")
    wait_for_role("old")
    at("client")
    while True:
        with socket.create_connection(("127.0.0.1", port)) as made:
            asks(made)
        asks(kept)


def old_listener_drains():
    """A new server has been started beside the old one, which is told to end. It accepts nothing more and has its
    socket open still, so that the kernel goes on to give it connections; it waits for those that it has to end."""
    listens, connected = listener(), FORK.Event()
    port = listens.getsockname()[1]
    old = FORK.Process(target=serve, args=("old", listens))
    old.start()
    listens.close()
    child_of(clients_of, port, old, connected)
    connected.wait()
    child_of(serve, "new", listener(port))
    wait_for_role("new")
    os.kill(old.pid, signal.SIGTERM)
    at("main")
    old.join()


HEAD = struct.Struct("!I")


class Messages:
    """Messages with their length before them, from a connection that does not block."""

    def __init__(self, connection):
        self.connection, self.rest = connection, b""
        connection.setblocking(False)

    def read(self):
        """What has come, at most 4096 bytes, as whole messages."""
        self.rest += self.connection.recv(4096)
        while len(self.rest) >= HEAD.size:
            end = HEAD.size + HEAD.unpack_from(self.rest)[0]
            if len(self.rest) < end:
                return
            yield self.rest[HEAD.size : end]
            self.rest = self.rest[end:]

    def read_to_end(self):
        while True:
            try:
                yield from self.read()
            except BlockingIOError:
                return


def engine_loop(connection, read, seconds):
    """The poll tells of a connection when something has come, and not again as long as nothing more does."""
    messages, poll, answered = Messages(connection), select.epoll(), 0
    poll.register(connection, select.EPOLLIN | select.EPOLLET)
    while poll.poll():
        for prompt in read(messages):
            work_for(seconds)
            connection.sendall(HEAD.pack(len(prompt)))
            answered += 1
            if answered == 4:
                at("engine")


def prompts(read, seconds):
    """The front end: a prompt, and the engine's answer. The fifth one is long."""
    ours, theirs = socket.socketpair()
    child_of(engine_loop, theirs, read, seconds)
    for number in itertools.count():
        if number == 4:
            wait_for_role("engine")
            at("main")
        prompt = b"t" * (20_000 if number == 4 else 200)
        ours.sendall(HEAD.pack(len(prompt)) + prompt)
        ours.recv(HEAD.size, socket.MSG_WAITALL)


def edge_read_once():
    """The engine reads once when the poll tells it that something has come: the rest of the long prompt stays."""
    prompts(Messages.read, 0.01)


def edge_read_to_end():
    """Healthy: the engine reads until nothing is left, and needs 1.2 seconds for each prompt."""
    prompts(Messages.read_to_end, 1.2)


def work_at_signal(tasks, answers):
    """A worker with nothing to do, which a signal tells that a task is there."""
    signal.signal(signal.SIGUSR1, lambda *_: answers.send(tasks.recv()))
    at("worker")
    while True:
        signal.pause()


def mask_inherited():
    """The engine does not want to be interrupted while it starts its workers, and keeps signals away until then. The
    worker has inherited that."""
    (tasks, put), (get, answers) = FORK.Pipe(duplex=False), FORK.Pipe(duplex=False)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    worker = child_of(work_at_signal, tasks, answers)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    wait_for_role("worker")
    time.sleep(0.1)
    put.send("a prompt")
    os.kill(worker.pid, signal.SIGUSR1)
    at("main")
    get.recv()


def lock_of(name):
    file = open(in_folder(name), "w")  # noqa: SIM115 - closed to let go
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def wait_for_orders(orders):
    at("worker")
    orders.recv()


def lock_inherited():
    """A worker is forked while the lock of the model's cache is there. It has the lock's file as well, and by that the
    lock, also when the engine has closed it and wants it again."""
    orders, order = FORK.Pipe(duplex=False)
    with lock_of("model.lock"):
        child_of(wait_for_orders, orders)
    wait_for_role("worker")
    at("main")
    lock_of("model.lock").close()
    order.send("begin")


def lock_until_worker_ends():
    """Healthy: each worker has the lock as long as it computes, which takes 1.5 seconds, and the engine wants it again
    for the next one."""
    for number in itertools.count():
        with lock_of("model.lock"):
            worker = child_of(work_for, 1.5)
        if number == 1:
            at("main")
        lock_of("model.lock").close()
        worker.join()


PROGRAMS = {
    "old-listener-drains": old_listener_drains,
    "edge-read-once": edge_read_once,
    "edge-read-to-end": edge_read_to_end,
    "mask-inherited": mask_inherited,
    "lock-inherited": lock_inherited,
    "lock-until-worker-ends": lock_until_worker_ends,
}

if __name__ == "__main__":
    run(PROGRAMS)
