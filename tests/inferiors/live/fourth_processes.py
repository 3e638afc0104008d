"""Processes that wait for others, and their healthy twins, fourth set: `fourth_processes.py NAME FOLDER`."""

import fcntl
import multiprocessing
import os
import socket
import struct
import subprocess
import sys

from tests.inferiors.live.place import at, child_of, in_folder, read_for_ever, run, thread, work_for

FORK = multiprocessing.get_context("fork")


def mailbox(name):
    """A datagram socket of that name, which others can send to once the sockets of all are there."""
    box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    box.bind(in_folder(name))
    return box


def server_of(tokenizer_work):
    """A front end, a scheduler and a tokenizer: (the front end's end of the scheduler's pipe, the tokenizer)."""
    boxes = mailbox("to-scheduler"), mailbox("to-tokenizer")
    ours, theirs = FORK.Pipe()
    tokenizer = child_of(tokenizer_work, boxes[1])
    child_of(schedule, theirs, boxes[0])
    return ours, tokenizer


def schedule(requests, box):
    at("scheduler")
    while True:
        box.sendto(requests.recv(), in_folder("to-tokenizer"))
        requests.send(box.recv(1 << 12))


def tokenize_one(box):
    """Its first request has bytes that it does not expect, and nobody catches the exception."""
    box.recv(1 << 12)
    os._exit(1)


def tokenize(box):
    at("tokenizer")
    while True:
        work_for(len(box.recv(1 << 12)) / 1000)
        box.sendto(b"1 2 3", in_folder("to-scheduler"))


def tokenizer_died():
    """The tokenizer ended on a bad text; the scheduler waits for its answer, the front end for the scheduler."""
    scheduler, tokenizer = server_of(tokenize_one)
    scheduler.send(b"\xff")
    tokenizer.join()
    at("main")
    scheduler.recv()


def tokenizer_idle():
    """The twin: one request was answered; now all are at rest until the next client comes."""
    scheduler, _ = server_of(tokenize)
    scheduler.send(b"hello")
    scheduler.recv()
    with socket.create_server(("127.0.0.1", 0)) as server:
        at("main")
        while True:
            with server.accept()[0] as client:
                scheduler.send(client.recv(1 << 12))
                client.sendall(scheduler.recv())


CONVERTER = """
import os, sys
from tests.inferiors.live.place import at, work_for
sys.argv = ["", "", os.environ["FOLDER"]]
at("child")
while True:
    for number in range(4096):
        sys.stderr.write(f"warning: row {number} has no name\\n")
    work_for(0.05)
    print("done", flush=True)
"""


def converter():
    """A program that warns a lot and then says that it is done."""
    words = [sys.executable, "-c", CONVERTER]
    environment = {**os.environ, "FOLDER": sys.argv[2]}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def warnings_not_read():
    """The caller reads the output and not the warnings, which fill their pipe."""
    program = converter()
    at("main")
    program.stdout.readline()


def warnings_read():
    """The twin: a thread reads the warnings, and the answers go on."""
    program = converter()
    thread(lambda: [program.stderr.read(1 << 12) for _ in iter(int, 1)])
    at("main")
    while program.stdout.readline():
        pass


WHOLE_FILE = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def hold_file(path, told):
    with open(path, "r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW, WHOLE_FILE)
        at("holder")
        os.close(told)
        read_for_ever()


def lock_of_stranger():
    """A process of another session has the file's lock, which belongs to the open file and names no process."""
    path = in_folder("index")
    open(path, "wb").close()
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            hold_file(path, writing)
        os._exit(0)
    os.wait()
    os.close(writing)
    os.read(reading, 1)
    with open(path, "r+b") as file:
        at("main")
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW, WHOLE_FILE)


def compress(source, target):
    """gzip with files in the place of its input and output, which posix_spawn opens in the child."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, source, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, target, os.O_WRONLY | os.O_CREAT, 0o600),
    ]
    return os.posix_spawn("/bin/gzip", ["gzip", "-9"], os.environ, file_actions=actions)


def spawn_opens_pipe():
    """The output is a named pipe that nobody reads: the child waits in open(), posix_spawn() for the child's exec."""
    os.mkfifo(in_folder("upload"))
    at("main")
    os.waitpid(compress("/proc/self/exe", in_folder("upload")), 0)


def spawn_opens_file():
    """The twin: the output is a file, and one compression follows the other."""
    at("main")
    while True:
        os.waitpid(compress("/proc/self/exe", in_folder("upload")), 0)


def cached(role):
    """One of two that build entries of a common cache under its lock, which the other asks for again and again."""
    import filelock

    lock = filelock.FileLock(in_folder("cache.lock"))
    at(role)
    while True:
        with lock:
            work_for(0.15)
        work_for(0.05)


def file_lock_polled():
    """Healthy: two processes that have the lock in turns; who waits looks at it 20 times a second."""
    child_of(cached, "child")
    cached("main")


PROGRAMS = {
    "tokenizer-died": tokenizer_died,
    "tokenizer-idle": tokenizer_idle,
    "warnings-not-read": warnings_not_read,
    "warnings-read": warnings_read,
    "lock-of-stranger": lock_of_stranger,
    "spawn-opens-pipe": spawn_opens_pipe,
    "spawn-opens-file": spawn_opens_file,
    "file-lock-polled": file_lock_polled,
}

if __name__ == "__main__":
    run(PROGRAMS)
