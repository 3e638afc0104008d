"""Engines of one process that hang, and healthy ones, twenty-seventh set: `twenty_seventh_threads.py NAME FOLDER`."""

import _imp
import asyncio
import concurrent.futures
import contextlib
import ctypes
import itertools
import queue
import re
import selectors
import socket
import threading
import time

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.twenty_seventh_extension import extension

HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def show(number):
    return number + 1


def handler_popped_during_a_call():
    """As GafferHQ/gaffer#3512: the handler for the interface is popped with the interpreter's lock, and waits for that
    of the handlers. A thread has it and calls the handler, which is in Python."""
    handler, calls = HANDLER(show), extension()
    calls.push_handler(handler)
    calls.push_handler(handler)
    print(calls.call_handler(1, 0), flush=True)
    thread(calls.call_handler, 2, 1)
    while not calls.calls_under_way():
        time.sleep(0.01)
    library = extension(ctypes.PyDLL)
    at("main")
    library.pop_handler()


class FrozenProgram:
    """A module that is compiled into the program and imported to run it, as long ago, with the lock of all imports."""

    def __enter__(self):
        _imp.acquire_lock()

    def __exit__(self, *_):
        _imp.release_lock()


def convert(colors):
    import colorsys

    colors.append(colorsys.rgb_to_hsv(0.2, 0.4, 0.8))


def late_import_of_a_thread():
    """As cython/cython#2486: a frozen program runs while it is imported. A thread of it imports another module, and the
    main thread waits for that thread."""
    colors = []
    with FrozenProgram():
        worker = thread(convert, colors)
        at("main")
        worker.join()
    print(colors, flush=True)


class States:
    """Of a house. There is a method for the loop, and one for threads."""

    def __init__(self, loop):
        self.loop, self.all = loop, {"light.kitchen": "on"}

    async def async_entities(self):
        return sorted(self.all)

    def entities(self):
        return asyncio.run_coroutine_threadsafe(self.async_entities(), self.loop).result()


class House:
    """Components are set up in threads, and one of them in the loop."""

    async def start(self):
        states = States(asyncio.get_running_loop())
        print(await states.loop.run_in_executor(None, states.entities), flush=True)
        await self.set_up(states)

    async def set_up(self, states):
        at("main")
        states.all["group.all"] = ",".join(states.entities())


def group_of_all_entities():
    """As home-assistant/core#3658: a method that is for threads is called in the loop. It waits for what it hands to
    the same loop."""
    asyncio.run(House().start())


@contextlib.contextmanager
def executor_for(config):
    """That of the whole graph of calls, which is made for the outermost one."""
    if "executor" in config:
        yield config["executor"]
        return
    with concurrent.futures.ThreadPoolExecutor(config["max_concurrency"]) as executor:
        config["executor"] = executor
        yield executor
        del config["executor"]


def answer(prompt):
    return prompt.upper()


def chain(prompt, config):
    with executor_for(config) as executor:
        return executor.submit(answer, prompt).result()


def executor_of_the_whole_graph():
    """As langchain-ai/langchain#10638: the calls of a graph share an executor. An outer call waits for an inner one,
    which is to run on the one thread that the outer one is on."""
    prompts, config = ["hello", "how are you", "good bye"], {"max_concurrency": 1}
    print(chain("to begin with", config), flush=True)
    with executor_for(config) as executor:
        calls = [executor.submit(chain, prompt, config) for prompt in prompts]
        at("main")
        print([call.result() for call in calls], flush=True)


class Pauser:
    """The longer there is nothing to do, the longer the pause."""

    def __init__(self):
        self.woken, self.seconds = threading.Event(), 0.001

    def pause(self):
        self.woken.wait(self.seconds)
        self.woken.clear()
        self.seconds = min(self.seconds * 2, 1.0)


class Loop:
    """Asks its handler again and again whether there is something to do."""

    def __init__(self):
        self.inbox, self.pauser, self.last = queue.SimpleQueue(), Pauser(), time.monotonic()
        self.worker = thread(self.run)

    def put(self, order):
        self.inbox.put(order)
        self.pauser.woken.set()

    def run(self):
        while True:
            try:
                self.inbox.get_nowait()
            except queue.Empty:
                self.pauser.pause()
            else:
                self.last, self.pauser.seconds = time.monotonic(), 0.001
                work_for(0.05)


def monitor(loop):
    while True:
        time.sleep(0.5)
        late = time.monotonic() - loop.last
        if late > 1:
            print(f"the loop has blocked for {late:.1f} s", flush=True)


def orders(loop):
    for number in itertools.count():
        loop.put(number)
        time.sleep(3)


def loop_said_to_be_late():
    """Healthy, as OpenHFT/Chronicle-Threads#132: a loop has almost nothing to do. A monitor looks at the time of the
    last work, and says that the loop is late."""
    loop = Loop()
    thread(orders, loop)
    thread(monitor, loop)
    at("main")
    loop.worker.join()


class Tokenizer:
    def __init__(self):
        self.known = {}

    def encode(self, text):
        words = re.findall(r"\w+|[^\w\s]", text.lower())
        return [self.known.setdefault(word, len(self.known)) for word in words]


def tokenize(tokenizer, value):
    if isinstance(value, str):
        return tokenizer.encode(value)
    if isinstance(value, dict):
        return {key: tokenize(tokenizer, inner) for key, inner in value.items()}
    return [tokenize(tokenizer, inner) for inner in value]


def dialogs(count):
    for number in range(count):
        talk = [f"hello, I am number {number % 999}. " * 20, "and what do you like?", "music! " * 30]
        yield {"personality": ["I like music.", "I have a dog."] * 4, "utterances": [{"history": talk}] * 20}


def texts_tokenized_one_by_one():
    """Healthy, as huggingface/transfer-learning-conv-ai#24: all texts of a dataset are tokenized before the training,
    by one processor. That takes very long."""
    tokenizer, count = Tokenizer(), 0
    tokenize(tokenizer, list(dialogs(20)))
    at("main")
    for dialog in dialogs(3_000_000):
        count += len(tokenize(tokenizer, dialog))
    print(count, flush=True)


class Channel:
    """A loop of its own for the connections that are given to it."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.ours, self.theirs = socket.socketpair()
        self.selector.register(self.ours, selectors.EVENT_READ)
        thread(self.run)

    def run(self):
        while True:
            for key, _ in self.selector.select():
                key.fileobj.send(key.fileobj.recv(4096))


def loops_without_events():
    """Healthy, as brendangregg/FlameGraph#208: the threads of a server wait for events. None come, and a profile shows
    them as if they ran."""
    server, boss = socket.create_server(("127.0.0.1", 0)), selectors.DefaultSelector()
    boss.register(server, selectors.EVENT_READ)
    channels = [Channel() for _ in range(4)]
    for channel in channels:
        channel.theirs.send(b"hello")
        channel.theirs.recv(4096)
    at("main")
    while True:
        for key, _ in boss.select():
            channels[0].selector.register(key.fileobj.accept()[0], selectors.EVENT_READ)


PROGRAMS = {
    "pops-a-handler": handler_popped_during_a_call,
    "imports-in-a-thread": late_import_of_a_thread,
    "calls-a-method-for-threads": group_of_all_entities,
    "shares-one-executor": executor_of_the_whole_graph,
    "monitors-an-idle-loop": loop_said_to_be_late,
    "tokenizes-on-one-core": texts_tokenized_one_by_one,
    "selects-without-events": loops_without_events,
}

if __name__ == "__main__":
    run(PROGRAMS)
