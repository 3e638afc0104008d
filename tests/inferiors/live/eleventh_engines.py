"""Engines of several processes that hang, and a healthy one, eleventh set: `eleventh_engines.py NAME FOLDER`."""

import fcntl
import itertools
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for
from tests.inferiors.live.processes import until_waits

FORK = multiprocessing.get_context("fork")
SLOTS = 16


def work_at_signal(bell, requests, answers):
    """The worker: for each signal a request, its answer, and then what can be done later."""
    at("worker")
    for number in itertools.count():
        os.eventfd_read(bell)
        answers.send(requests[number % SLOTS] + 1)
        work_for(0.4)


def takes_both_signals():
    """The fourth batch has two requests. The worker still tidies up when both are signalled, by an eventfd, and reads
    both signals as one."""
    bell, requests = os.eventfd(0), FORK.RawArray("q", SLOTS)
    ours, theirs = FORK.Pipe()
    child_of(work_at_signal, bell, requests, theirs)
    wait_for_role("worker")
    made = itertools.count()
    for size in (1, 1, 1, 2):
        for _ in range(size):
            requests[next(made) % SLOTS] = size
            os.eventfd_write(bell, 1)
        if size == 2:
            at("main")
        for _ in range(size):
            ours.recv()


def load_weights(orders):
    """The worker, which the engine gives orders by a pipe."""
    at("worker")
    while True:
        orders.recv()


def engine_with_worker(ports):
    """The engine listens, starts its worker and serves. A long prompt is more than it can take."""
    listens = socket.create_server(("127.0.0.1", 0))
    _ours, theirs = FORK.Pipe()
    child_of(load_weights, theirs)
    wait_for_role("worker")
    ports.send(listens.getsockname()[1])
    while True:
        client, _ = listens.accept()
        if len(client.recv(4096)) > 1000:
            os.kill(os.getpid(), signal.SIGKILL)
        client.sendall(b"tokens")
        client.close()


def ask(port, prompt):
    """What is answered; nothing if the connection ends."""
    with socket.create_connection(("127.0.0.1", port)) as made:
        made.sendall(prompt)
        try:
            return made.recv(4096)
        except ConnectionError:
            return b""


def listener_kept_by_worker():
    """The engine is killed, and its worker stays, with a copy of the socket that listens: the client connects again,
    and nobody accepts."""
    ours, theirs = FORK.Pipe()
    FORK.Process(target=engine_with_worker, args=(theirs,)).start()
    port = ours.recv()
    ask(port, b"a short prompt")
    if not ask(port, b"p" * 2000):
        at("main")
        ask(port, b"p" * 2000)


def count_tokens(text):
    return len(text.split())


def tokenizes(more, is_last):
    """By a pool, in the order in which texts come, until it is enough."""
    texts = ("a short text", "another short text", "the last one")

    def source():
        for number in itertools.count():
            yield texts[number] if number < len(texts) else more()

    with FORK.Pool(2) as pool:
        for number, _ in enumerate(pool.imap(count_tokens, source())):
            if is_last(number):
                at("main")
                break


def pool_fed_from_quiet_source():
    """The three texts that were wanted are there, and the pool ends. Its thread that hands out is ahead, and waits
    for a fourth text; the end of the pool waits for the thread."""
    tokenizes(queue.Queue().get, lambda number: number == 2)


registry = threading.Lock()


def register(name):
    with registry:
        return f"{name} {os.getpid()}"


def read_plugins(begun):
    """With the lock of the registry, for a while."""
    with registry:
        begun.set()
        time.sleep(1.5)


def limit_and_register():
    """Runs in the child between fork and exec."""
    os.nice(1)
    at("child")
    register("converter")


def hook_before_exec_takes_lock():
    """A converter is started while a thread has the lock of the registry. What is to run in the child before its
    program wants that lock, and has a copy that nobody gives back; the parent waits for the program to begin."""
    begun = threading.Event()
    thread(read_plugins, begun)
    begun.wait()
    at("main")
    subprocess.run([sys.executable, "-c", "pass"], preexec_fn=limit_and_register, check=True)


def serve_when_loaded(event, role):
    at(role)
    event.wait()
    work_for(0.1)


def event_waiter_killed():
    """One of two workers is killed while it waits for the event. Who sets the event waits until both have woken up."""
    event = FORK.Event()
    first = child_of(serve_when_loaded, event, "killed")
    second = child_of(serve_when_loaded, event, "worker")
    for role, one in (("killed", first), ("worker", second)):
        wait_for_role(role)
        until_waits(one.pid)
    first.kill()
    first.join()
    at("main")
    event.set()
    second.join()


def lead(role, requests, before):
    """The process that has the lock answers."""
    with open(in_folder("leader.lock"), "w") as file:
        before(role)
        fcntl.flock(file, fcntl.LOCK_EX)
        at(role)
        while True:
            number = requests.recv()
            work_for(0.8)
            requests.send(number)


def standby_waits_for_lock():
    """Healthy: one of two processes leads, and the other one waits for the lock, should the leader end."""
    ours, theirs = FORK.Pipe()
    child_of(lead, "leader", theirs, lambda _: None)
    wait_for_role("leader")
    child_of(lead, "standby", theirs, at)
    at("main")
    for number in itertools.count():
        ours.send(number)
        ours.recv()


PROGRAMS = {
    "takes-both-signals": takes_both_signals,
    "listener-kept-by-worker": listener_kept_by_worker,
    "pool-fed-from-quiet-source": pool_fed_from_quiet_source,
    "hook-before-exec-takes-lock": hook_before_exec_takes_lock,
    "event-waiter-killed": event_waiter_killed,
    "standby-waits-for-lock": standby_waits_for_lock,
}

if __name__ == "__main__":
    run(PROGRAMS)
