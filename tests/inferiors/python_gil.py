"""A thread keeps Python's global interpreter lock while it sleeps in C; another one waits for the lock.

Prints `ready` (from C, so that the lock is not given away for it) and stays until it is killed.
"""

import ctypes
import sys
import threading

LIBC = ctypes.PyDLL(None)  # calls of a PyDLL keep the lock


def hold():
    sys.setswitchinterval(10000)
    LIBC.write(1, b"ready\n", 6)
    LIBC.sleep(3600)


def want(started):
    started.set()
    while True:
        ctypes.CDLL(None).sched_yield()  # gives the lock away and wants it back


def main():
    started = threading.Event()
    threading.Thread(target=want, args=(started,), name="want", daemon=True).start()
    started.wait()
    hold()


main()
