"""Threads that sleep are copied a few at a time: the others run on, and all is let go whatever happens."""

import os
import signal

import pytest

from gdbext.capture.copies.copied_process import Budget
from gdbext.capture.stop import copy_of_process
from gdbext.capture.stop.copy_of_process import copy_in_turns, copy_process, copy_processes
from gdbext.capture.stop.still_asleep import copy_asleep, copy_awake
from gdbext.capture.without_stop.kernel_threads import look
from tests.inferiors.capture_process import CaptureProcess, as_nobody
from tests.polling import lasts, wait_until

pytestmark = pytest.mark.process


@pytest.fixture
def process():
    with CaptureProcess(threads=40) as process:
        process.wait_asleep()
        yield process
        if process.state() != "Z":
            process.assert_free()


def turns(process, budget=None):
    (copy,) = copy_in_turns({process.pid: process.tids()}, budget)
    return copy


def whole_copy(process, known):
    def copier(pids, marks):
        return copy_processes(pids, marks=marks)

    (copy,) = copy_awake([process.pid], known, copier)
    return copy


def at_each_release(monkeypatch, do):
    """Call `do()` before each turn lets its threads go."""
    release = copy_of_process.Tracees.release
    monkeypatch.setattr(copy_of_process.Tracees, "release", lambda tracees: (do(), release(tracees)))


def test_never_more_than_a_few_stand_still(process, monkeypatch):
    still = []
    at_each_release(monkeypatch, lambda: still.append([process.state(tid) for tid in process.tids()].count("t")))
    copy = turns(process)
    assert copy.state == "ok" and {one.tid for one in copy.threads} == set(process.tids())
    assert max(still) == copy_of_process._TURN and sum(still) == len(copy.threads)
    assert 0 < copy.felt_ms <= copy.pause_ms


def test_the_copies_are_those_of_a_stop_of_all(process):
    ours, theirs = turns(process), copy_process(process.pid)
    mine, others = ({one.tid: one for one in copy.threads} for copy in (ours, theirs))
    asleep = [tid for tid in process.tids() if process.name(tid) != "heartbeat"]
    assert len(asleep) > 40
    for tid in asleep:
        one, other = mine[tid], others[tid]
        assert (one.pc, one.sp, one.stacks, one.problem) == (other.pc, other.sp, other.stacks, None)


def test_who_runs_is_left_for_the_stop(monkeypatch):
    with CaptureProcess(threads=10, busy=2) as process:
        process.wait_asleep(running=2)
        busy = {tid for tid in process.tids() if process.state(tid) == "R" and process.name(tid) != "heartbeat"}
        known = copy_asleep({process.pid: look(process.pid)})
        assert busy.isdisjoint(one.tid for one in known[process.pid].copy.threads)
        copy = whole_copy(process, known)
        assert busy <= {one.tid for one in copy.threads} and copy.state == "ok"
        process.assert_free()


def test_no_signal_is_lost_between_the_turns(monkeypatch):
    with CaptureProcess(threads=40, mode="signals") as process:
        sent = []
        at_each_release(monkeypatch, lambda: sent.append(os.kill(process.pid, signal.SIGRTMIN)))
        assert turns(process).state == "ok"
        assert len(sent) > 5
        wait_until(lambda: process.ask() == len(sent))
        process.assert_free()


def test_a_stop_signal_between_the_turns_is_obeyed(process, monkeypatch):
    at_each_release(monkeypatch, lambda: os.kill(process.pid, signal.SIGSTOP))
    assert turns(process).state == "ok"
    wait_until(lambda: {process.state(tid) for tid in process.tids()} == {"T"})
    os.kill(process.pid, signal.SIGCONT)


def test_what_there_was_no_time_for_is_left_for_the_stop(process, monkeypatch):
    monkeypatch.setattr(copy_of_process, "_TURNS", 1.0)
    at_each_release(monkeypatch, lambda: lasts(0.5))
    known = copy_asleep({process.pid: look(process.pid)})
    monkeypatch.undo()
    assert 0 < len(known[process.pid].copy.threads) < len(process.tids()) - 2
    whole = whole_copy(process, known)
    assert whole.state == "ok" and len(whole.threads) == len(process.tids())


def test_the_budget_is_for_each_turn(process, monkeypatch):
    at_each_release(monkeypatch, lambda: lasts(0.5))
    assert len(process.tids()) // copy_of_process._TURN * 0.5 > 2.0
    assert turns(process, Budget(seconds=2.0)).state == "ok"
    none = copy_asleep({process.pid: look(process.pid)}, Budget(seconds=0.0))
    assert none[process.pid].copy.threads == () and whole_copy(process, none).state == "ok"


def test_the_turns_end_with_a_thread_that_does_not_stop(process, monkeypatch):
    """It may stop later, and is held until our OS thread ends."""
    turned = []
    at_each_release(monkeypatch, lambda: turned.append(1))
    monkeypatch.setattr(
        copy_of_process.Tracees, "settle", lambda tracees, deadline: tracees.refused.update({1: "state D"})
    )
    turns(process)
    assert len(turned) == 1


def test_threads_that_have_ended(process):
    (copy,) = copy_in_turns({process.pid: [*process.tids(), 4_000_000]})
    assert copy.state == "ok" and len(copy.threads) == len(process.tids())


def test_killed_between_the_turns(process, monkeypatch):
    killed = []

    def kill():
        if not killed:
            killed.append(os.kill(process.pid, signal.SIGKILL))

    at_each_release(monkeypatch, kill)
    known = copy_asleep({process.pid: look(process.pid)})
    assert len(known[process.pid].copy.threads) <= copy_of_process._TURN
    monkeypatch.undo()
    wait_until(lambda: process.state() == "Z")
    whole = whole_copy(process, known)
    assert whole.state == "lost" and whole.problems


def test_an_error_of_ours_releases(process, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(copy_of_process.StackCopier, "copy", fail)
    with pytest.raises(MemoryError):
        turns(process)
    process.assert_free()


def test_without_permission_the_stop_says_why(process):
    def look_and_copy():
        return str(whole_copy(process, copy_asleep({process.pid: look(process.pid)})).problems)

    assert "could not be stopped: not permitted" in as_nobody(look_and_copy)
