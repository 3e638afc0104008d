"""Threads that wait in every shape of Python stack; prints a line `ready PID` and stays until its stdin closes.

Runs on CPython 3.8 and later. Each thread is called after its shape and its innermost frames do not move.
Arguments: shapes to start (default: all).
"""

import asyncio
import ctypes
import functools
import queue
import sys
import threading
import time

FOREVER = 3600
ARRIVED = threading.Semaphore(0)
NEVER = queue.Queue()


def wait():
    ARRIVED.release()
    NEVER.get()


def shape_sleep():
    ARRIVED.release()
    time.sleep(FOREVER)


def shape_queue():
    wait()


class Item:
    def __lt__(self, other):
        wait()
        return True


def key_of(item):
    return Item()


def shape_sort():
    sorted([1, 2], key=key_of)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(left, right):
    wait()
    return 0


def shape_ctypes():
    """C calls Python: qsort of libc with a Python callback."""
    numbers = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), compare)


def shape_partial():
    functools.partial(functools.partial(lambda number: wait(), 1))()


def numbers(depth):
    if depth:
        yield from numbers(depth - 1)
    wait()
    yield depth


def shape_generator():
    for _number in (number + 1 for number in numbers(2)):
        pass


async def inner_coroutine():
    await asyncio.sleep(0)
    wait()


async def outer_coroutine():
    await asyncio.gather(inner_coroutine())


def shape_asyncio():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(outer_coroutine())


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        wait()


def shape_exception():
    try:
        with Context():
            raise KeyError("a")
    finally:
        wait()


class Kürzel:
    """Names outside ASCII: one, two and four bytes a character."""

    def größe(self):
        return self.длина()

    def длина(self):
        return self.𝐧𝐚𝐦𝐞()

    def 𝐧𝐚𝐦𝐞(self):
        wait()


def shape_names():
    Kürzel().größe()


class Dying:
    def __del__(self):
        wait()


def shape_destructor():
    def owner():
        kept = Dying()
        return len(repr(kept)) and None

    owner()


class Operators:
    def __add__(self, other):
        return self[other]

    def __getitem__(self, key):
        return getattr(self, "missing")

    def __getattr__(self, name):
        return list(map(self, [name]))

    def __call__(self, name):
        return functools.reduce(lambda left, right: wait(), [1, 2])


def shape_operators():
    Operators() + 1


def deep(depth):
    # Every line of a call is another one, so that a wrong line is noticed.
    if depth:
        return deep(depth - 1)
    return wait()


def shape_deep():
    deep(300)


def shape_recursion():
    sys.setrecursionlimit(20000)
    deep(3000)


SHAPES = {name[len("shape_") :]: value for name, value in list(globals().items()) if name.startswith("shape_")}
STACK_BYTES = 256 << 20  # enough for 3,000 calls where each has a native frame


def main():
    names = sys.argv[1:] or list(SHAPES)
    threading.stack_size(STACK_BYTES)
    for name in names:
        threading.Thread(target=SHAPES[name], name=name, daemon=True).start()
    for _name in names:
        ARRIVED.acquire()
    print("ready", *names, flush=True)
    sys.stdin.read()


main()
