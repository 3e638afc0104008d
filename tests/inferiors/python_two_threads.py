"""Two threads that stand in functions of known names: the main one reads, the other waits for a lock."""

import sys
import threading

lock = threading.Lock()
lock.acquire()
waiting = threading.Event()


def wait_inside():
    waiting.set()
    lock.acquire()


def wait_outside():
    wait_inside()


def read_a_line():
    print("ready", flush=True)
    sys.stdin.readline()


threading.Thread(target=wait_outside, daemon=True).start()
waiting.wait()
read_a_line()
