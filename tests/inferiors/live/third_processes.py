"""Processes that wait for each other, and their healthy twins, third set: `third_processes.py NAME FOLDER`."""

import fcntl
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.inferiors.live.place import at, child_of, run, work_for

FORK = multiprocessing.get_context("fork")


def pipes():
    """Two named pipes: to the engine and from it."""
    paths = [os.path.join(sys.argv[2], name) for name in ("to-engine", "from-engine")]
    for path in paths:
        os.mkfifo(path)
    return paths


def named_pipes_crossed():
    """Each end opens the pipe that it writes to first, and open() waits for the reader."""
    there, back = pipes()

    def engine():
        at("child")
        with open(back, "wb"), open(there, "rb"):
            pass

    child_of(engine)
    at("main")
    with open(there, "wb"), open(back, "rb"):
        pass


def named_pipes_in_order():
    """The twin: the engine opens its reading end first; requests and answers go on."""
    there, back = pipes()

    def engine():
        with open(there, "rb", buffering=0) as asked, open(back, "wb", buffering=0) as answers:
            at("child")
            while asked.read(8):
                work_for(0.05)
                answers.write(bytes(8))

    child_of(engine)
    with open(there, "wb", buffering=0) as asks, open(back, "rb", buffering=0) as answered:
        at("main")
        while True:
            asks.write(bytes(8))
            answered.read(8)


def record_lock_and_pipe():
    """The child has the record of the file locked and waits for its order; the parent locks before it sends one."""
    path = os.path.join(sys.argv[2], "cache")
    ours, theirs = FORK.Pipe()
    locked = FORK.Event()

    def worker():
        with open(path, "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            locked.set()
            at("child")
            theirs.recv()

    with open(path, "w+b") as file:
        child_of(worker)
        locked.wait()
        at("main")
        fcntl.lockf(file, fcntl.LOCK_EX)
        ours.send("go")


DIALOGUE = """
import os, sys
from tests.inferiors.live.place import at, work_for
sys.argv = ["", "", os.environ["FOLDER"]]
for number, line in enumerate(sys.stdin):
    print(len(line), flush={flush})
    if number == 0:
        at("child")
    work_for(0.02)
"""


def dialogue(flush):
    """A helper program that answers each line of its input with one of its output."""
    helper = subprocess.Popen(
        [sys.executable, "-c", DIALOGUE.format(flush=flush)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "FOLDER": sys.argv[2], "PYTHONUNBUFFERED": ""},
    )
    at("main")
    while True:
        helper.stdin.write(b"sentence\n")
        helper.stdin.flush()
        helper.stdout.readline()


def answer_not_flushed():
    """The helper's answer stays in its own buffer, and it reads the next line; the caller waits for the answer."""
    dialogue(False)


def answers_flushed():
    """The twin: each answer is flushed."""
    dialogue(True)


def consume(inbox):
    at("worker")
    return inbox.get()


def task_waits_for_later():
    """The task waits for a message that its caller sends when the task is done."""
    with multiprocessing.Manager() as manager, ProcessPoolExecutor(1, mp_context=FORK) as pool:
        inbox = manager.Queue()
        future = pool.submit(consume, inbox)
        at("main")
        future.result()
        inbox.put("next")


def pause_after_signal():
    """The child's signal came before pause(), which waits for the next one; the child waits for the answer."""
    ours, theirs = FORK.Pipe()
    signal.signal(signal.SIGUSR1, lambda *_: None)

    def worker():
        os.kill(os.getppid(), signal.SIGUSR1)
        theirs.send("started")
        at("child")
        theirs.recv()

    child_of(worker)
    ours.recv()
    at("main")
    signal.pause()
    ours.send("go")


def listener(accepts):
    """A server of one connection, whose queue of new ones has no room for a third."""
    path = os.path.join(sys.argv[2], "socket")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(0)
    child_of(accepts, server)
    server.close()
    return path


def answers_first_alone(server):
    """It answers its first client to the end before it accepts the next."""
    client = server.accept()[0]
    client.send(b"!")
    at("child")
    client.recv(1)


def answers_all(server):
    at("child")
    while True:
        client = server.accept()[0]
        work_for(0.02)
        client.close()


def connected(path):
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    return made


def third_connection():
    """The client opens three connections before it asks on the first; the third waits for room."""
    path = listener(answers_first_alone)
    first = connected(path)
    first.recv(1)
    kept = [connected(path)]
    at("main")
    kept.append(connected(path))
    first.send(b"?")


def many_connections():
    """The twin: the server accepts all of them, one by one."""
    path = listener(answers_all)
    at("main")
    while True:
        for one in [connected(path) for _ in range(3)]:
            one.recv(1)
            one.close()


PROGRAMS = {
    "named-pipes-crossed": named_pipes_crossed,
    "named-pipes-in-order": named_pipes_in_order,
    "record-lock-and-pipe": record_lock_and_pipe,
    "answer-not-flushed": answer_not_flushed,
    "answers-flushed": answers_flushed,
    "task-waits-for-later": task_waits_for_later,
    "pause-after-signal": pause_after_signal,
    "third-connection": third_connection,
    "many-connections": many_connections,
}

if __name__ == "__main__":
    run(PROGRAMS)
