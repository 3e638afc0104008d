"""A process with an RLock that one thread has taken twice and another wants, and a Lock that a third one wants; says
"ready" and LWP and ident of the holder, then the LWPs of who wants the RLock and the Lock."""

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
    threading.Thread(target=run, daemon=True).start()
    started.wait()


def hold():
    with reentrant, reentrant:
        held.set()
        done.wait()


held = threading.Event()
plain.acquire()
thread("holder", hold)
held.wait()
thread("reentrant", reentrant.acquire)
thread("plain", plain.acquire)
print("ready", *threads["holder"].split(), threads["reentrant"].split()[0], threads["plain"].split()[0], flush=True)
sys.stdin.read()
