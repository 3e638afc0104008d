"""Engines of one process with threads that hang, and healthy ones, tenth set: `tenth_threads.py NAME FOLDER`."""

import array
import asyncio
import ctypes
import fcntl
import itertools
import os
import queue
import sys
import termios
import time

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.tenth_extension import extension


def full(pipe):
    """Whether nothing more fits into a pipe."""
    number = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, number)
    return number[0] == fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)


def closes_while_written():
    """A thread writes an answer that is larger than the pipe. The other side is in the same process, and closes the
    file of the first one, so that there is an end, before it reads."""
    read, write = os.pipe()
    answers = os.fdopen(write, "wb")
    thread(answers.write, b"t" * (1 << 20))
    while not full(read):
        time.sleep(0.01)
    at("main")
    answers.close()
    while os.read(read, 4096):
        pass


def follow(library, seconds):
    """The worker: the steps of the ring, one after the other."""
    while True:
        if library.ring_take() < 0:
            time.sleep(0.001)
        else:
            work_for(seconds)


def steps(library, seconds):
    """Steps into the ring of C++, which has room for 16."""
    thread(follow, library, seconds)
    at("main")
    for number in itertools.count():
        library.ring_put(number)


def ring_keeps_interpreter():
    """The ring is full soon: the wait for room in it has the interpreter's lock, without which the worker takes
    nothing."""
    steps(extension(ctypes.PyDLL), 0.01)


def ring_gives_interpreter():
    """Healthy: the wait gives the interpreter's lock away, and each step takes 0.6 seconds."""
    steps(extension(), 0.6)


def loop_ends_its_threads():
    """The server ends, and with it the task of the tokenizer. Its thread is another matter: it waits for the next text,
    and the end of the loop waits for it."""
    texts = queue.Queue()

    async def tokenize():
        while True:
            print(len(await asyncio.to_thread(texts.get)), "bytes", flush=True)

    async def main():
        tokenizer = asyncio.create_task(tokenize())
        texts.put("one text")
        await asyncio.sleep(0.2)
        tokenizer.cancel()
        at("main")

    asyncio.run(main())


def asks_tool():
    """Healthy: a server without clients, which asks a tool for the state of the machine again and again."""

    async def main():
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0):
            at("main")
            while True:
                words = (sys.executable, "-c", "import time; time.sleep(1.2); print('well')")
                tool = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
                await tool.communicate()

    asyncio.run(main())


PROGRAMS = {
    "closes-while-written": closes_while_written,
    "ring-keeps-interpreter": ring_keeps_interpreter,
    "ring-gives-interpreter": ring_gives_interpreter,
    "loop-ends-its-threads": loop_ends_its_threads,
    "asks-tool": asks_tool,
}

if __name__ == "__main__":
    run(PROGRAMS)
