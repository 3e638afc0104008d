"""One process that waits for itself for ever, and healthy twins, third set: `third_threads.py NAME FOLDER`."""

import asyncio
import contextlib
import ctypes
import selectors
import socket
import threading

from tests.inferiors.live.place import at, run, thread, work_for


def two_loops(hand_over):
    """A loop of its own in a thread consumes what the main thread's loop produces."""
    started, inbox, loops = threading.Event(), [], []

    async def consumer():
        inbox.append(asyncio.Queue())
        loops.append(asyncio.get_running_loop())
        started.set()
        while True:
            done = await inbox[0].get()
            work_for(0.02)
            done.set()

    thread(asyncio.run, consumer())
    started.wait()
    hand_over(inbox[0], loops[0])


def queue_of_other_loop():
    """The item is put from another thread without waking the consumer's loop."""

    def hand_over(inbox, loop):
        idle = threading.Event()
        loop.call_soon_threadsafe(loop.call_soon, idle.set)
        idle.wait()
        done = threading.Event()
        inbox.put_nowait(done)
        at("main")
        done.wait()

    two_loops(hand_over)


def queue_of_other_loop_woken():
    """The twin: the item is put by the loop that consumes it."""

    def hand_over(inbox, loop):
        at("main")
        while True:
            done = threading.Event()
            loop.call_soon_threadsafe(inbox.put_nowait, done)
            done.wait()

    two_loops(hand_over)


class Cache:
    def __init__(self):
        self.lock = threading.Lock()
        self.rows = list(range(8))

    def rows_under_lock(self):
        with self.lock:
            yield from self.rows

    def rows_copied(self):
        with self.lock:
            rows = list(self.rows)
        yield from rows

    def update(self, row):
        with self.lock:
            self.rows[row] += 1


def generator_keeps_lock():
    """The generator is suspended within the lock, and the loop over it calls what takes the same lock."""
    cache = Cache()
    for row in cache.rows_under_lock():
        at("main")
        cache.update(row)


def generator_copies():
    """The twin: the rows are copied under the lock; a second thread takes it in turns."""
    cache = Cache()
    thread(lambda: [(cache.update(0), work_for(0.005)) for _ in iter(int, 1)])
    at("main")
    while True:
        for row in cache.rows_copied():
            cache.update(row % 8)
            work_for(0.01)
        cache.rows = list(range(8))


def event_cleared_too_soon():
    """The scheduler sets and clears the event of a step before the worker came to wait for it."""
    step, answered = threading.Event(), threading.Event()

    def worker():
        step.wait()
        answered.set()

    step.set()
    step.clear()
    thread(worker)
    at("main")
    answered.wait()


def timer_was_cancelled():
    """The time-out that should end the wait was cancelled by the code that cleans up."""
    ended = threading.Event()
    timer = threading.Timer(0.5, ended.set)
    timer.start()
    timer.cancel()
    timer.join()
    at("main")
    ended.wait()


def lock_of_cancelled_task():
    """A cancelled request leaves without releasing; the next one waits for the lock."""

    async def request(lock, reached):
        await lock.acquire()
        reached.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
            lock.release()

    async def main():
        lock, reached = asyncio.Lock(), asyncio.Event()
        first = asyncio.create_task(request(lock, reached))
        await reached.wait()
        first.cancel()
        await asyncio.wait([first])
        at("main")
        async with lock:
            pass

    asyncio.run(main())


def half_sent(events):
    """A client that must not block sends more than the connection takes at once, and a server that wants all of it."""
    near, far = socket.socketpair()
    near.setblocking(False)
    size = 1 << 22

    def server():
        while True:
            left = size
            while left:
                left -= len(far.recv(min(left, 1 << 16)))
            work_for(0.01)
            far.sendall(b"!")

    thread(server)
    with selectors.DefaultSelector() as selector:
        selector.register(near, events)
        at("main")
        while True:
            left = near.send(bytes(size))
            left = size - left
            while True:
                ready = selector.select()[0][1]
                if ready & selectors.EVENT_READ and near.recv(1):
                    break
                if ready & selectors.EVENT_WRITE and left:
                    left -= near.send(bytes(left))
                if not left:
                    selector.modify(near, selectors.EVENT_READ)
            selector.modify(near, events)


def rest_is_not_sent():
    """After a part was sent the client waits for the answer alone."""
    half_sent(selectors.EVENT_READ)


def rest_is_sent():
    """The twin: it waits for room as well, and the requests go on."""
    half_sent(selectors.EVENT_READ | selectors.EVENT_WRITE)


def native_mutex(library):
    """A mutex of the C library that a thread of Python code has while it computes."""
    mutex = ctypes.create_string_buffer(64)
    taken = threading.Event()
    released = ctypes.CDLL(None)

    def worker():
        while True:
            released.pthread_mutex_lock(mutex)
            taken.set()
            work_for(0.05)
            released.pthread_mutex_unlock(mutex)

    thread(worker)
    taken.wait()
    at("main")
    while True:
        library.pthread_mutex_lock(mutex)
        library.pthread_mutex_unlock(mutex)


def native_mutex_and_gil():
    """The main thread waits for the mutex with the interpreter's lock kept, which the mutex's owner needs."""
    native_mutex(ctypes.PyDLL(None))


def native_mutex_in_turns():
    """The twin: the interpreter's lock is released for the call."""
    native_mutex(ctypes.CDLL(None))


PROGRAMS = {
    "queue-of-other-loop": queue_of_other_loop,
    "queue-of-other-loop-woken": queue_of_other_loop_woken,
    "generator-keeps-lock": generator_keeps_lock,
    "generator-copies": generator_copies,
    "event-cleared-too-soon": event_cleared_too_soon,
    "timer-was-cancelled": timer_was_cancelled,
    "lock-of-cancelled-task": lock_of_cancelled_task,
    "rest-is-not-sent": rest_is_not_sent,
    "rest-is-sent": rest_is_sent,
    "native-mutex-and-gil": native_mutex_and_gil,
    "native-mutex-in-turns": native_mutex_in_turns,
}

if __name__ == "__main__":
    run(PROGRAMS)
