"""Locks that are files and are asked for again and again: beside who works, with their holder, and left behind."""

from dataclasses import replace

import pytest

from gdbext.model.activity import Activity, Child
from gdbext.model.locks import Peer
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, process, verdict
from tests.unit.test_analysis_pool_tasks import NOT_YET, RESULT

TRIES = ("clock_nanosleep@libc.so.6", "FileBaton.wait@torch/utils/file_baton.py:50", "build@engine.py:8", *MAIN)
COMPILES = ("wait4@libc.so.6", "Popen._try_wait@subprocess.py:2004", "Popen.wait@subprocess.py:1264", *MAIN)


def ranks(used, third=TRIES):
    compiler = replace(process(0, stack(*COMPILES, syscall=(61, 9, 0, 0, 0, 0, 0), switches=0, state="S")))
    compiler = replace(compiler, activity=Activity(2.0, children=(Child("cc1plus", 9, used),)))
    waiting = [
        process(number, stack(*frames, sleeps=0.1, switches=20, state="S"), activity=Activity(2.0))
        for number, frames in ((1, TRIES), (2, third))
    ]
    return verdict(compiler, *waiting)


def test_ranks_that_ask_for_a_lock_file_while_another_one_compiles_are_no_finding():
    found = ranks(0.9)
    assert (found.cause, found.finding, bool(found.decided_by)) == (*NOT_YET, True)
    assert "waits for a compiler (child process cc1plus used 90% of a core)" in found.summary


def test_a_compiler_that_does_nothing_proves_nothing():
    found = ranks(0.0)
    assert "a compiler" not in found.summary
    assert found.cause != "not-a-hang"


PATH = "/cache/model.lock"


def asks(number, *holders, frames=TRIES):
    """It sleeps between two tries to get what these have."""
    peers = (Peer(100 + number, PATH, holders, ("S",) * len(holders), ("python",) * len(holders), lock=True),)
    return process(number, stack(*frames, sleeps=0.1, switches=20, state="S"), peers=peers, activity=Activity(2.0))


def test_a_lock_of_who_provably_compiles_is_no_hang():
    compiler = process(0, stack(*COMPILES, syscall=(61, 9, 0, 0, 0, 0, 0), switches=0, state="S"))
    compiler = replace(compiler, activity=Activity(2.0, children=(Child("cc1plus", 9, 0.9),)))
    assert verdict(compiler, asks(1, 100), asks(2, 100)).cause == "not-a-hang"
    assert verdict(compiler, asks(1, 100), asks(2, 880)).cause == "unknown"  # of another one


def test_a_lock_of_who_computes_is_no_hang():
    works = process(0, stack("step@program.py:8", *MAIN, state="R", cpu=0.9, switches=9))
    assert verdict(works, asks(1, 100)).cause == "not-a-hang"


def test_a_lock_file_that_nobody_has_was_left_behind():
    found = verdict(asks(0))
    assert (found.cause, found.culprits, found.finding) == ("other", (0,), True)
    assert "it was left behind, or its owner is in another container" in found.summary


TASK = ("_process_worker@concurrent/futures/process.py:261", *MAIN)


@pytest.mark.parametrize(
    ("inner", "switches", "cause"), [(TASK, 0, "lock-order-deadlock"), (TASK, 2, None), ((), 0, None)]
)
def test_who_has_the_lock_that_its_own_task_wants(inner, switches, cause):
    parent = process(0, stack(*RESULT, "build@engine.py:9", *MAIN, syscall=FUTEX, switches=switches, state="S"))
    task = asks(1, 100, frames=(*TRIES[:3], *(inner or MAIN)))
    found = verdict(*(replace(one, title="python engine.py") for one in (parent, task)))
    assert (found.cause == "lock-order-deadlock") is bool(cause)
    assert found.culprits == ((0, 1) if cause else () if switches else (1,))
