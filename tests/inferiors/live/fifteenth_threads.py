"""Engines of one process that hang, fifteenth set: `fifteenth_threads.py NAME FOLDER`."""

import ctypes
import logging
import os
import signal
import sys
import threading
import time

from tests.inferiors.live.fifteenth_extension import extension
from tests.inferiors.live.place import at, run, thread


class Signalled(Exception):
    """Raised wherever the main thread is just then."""


def raise_signalled(signum, frame):
    raise Signalled(signum)


class Handler(logging.StreamHandler):
    """A signal comes when the lock has been taken, just before it is to be released in any case."""

    comes = False

    def acquire(self):
        super().acquire()
        if self.comes and threading.current_thread() is threading.main_thread():
            self.comes = False
            os.kill(os.getpid(), signal.SIGUSR1)


def search(log, stops):
    stops.wait()
    log.info("search ends")


def exception_inside_logging():
    """As cmusatyalab/opendiamond#28: a signal raises an exception in the main thread, which is about to log, and the
    lock of the log stays taken. It ends the workers and joins them; they log that they end."""
    log, handler, stops = logging.getLogger("server"), Handler(sys.stdout), threading.Event()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    signal.signal(signal.SIGUSR1, raise_signalled)
    workers = [thread(search, log, stops) for _ in range(2)]
    log.info("serving")
    handler.comes = True
    try:
        while True:
            log.info("connection")
    except Signalled:
        at("main")
        stops.set()
        for worker in workers:
            worker.join()


def compute(library):
    for number in range(3):
        time.sleep(0.1)
        library.communicator_send(number)
    time.sleep(0.5)
    library.communicator_send(3)


def waits_with_interpreter_lock():
    """As rapidsai/rapidsmpf#188: who waits for a message keeps the interpreter's lock, without which the thread in
    Python that would send it does not come to do so."""
    library, sends = extension(ctypes.PyDLL), extension()
    thread(compute, sends)
    while sends.communicator_receive() < 2:  # by the other way, without the lock
        pass
    at("main")
    library.communicator_receive()


PROGRAMS = {
    "exception-inside-logging": exception_inside_logging,
    "waits-with-interpreter-lock": waits_with_interpreter_lock,
}

if __name__ == "__main__":
    run(PROGRAMS)
