"""Engines with parts in C++ that hang, and a healthy twin, sixth set: `sixth_native.py NAME FOLDER`."""

import ctypes
import itertools
import mmap
import multiprocessing
import os
import sys
import time

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.lock_hangs import LIBRARY_FLAGS, build

CPP = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")


def extension(loader=ctypes.CDLL):
    return loader(build("libsixth_engine.so", "live/sixth_extension.cpp", (*LIBRARY_FLAGS, *CPP)))


def write_table(library, table, dies):
    """The scheduler's process: puts the block table of each step into shared memory."""
    for step in itertools.count(1):
        if step == 40:
            at("writer")
        library.table_write(table, step, dies and step == 40)
        work_for(0.002)


def read_tables(dies):
    library, memory = extension(), mmap.mmap(-1, 1 << 16)
    table = ctypes.byref(ctypes.c_char.from_buffer(memory))
    writes = multiprocessing.get_context("fork").Process(target=write_table, args=(library, table, dies), daemon=True)
    writes.start()
    while not os.path.exists(os.path.join(sys.argv[2], "writer")):
        time.sleep(0.01)
    at("main")
    while True:
        library.table_read(table)
        work_for(0.001)


def table_half_written():
    """The writer is killed in the middle of a step; the reader waits for the end of it, by trying again."""
    read_tables(dies=True)


def table_written_often():
    """The twin: the writer lives, and the reader reads each table."""
    read_tables(dies=False)


def thread_leaves_registry():
    """The registry is stopped under its lock, which the thread that it joins takes when it leaves."""
    library = extension()
    library.registry_start()
    work_for(0.5)
    at("main")
    library.registry_stop()


def transfer_with_interpreter():
    """The binding keeps the interpreter's lock while it waits for a byte, which a thread in Python is to write."""
    library = extension(ctypes.PyDLL)
    completions, completed = os.pipe()

    def copy():
        work_for(1.0)
        os.write(completed, b".")

    thread(copy)
    at("main")
    library.transfer_wait(completions)


PROGRAMS = {
    "table-half-written": table_half_written,
    "table-written-often": table_written_often,
    "thread-leaves-registry": thread_leaves_registry,
    "transfer-with-interpreter": transfer_with_interpreter,
}

if __name__ == "__main__":
    run(PROGRAMS)
