"""Programs of multiprocessing, subprocess and fork that hang, and healthy ones: `processes.py NAME FOLDER`."""

import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.inferiors.live.place import at, fifo, read_for_ever, run, thread, work_for

fork = multiprocessing.get_context("fork")


def started(*targets):
    """A forked process for each; target or (target, arguments ...)"""
    made = []
    for target in targets:
        target, *arguments = target if isinstance(target, tuple) else (target,)
        made.append(fork.Process(target=target, args=arguments))
        made[-1].start()
    return made


def join(processes):
    at("main")
    for one in processes:
        one.join()


def square(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)  # what the kernel does when memory is short
    return number * number


def pool_worker_killed():
    """The pool has a new worker, the result of the killed one never comes."""
    with fork.Pool(2) as pool:
        result = pool.map_async(square, range(6), chunksize=1)
        at("main")
        result.get()


class Refused(Exception):
    def __init__(self, code, text):
        super().__init__(text)


def refuse(number):
    raise Refused(number, "no")


def pool_result_not_readable():
    """The exception of a worker cannot be unpickled: the thread that reads results dies of it."""
    with fork.Pool(2) as pool:
        result = pool.apply_async(refuse, (1,))
        at("main")
        result.get()


def queue_reader_killed():
    """A consumer is killed while it reads the queue and has its lock; the others wait for the lock."""
    queue = fork.Queue()

    def consume(role):
        at(role)
        queue.get()

    (first,) = started((consume, "killed"))
    until_waits(first.pid)
    first.kill()
    first.join()
    consumers = started((consume, "one"), (consume, "two"))
    queue.put("work")
    join(consumers)


def until_waits(pid):
    """Until the process sleeps."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        time.sleep(0.01)
    time.sleep(0.2)


def fork_with_lock():
    """A thread holds the module's lock while the process forks."""
    lock, held = threading.Lock(), threading.Event()

    def refresh():
        with lock:
            held.set()
            read_for_ever()

    def child():
        at("child")
        with lock:
            pass

    thread(refresh)
    held.wait()
    join(started(child))


def fork_without_thread():
    """The child waits for a queue that a thread of the parent feeds; in the child there is no such thread."""
    import queue

    events = queue.Queue()

    def feed():
        while True:
            events.put(time.time())
            time.sleep(1.0)
            events.get()

    def child():
        while not events.empty():
            events.get()
        at("child")
        events.get()

    thread(feed)
    join(started(child))


def join_before_get():
    """The child has put more than a pipe holds; the parent joins it before it takes anything out."""
    queue = fork.Queue()

    def produce():
        at("child")
        queue.put(b"x" * (1 << 20))

    join(started(produce))
    queue.get()


def output_not_read():
    """wait() for a program whose output nobody reads."""
    source = "import sys; sys.stdout.write('x' * (1 << 20))"
    child = subprocess.Popen([sys.executable, "-S", "-c", source], stdout=subprocess.PIPE)
    place("child", child.pid)
    until_waits(child.pid)
    at("main")
    child.wait()


def place(role, pid):
    """A child that cannot say it itself."""
    at(role, pid)


def pipe_recv_both():
    """Question and answer, and both listen."""
    here, there = fork.Pipe()

    def child():
        at("child")
        there.send(there.recv() + 1)

    (one,) = started(child)
    at("main")
    here.recv()
    one.join()


def two_locks():
    """Two processes take two locks in opposite order."""
    one, two, meet = fork.Lock(), fork.Lock(), fork.Barrier(2)

    def take(role, first, second):
        with first:
            meet.wait()
            at(role)
            with second:
                pass

    join(started((take, "a", one, two), (take, "b", two, one)))


def two_file_locks():
    """Two programs with flock, in opposite order."""
    meet = fork.Barrier(2)

    def take(role, first, second):
        with open(os.path.join(sys.argv[2], first), "w") as one, open(os.path.join(sys.argv[2], second), "w") as two:
            fcntl.flock(one, fcntl.LOCK_EX)
            meet.wait()
            at(role)
            fcntl.flock(two, fcntl.LOCK_EX)

    join(started((take, "a", "x.lock", "y.lock"), (take, "b", "y.lock", "x.lock")))


def barrier_of_three():
    """One of three workers reads a file that does not come."""
    barrier = fork.Barrier(3)

    def work(number):
        at(f"worker{number}")
        if number == 1:
            read_for_ever()
        barrier.wait()

    join(started((work, 0), (work, 1), (work, 2)))


def manager_lock():
    """A worker holds a manager's lock and waits for a file; the other waits for the lock at the manager."""
    with fork.Manager() as manager:
        lock, held = manager.Lock(), fork.Event()

        def hold():
            with lock:
                held.set()
                at("holder")
                read_for_ever()

        def want():
            held.wait()
            at("waiter")
            with lock:
                pass

        join(started(hold, want))


def executor_task_asks():
    """A task asks on a terminal that nobody sits at."""

    def_input = os.open(fifo(), os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(def_input, True)
    os.dup2(def_input, 0)
    with ProcessPoolExecutor(1, mp_context=fork) as pool:
        future = pool.submit(confirm)
        at("main")
        future.result()


def confirm():
    at("worker")
    return os.read(0, 1)


def end_of_file():
    """Reads to the end of a pipe whose writing end it has open itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"done\n")
        os._exit(0)
    os.waitpid(child, 0)
    at("main")
    with open(reading, "rb") as file:
        file.read()
    os.close(writing)


def zombie_is_waited_for():
    """The worker ended without its last message; the parent reads on, and holds the other end of the pipe too."""
    here, _there = fork.Pipe(duplex=False)
    (one,) = started((os._exit, 0))
    place("child", one.pid)
    at("main")
    here.recv()


def pool_computes():
    with fork.Pool(2) as pool:
        at("main")
        for _ in pool.imap_unordered(work_for, iter(lambda: 0.3, None)):
            pass


def pool_naps():
    with fork.Pool(3) as pool:
        at("main")
        for _ in pool.imap_unordered(time.sleep, iter(lambda: 0.2, None)):
            pass


def compiles():
    source = os.path.join(sys.argv[2], "one.cpp")
    with open(source, "w") as file:
        file.write('#include <regex>\n#include <map>\nint main(){std::regex r("a*");return 0;}\n')
    at("main")
    while True:
        subprocess.run(["g++", "-O2", "-c", source, "-o", source + ".o"], check=True)


def queue_line():
    """Producer, worker and sink, each with its pace."""
    raw, done = fork.Queue(4), fork.Queue(4)

    def produce():
        at("producer")
        while True:
            raw.put(os.urandom(4096))
            time.sleep(0.02)

    def work():
        at("worker")
        while True:
            done.put(raw.get()[::-1])
            work_for(0.01)

    started(produce, work)
    at("main")
    while True:
        done.get()


def file_lock_in_turns():
    """Three processes that compute under one file lock in turns."""

    def take(role):
        at(role)
        with open(os.path.join(sys.argv[2], "turn.lock"), "w") as file:
            while True:
                fcntl.flock(file, fcntl.LOCK_EX)
                work_for(0.1)
                fcntl.flock(file, fcntl.LOCK_UN)
                time.sleep(0.01)

    join(started((take, "a"), (take, "b"), (take, "c")))


def backup_by_pipe():
    """A parent feeds a compressor by a pipe and reads what comes out."""
    child = subprocess.Popen(["gzip", "-9"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def feed():
        while True:
            child.stdin.write(os.urandom(1 << 16))

    thread(feed)
    child.stdout.read(1)
    at("main")
    while child.stdout.read(1 << 12):
        pass


PROGRAMS = {
    "pool-worker-killed": pool_worker_killed,
    "pool-result-unreadable": pool_result_not_readable,
    "queue-reader-killed": queue_reader_killed,
    "fork-with-lock": fork_with_lock,
    "fork-without-thread": fork_without_thread,
    "join-before-get": join_before_get,
    "output-not-read": output_not_read,
    "pipe-recv-both": pipe_recv_both,
    "two-locks": two_locks,
    "two-file-locks": two_file_locks,
    "barrier-of-three": barrier_of_three,
    "manager-lock": manager_lock,
    "executor-task-asks": executor_task_asks,
    "end-of-file": end_of_file,
    "zombie-child": zombie_is_waited_for,
    "pool-computes": pool_computes,
    "pool-naps": pool_naps,
    "compiles": compiles,
    "queue-line": queue_line,
    "file-lock-in-turns": file_lock_in_turns,
    "backup-by-pipe": backup_by_pipe,
}

if __name__ == "__main__":
    run(PROGRAMS)
