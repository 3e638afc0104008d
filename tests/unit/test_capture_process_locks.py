"""Who holds a lock of multiprocessing, by what each process counts for itself."""

import pytest

from gdbext.capture.locks_in_memory.process_locks import Searched, with_owners
from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.model.locks import LockWait
from gdbext.model.missing import Missing
from tests.inferiors.python_target import PythonTarget, interpreters
from tests.unit.stacks import stack

pytestmark = pytest.mark.process

NOBODY = Missing("a semaphore has no owner: anybody may post it")
ENTERS = "SemLock.__enter__@/usr/lib/python3/multiprocessing/synchronize.py:95"
PYTHONS = {version: path for version, path in interpreters().items() if version < (3, 14)}


class AnyThread(dict):
    def get(self, thread):
        return thread and 7


def searched(pid):
    return Searched(pid, read_maps(pid), ProcessMemory(pid).read, AnyThread())


def owner(processes, address, *frames):
    wait = LockWait(5, "semaphore", address, NOBODY, shared=True)
    thread = stack("sem_wait@libc.so.6", *(frames or (ENTERS,)), lwp=5)
    (found,) = with_owners([wait], [thread], processes[0], processes)
    assert found is not wait or found.owner == NOBODY
    return found.owner_process if found.kind == "mutex" else None


@pytest.mark.parametrize("version", sorted(PYTHONS), ids=str)
def test_the_process_that_has_acquired_it(version):
    with PythonTarget("python_semaphores.py", python=PYTHONS[version]) as target:
        child, *words = target.words
        at = {name: int(address) for name, address in (word.split("=") for word in words)}
        both = [searched(target.pid), searched(int(child))]
        assert owner(both, at["childs"]) == int(child)
        assert owner(both, at["free"]) is None
        assert owner(both, at["counted"]) is None, "several may have it"
        assert owner(both, at["slot"]) is None, "one has taken it and another has given it back"
        assert owner(both, at["lock"], "Queue.get@multiprocessing/queues.py:9") is None, "others may post it"
        assert owner(both, at["lock"] + 8) is None
        acquires = "_multiprocessing_SemLock_acquire_impl@python3"
        assert owner(both, at["childs"], acquires, "work@program.py:15") == int(child)
        assert owner(both, at["childs"], acquires, "Queue.put@multiprocessing/queues.py:88") is None
        assert owner(both, at["lock"], acquires, "work@program.py:15") is None, "it has the lock itself: a signal"


def test_what_a_child_inherited_is_not_its_own():
    """multiprocessing sets its copies of the counters back."""
    with PythonTarget("python_semaphores.py") as target:
        child, *words = target.words
        at = {name: int(address) for name, address in (word.split("=") for word in words)}
        both = [searched(target.pid), searched(int(child))]
        assert {owner(both, at[name]) for name in ("lock", "recursive")} == {target.pid}
        assert owner(both[1:], at["lock"]) is None
        assert owner([both[0], both[0]], at["lock"]) is None, "two have it: it cannot be told whose it is"
