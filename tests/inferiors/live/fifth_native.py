"""An engine with blocks in C++ that hangs, and its healthy twin, fifth set: `fifth_native.py NAME FOLDER`."""

import ctypes
import time

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.lock_hangs import LIBRARY_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")
EVICTED = []


@ctypes.CFUNCTYPE(None, ctypes.c_int)
def on_evict(block):
    EVICTED.append(block)


def report():
    while True:
        time.sleep(1.0)
        print(len(EVICTED), "evicted", flush=True)


def blocks(loader):
    path = build("libfifth_blocks.so", "live/fifth_extension.cpp", (*LIBRARY_FLAGS, *CPP))
    library = loader(path)
    library.block_manager_start(on_evict)
    thread(report)
    return library


def eviction_told_to_python():
    """The binding keeps the interpreter's lock while it waits for a free block; the evicting thread calls Python."""
    library = blocks(ctypes.PyDLL)
    for _ in range(2):
        library.block_manager_allocate()
    at("main")
    library.block_manager_allocate()


def eviction_while_released():
    """The twin: the binding gives the interpreter's lock back, and block after block is evicted."""
    library = blocks(ctypes.CDLL)
    at("main")
    while True:
        library.block_manager_allocate()
        work_for(0.05)


PROGRAMS = {
    "eviction-told-to-python": eviction_told_to_python,
    "eviction-while-released": eviction_while_released,
}

if __name__ == "__main__":
    run(PROGRAMS)
