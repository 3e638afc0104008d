"""Suspended tasks of asyncio of real interpreters: where they stand, what they ask for and what they have."""

import os

import pytest

from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python import asyncio_tasks
from gdbext.capture.python.python_frames import freeze, resolve, thread_of
from gdbext.capture.python.runtime import find_interpreter
from gdbext.knowledge.runtimes.cpython_objects import COROUTINES
from tests.inferiors.python_target import PythonTarget, interpreters

pytestmark = pytest.mark.process

PYTHONS = {version: path for version, path in interpreters().items() if version in COROUTINES}


def frozen(pid):
    read = ProcessMemory(pid).read
    found = find_interpreter(read_maps(pid), read, os.path.realpath(f"/proc/{pid}/exe"))
    return freeze(found, read), read


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_tasks_locks_and_who_has_them(version):
    with PythonTarget("python_tasks.py", python=PYTHONS[version]) as target:
        state, read = frozen(target.pid)
        stacks = resolve(state, read, [target.pid], tasks=asyncio_tasks.reader(state, read))
        one, other = (int(word, 16) for word in target.words)
    tasks = {task.name: task for task in stacks.tasks}
    assert set(tasks) >= {"in", "out", "consumer", "server"} and len(tasks) == 6  # and main, which has a number
    assert {task.thread for task in stacks.tasks} == {target.pid}
    assert (tasks["in"].wants, tasks["in"].holds) == (other, (one,))
    assert (tasks["out"].wants, tasks["out"].holds) == (one, (other,))
    assert tasks["again"].holds == (tasks["again"].wants,)  # a lock that it has already
    assert tasks["in"].frames[0].function.endswith("acquire")
    assert tasks["in"].frames[-1].function == "move" and tasks["in"].frames[-1].line == 10
    assert tasks["consumer"].frames[0].function.endswith("get") and not tasks["consumer"].wants
    assert "_GatheringFuture" in {task.waits_for for task in stacks.tasks}


@pytest.mark.parametrize("version", sorted(set(interpreters()) - set(COROUTINES)), ids=str)
def test_of_other_releases_there_are_none(version):
    with PythonTarget("python_tasks.py", python=interpreters()[version]) as target:
        state, read = frozen(target.pid)
        assert asyncio_tasks.reader(state, read)(thread_of(state, read, target.pid), target.pid) == ()


def test_damaged_memory_has_no_tasks():
    with PythonTarget("python_tasks.py") as target:
        state, read = frozen(target.pid)
        thread = thread_of(state, read, target.pid)
        for byte in (None, b"\0", b"\xff"):
            found = asyncio_tasks.reader(state, lambda address, size, byte=byte: byte and byte * size)
            assert found(thread, target.pid) == ()
