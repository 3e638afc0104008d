"""Threads of Python that wait for one another; says `ready` when they do. `lock_queue.py join|select`

join: the main thread waits for the end of a thread that waits for an order that nobody gives. select: it waits for a
pipe instead, which another process has the other end of.
"""

import ctypes
import os
import queue
import select
import signal
import sys
import threading
import time

orders = queue.Queue()


def serve():
    while orders.get() is not None:
        pass


def until_waiting(lwp):
    """Until a thread is in a futex call."""
    while True:
        with open(f"/proc/self/task/{lwp}/syscall") as file:
            if file.read().split()[0] == "202":
                return
        time.sleep(0)


reader, writer = os.pipe()
if sys.argv[1] == "select" and os.fork() == 0:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    os.close(reader)
    signal.pause()
os.close(writer)

server = threading.Thread(target=serve, daemon=True)
server.start()
until_waiting(server.native_id)
print("ready", flush=True)
if sys.argv[1] == "join":
    server.join()
else:
    select.select([reader], [], [])
