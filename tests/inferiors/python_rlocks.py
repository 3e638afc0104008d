"""A process with an RLock that one thread has taken twice and another wants, a Lock that a third one wants, and a
thread that waits for the end of the first one; says "ready" and LWP and ident of the first, then the LWPs of who wants
the RLock and the Lock."""

import sys
import threading

reentrant, plain, done = threading.RLock(), threading.Lock(), threading.Event()
threads = {}


def thread(name, work):
    def run():
        threads[name] = f"{threading.get_native_id()} {threading.get_ident()}"
        started.set()
        work()

    started = threading.Event()
    made = threading.Thread(target=run, daemon=True)
    made.start()
    started.wait()
    return made


def hold():
    with reentrant, reentrant:
        held.set()
        done.wait()


held = threading.Event()
plain.acquire()
holder = thread("holder", hold)
held.wait()
thread("reentrant", reentrant.acquire)
thread("plain", plain.acquire)
thread("joins", holder.join)
print("ready", *threads["holder"].split(), threads["reentrant"].split()[0], threads["plain"].split()[0], flush=True)
sys.stdin.read()
