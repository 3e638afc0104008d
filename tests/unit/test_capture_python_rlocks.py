"""Who holds an RLock of Python, by what its object says."""

from pathlib import Path

import pytest

from gdbext.capture.locks_in_memory.python_rlocks import with_owners
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.knowledge.runtimes.cpython_frames import JOINED
from gdbext.model.locks import LockWait
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame, ThreadStack
from tests.inferiors.python_target import PythonTarget, interpreters
from tests.polling import wait_until
from tests.unit.stacks import stack

pytestmark = pytest.mark.process

NOBODY = Missing("a semaphore has no owner: any thread may post it")
FUTEX = "202"
PYTHONS = {version: path for version, path in interpreters().items() if version < (3, 14)}


class Waiter:
    """A thread that sleeps in futex(2), by what the kernel says of it."""

    def __init__(self, pid, lwp):
        self.lwp, self.call = lwp, Path(f"/proc/{pid}/task/{lwp}/syscall")
        wait_until(lambda: self.words[0] == FUTEX, f"thread {lwp} waits")
        self.address, self.pointer = int(self.words[1], 16), int(self.words[7], 16)

    @property
    def words(self):
        return self.call.read_text().split()


def looked_up(pid, waiter, threads, function="PyThread_acquire_lock_timed@libpython3.so"):
    wait = LockWait(waiter.lwp, "semaphore", waiter.address, NOBODY)
    stacks = [stack("futex@libc.so.6", function, lwp=waiter.lwp)]
    (found,) = with_owners([wait], stacks, {waiter.lwp: waiter.pointer}, threads, ProcessMemory(pid).read_many)
    return found


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_the_thread_that_has_taken_it(version):
    with PythonTarget("python_rlocks.py", python=PYTHONS[version]) as target:
        holder, ident, reentrant, plain = map(int, target.words)
        # On its way there it waits for the GIL as well.
        wait_until(
            lambda: looked_up(target.pid, Waiter(target.pid, reentrant), {ident: holder}).kind == "mutex",
            "a thread waits for the RLock",
        )
        wants, other = Waiter(target.pid, reentrant), Waiter(target.pid, plain)
        found = looked_up(target.pid, wants, {ident: holder})
        assert (found.kind, found.owner, found.detail) == ("mutex", holder, "an RLock of Python, taken 2 times")
        assert looked_up(target.pid, other, {ident: holder}).owner == NOBODY, "a Lock has no owner"
        assert looked_up(target.pid, wants, {ident + 8: holder}).owner == NOBODY, "its thread was not read"
        assert looked_up(target.pid, wants, {ident: holder}, "sem_wait@libc.so.6").owner == NOBODY


def test_a_stack_that_cannot_be_read():
    wait = LockWait(5, "semaphore", 0x1000, NOBODY)
    stacks = [stack("PyThread_acquire_lock_timed@libpython3.so", lwp=5)]
    assert with_owners([wait], stacks, {5: 64}, {}, ProcessMemory(1 << 22).read_many) == (wait,)
    assert with_owners([wait], stacks, {}, {}, ProcessMemory(1 << 22).read_many) == (wait,)


def test_the_end_of_a_thread_that_its_joiner_names():
    def waits(lwp, kind="semaphore"):
        return LockWait(lwp, kind, 0x1000, NOBODY)

    def joins(lwp, ident, inside="Thread._wait_for_tstate_lock"):
        join = Frame("Thread.join", file="/lib/python3.11/threading.py", captures={JOINED: ident}, language="python")
        return ThreadStack(str(lwp), (Frame("sem_wait"), Frame(inside, language="python"), join), lwp=lwp)

    stacks = [joins(5, 700), joins(6, 701), joins(7, 702), joins(8, 700), joins(9, 700, "on_signal")]
    asked = [waits(5), waits(6), waits(7), waits(8, "mutex"), waits(9)]
    found = with_owners(asked, stacks, {}, {700: 3, 702: 7}, lambda ranges: [None] * len(ranges))
    assert [(one.kind, one.owner) for one in found] == [
        ("join", 3),
        ("semaphore", NOBODY),  # it was not read
        ("semaphore", NOBODY),  # itself
        ("mutex", NOBODY),
        ("semaphore", NOBODY),  # what a handler does inside of join()
    ]
