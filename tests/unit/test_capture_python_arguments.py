"""Groups and ranks that calls of torch.distributed were made with, in the memory of real interpreters."""

import os

import pytest

from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python import python_arguments
from gdbext.capture.python.python_frames import freeze, resolve
from gdbext.capture.python.runtime import find_interpreter
from gdbext.knowledge.runtimes.cpython_objects import OBJECTS
from tests.inferiors.python_target import PythonTarget, interpreters
from tests.polling import wait_until

pytestmark = pytest.mark.process

PYTHONS = {version: path for version, path in interpreters().items() if version in OBJECTS}
ALL = ",".join(map(str, range(300)))


def said(pid, read):
    """What was read of each call, by its frame."""
    found = find_interpreter(read_maps(pid), ProcessMemory(pid).read, os.path.realpath(f"/proc/{pid}/exe"))
    frozen = freeze(found, ProcessMemory(pid).read)
    stacks = resolve(frozen, ProcessMemory(pid).read, arguments=python_arguments.reader(frozen, read))
    frames = [frame for thread in stacks.threads.values() for frame in thread.frames if frame.captures]
    return sorted(((frame.function.rpartition(".")[2], dict(frame.captures)) for frame in frames), key=str)


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_groups_and_ranks_are_those_of_the_calls(version):
    with PythonTarget("python_groups.py", python=PYTHONS[version]) as target:
        found = said(target.pid, ProcessMemory(target.pid).read)
    expected = [
        ("_new_group_with_tag", {"ranks": "1,2,3", "group_name": "2"}),
        ("all_reduce", {"group": "0", "ranks": ALL}),
        ("all_reduce", {"group": "tp:1", "ranks": "260,3"}),
        ("new_group", {"ranks": "3,1,2"}),
        ("recv", {"group": "0", "ranks": ALL}),
        ("recv", {"group": "0", "ranks": ALL, "src": 2}),
        ("recv", {"group": "tp:1", "ranks": "260,3", "group_src": 0}),
    ]
    assert found == sorted(expected, key=str)


def test_memory_that_is_not_there_any_more():
    """Whatever page is lost after the stop: less is known, and nothing else."""
    with PythonTarget("python_groups.py") as target:
        read, pages = ProcessMemory(target.pid).read, set()

        def noted(address, size):
            pages.add(address >> 12)
            return read(address, size)

        complete = said(target.pid, noted)
        assert len(complete) == 7
        for page in sorted(pages):
            part = said(target.pid, lambda at, size, lost=page: None if at >> 12 == lost else read(at, size))
            assert len(part) <= len(complete)
            values = {f"{name}:{value}" for _, one in complete for name, value in one.items()}
            assert {f"{name}:{value}" for _, one in part for name, value in one.items()} <= values


def test_a_frame_that_is_another_one_by_then():
    with PythonTarget("python_groups.py") as target:
        read = ProcessMemory(target.pid).read
        assert (
            said(target.pid, lambda address, size: bytes(size) if size in range(60, 80) else read(address, size)) == []
        )


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_the_names_of_files_that_are_locks(version):
    with PythonTarget("python_lock_files.py", python=PYTHONS[version]) as target:
        found = said(target.pid, ProcessMemory(target.pid).read)
    assert found == [
        ("_poll_until_acquired", {"lock_file": "/cache/model.lock"}),
        ("wait", {"lock_file": "/cache/build/lock"}),
    ]


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_whose_end_a_thread_waits_for(version):
    with PythonTarget("python_rlocks.py", python=PYTHONS[version]) as target:
        ident = int(target.words[1])
        # It says that it has started before it calls.
        wait_until(lambda: said(target.pid, ProcessMemory(target.pid).read), "a thread is in join()")
        found = said(target.pid, ProcessMemory(target.pid).read)
    assert found == [("join", {"joined_thread": ident})]
