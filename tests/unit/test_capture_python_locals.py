"""Local variables of real interpreters: the addresses that the program itself says; and damaged memory."""

import os

import pytest

from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python import item_counts, local_marks
from gdbext.capture.python.local_variables import locals_of
from gdbext.capture.python.python_frames import freeze, thread_of
from gdbext.capture.python.runtime import find_interpreter
from gdbext.knowledge.runtimes.cpython import LOCALS
from gdbext.knowledge.runtimes.cpython_objects import COROUTINES, GENERATOR
from gdbext.model.missing import Missing
from tests.inferiors.python_target import PythonTarget, interpreters

pytestmark = pytest.mark.process

PYTHONS = {version: path for version, path in interpreters().items() if version in LOCALS}


def frozen(pid):
    read = ProcessMemory(pid).read
    found = find_interpreter(read_maps(pid), read, os.path.realpath(f"/proc/{pid}/exe"))
    state = freeze(found, read)
    return state, thread_of(state, read, pid), read


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_names_and_objects_are_those_of_the_program(version):
    with PythonTarget("python_locals.py", python=PYTHONS[version]) as target:
        frames = locals_of(*frozen(target.pid))
        said = dict(word.split("=") for word in target.words)
    found = {}
    for frame in frames:
        name = frame.function.rpartition(".")[2]
        found.update({f"{name}.{local.name}": f"{local.address:x}" for local in frame.variables})
    assert len(said) == 9
    assert {name: found.get(name) for name in said} == said
    assert "outer.unbound" not in found
    assert [frame.is_module for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert all(frame.line and frame.file.endswith("python_locals.py") for frame in frames)


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_the_mark_of_a_frame_changes_with_its_variables(version):
    def marks():
        state, thread, read = frozen(target.pid)
        found = local_marks.reader(state, read)(thread)
        assert len(found) == len(locals_of(state, thread, read)) and all(found)
        return found[1:4]  # turns, turn, wait

    with PythonTarget("python_turns.py", python=PYTHONS[version]) as target:
        first = marks()
        assert marks() == first
        target.process.stdin.write("\n")
        target.process.stdin.flush()
        assert target.process.stdout.readline() == "ready\n"
        target.until_it_reads()
        later = marks()
    assert [old == new for old, new in zip(first, later)] == [False, False, True]


def test_a_frame_that_is_another_by_now_has_no_mark():
    with PythonTarget("python_locals.py") as target:
        state, thread, read = frozen(target.pid)
        lost = thread.addresses[-1]
        found = local_marks.reader(state, lambda at, size: b"?" * size if at == lost else read(at, size))(thread)
    assert found[0] == 0 and all(found[1:])


def test_generators_that_lead_to_each_other_end():
    """Memory in which every value is a generator, whose frame has such values again."""
    with PythonTarget("python_loops.py") as target:
        state, thread, read = frozen(target.pid)
        asked = []

        class Everything:
            full_name = GENERATOR

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(item_counts.Classes, "class_of", lambda self, address: asked.append(address) or Everything)
            patch.setattr(item_counts.Locals, "stack_values", lambda self, address, frame: list(range(1, 65)))
            assert item_counts.loops(state, read)(thread) == ()
    assert 64 < len(asked) <= 1 << 12


def test_memory_that_is_not_there_any_more():
    """Whatever page is lost after the stop: fewer names, and no error."""
    with PythonTarget("python_locals.py") as target:
        state, thread, read = frozen(target.pid)
        pages = set()

        def noted(address, size):
            pages.add(address >> 12)
            return read(address, size)

        complete = locals_of(state, thread, noted)
        for page in sorted(pages):
            part = locals_of(state, thread, lambda at, size, lost=page: None if at >> 12 == lost else read(at, size))
            assert len(part) == len(complete)
            assert sum(len(frame.variables) for frame in part) <= sum(len(frame.variables) for frame in complete)


def test_a_release_without_a_row(monkeypatch):
    with PythonTarget("python_locals.py") as target:
        state, thread, read = frozen(target.pid)
        monkeypatch.delitem(LOCALS, state.interpreter.version)
        answer = locals_of(state, thread, read)
    assert isinstance(answer, Missing)
    assert answer.reason.startswith("local variables of Python 3.")


def test_a_thread_without_python():
    with PythonTarget("python_locals.py") as target:
        state, _thread, read = frozen(target.pid)
        assert thread_of(state, read, 1) is None


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_lengths_of_containers_that_are_variables(version):
    with PythonTarget("python_lengths.py", python=PYTHONS[version]) as target:
        state, thread, read = frozen(target.pid)
        found = item_counts.lengths(state, read)(thread)
    assert found == {"wait.tensors": 11, "wait.names": 3, "wait.layers": 2, "wait.seen": 5, "wait.waiting": 4}
    assert item_counts.lengths(state, lambda address, size: None)(thread) == {}


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_how_many_items_loops_have_left(version):
    def loops():
        state, thread, read = frozen(target.pid)
        assert item_counts.loops(state, lambda address, size: None)(thread) == ()
        return item_counts.loops(state, read)(thread)

    with PythonTarget("python_loops.py", python=PYTHONS[version]) as target:
        first = loops()
        target.process.stdin.write("\n")
        target.process.stdin.flush()
        assert target.process.stdout.readline() == "ready\n"
        target.until_it_reads()
        later = loops()
    known = [("inner", 999_999_996)] if version in COROUTINES else []  # it goes through a generator
    assert [(one.function, one.left) for one in first] == [*known, ("outer", 1), ("outer", 44)]
    assert [one.iterator for one in later] == [one.iterator for one in first]
    assert [one.left for one in later] == [*(left - 1 for _, left in known), 1, 44]
