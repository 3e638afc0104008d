"""Suspended tasks of asyncio of real interpreters: where they stand, what they ask for and what they have."""

import os

import pytest

from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python import asyncio_tasks
from gdbext.capture.python.python_frames import freeze, resolve, thread_of
from gdbext.capture.python.runtime import find_interpreter
from gdbext.capture.python.thread_facts import resolve_all
from gdbext.knowledge.runtimes.cpython_objects import COROUTINES
from gdbext.model.python import PythonStacks
from gdbext.model.stack import Frame
from gdbext.model.tasks import PythonTask
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
    assert set(tasks) >= {"in", "out", "consumer", "server"} and len(tasks) == 10  # and main, which has a number
    assert {task.thread for task in stacks.tasks} == {target.pid}
    assert (tasks["in"].wants, tasks["in"].holds) == (other, (one,))
    assert (tasks["out"].wants, tasks["out"].holds) == (one, (other,))
    assert tasks["again"].holds == (tasks["again"].wants,)  # a lock that it has already
    assert tasks["in"].frames[0].function.endswith("acquire")
    assert tasks["in"].frames[-1].function == "move" and tasks["in"].frames[-1].line == 10
    assert tasks["consumer"].frames[0].function.endswith("get") and not tasks["consumer"].wants
    assert [frame.function for frame in tasks["reads"].frames] == ["stream", "reads"]
    main = next(task for task in stacks.tasks if task.frames[-1].function == "main")
    waits = {name: tasks[name].waits_for for name in ("gathers", "waits", "joins")}
    assert (main.waits_for, waits) == ("Task", {"gathers": "Future", "waits": "Future", "joins": "Task"})
    assert not tasks["waits"].holds and {name for name, task in tasks.items() if task.limited} == set(waits)


def test_where_the_tasks_take_too_long_that_is_said_and_nothing_is_known_of_them(monkeypatch):
    monkeypatch.setattr(asyncio_tasks, "_SECONDS", -1.0)
    with PythonTarget("python_tasks.py", python=PYTHONS[max(PYTHONS)]) as target:
        state, read = frozen(target.pid)
        found = resolve_all(state, read, [target.pid])
    assert [(task.thread, task.frames) for task in found.tasks] == [(target.pid, ())]
    assert "what tasks of an event loop wait for was not read" in found.problems[-1]


def test_one_task_that_was_not_read_is_no_loop_that_was_not():
    unread = PythonTask(2, ())
    one, other = (
        PythonStacks("3.12", {}, tasks=tasks) for tasks in ((PythonTask(2, (Frame("get"),)), unread), (unread,))
    )
    assert not asyncio_tasks.with_unread(one).problems
    assert asyncio_tasks.with_unread(other).problems[0].startswith("what tasks of an event loop wait for was not read")


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_a_task_that_runs_is_none_that_could_not_be_read(version, tmp_path):
    program = tmp_path / "runs.py"
    program.write_text(
        "import asyncio\nasync def main():\n    print('ready', flush=True)\n    input()\nasyncio.run(main())\n"
    )
    with PythonTarget(program, python=PYTHONS[version]) as target:
        state, read = frozen(target.pid)
        found = resolve_all(state, read, [target.pid])
    assert (found.tasks, found.problems) == ((), ())


def test_of_a_task_that_cannot_be_read_it_is_known_that_it_is_there():
    version = max(PYTHONS)
    with PythonTarget("python_tasks.py", python=PYTHONS[version]) as target:
        state, read = frozen(target.pid)

        def damaged(address, size):
            data = read(address, size)
            return data and data.replace(b"coroutine\0", b"generator\0")

        found = resolve(state, read, [target.pid], tasks=asyncio_tasks.reader(state, damaged)).tasks
    assert len(found) == 10 and not any(task.frames for task in found)


@pytest.mark.parametrize("version", sorted(set(interpreters()) - set(COROUTINES)), ids=str)
def test_of_other_releases_it_is_said_that_they_were_not_read(version):
    with PythonTarget("python_tasks.py", python=interpreters()[version]) as target:
        state, read = frozen(target.pid)
        assert asyncio_tasks.reader(state, read)(thread_of(state, read, target.pid), target.pid) == ()
        found = resolve_all(state, read, [target.pid])
    assert [(task.thread, task.frames) for task in found.tasks] == [(target.pid, ())]
    assert found.problems[-1].endswith(f"(asyncio of Python {found.version})")


def test_damaged_memory_has_no_tasks():
    with PythonTarget("python_tasks.py") as target:
        state, read = frozen(target.pid)
        thread = thread_of(state, read, target.pid)
        for byte in (None, b"\0", b"\xff"):
            found = asyncio_tasks.reader(state, lambda address, size, byte=byte: byte and byte * size)
            assert found(thread, target.pid) == ()
