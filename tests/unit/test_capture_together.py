"""Several processes held at one moment by several of ours."""

import os
import signal
import subprocess
import sys

import pytest

from gdbext.capture.stop import several_processes
from gdbext.capture.stop.copy_of_process import copy_processes
from gdbext.capture.stop.several_processes import copy_together
from tests.inferiors.capture_process import CaptureProcess
from tests.polling import wait_until

pytestmark = pytest.mark.process


@pytest.fixture
def processes(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with CaptureProcess() as first, CaptureProcess() as second, CaptureProcess() as third:
        processes = [first, second, third]
        for process in processes:
            process.wait_asleep()
        yield processes
        for process in processes:
            if process.state() != "Z":
                process.assert_free()


def pids(processes):
    return [process.pid for process in processes]


def test_the_copies_are_those_of_a_single_process(processes):
    copies = copy_together(pids(processes))
    plain = copy_processes(pids(processes), together=True)
    assert [copy.pid for copy in copies] == [copy.pid for copy in plain] == pids(processes)
    for copy, other in zip(copies, plain):
        assert copy.state == "ok"
        assert {thread.tid for thread in copy.threads} == {thread.tid for thread in other.threads}
        assert [thread.registers for thread in copy.threads if thread.tid == copy.pid] == [
            thread.registers for thread in other.threads if thread.tid == copy.pid
        ]
        assert list(copy.maps) == list(other.maps)
        assert (copy.auxv, copy.exe, copy.architecture) == (other.auxv, other.exe, other.architecture)
        assert [block.address for block in copy.blocks] == [block.address for block in other.blocks]
        assert 0 < copy.felt_ms <= copy.pause_ms


def test_nobody_goes_on_before_all_stand_still(processes, monkeypatch):
    come = several_processes._Meeting.come

    def watching(self, number, which):
        if number == 1 and which == several_processes._STILL:
            wait_until(lambda: [process.state() for process in processes] == ["t", "t", "t"])
        come(self, number, which)

    monkeypatch.setattr(several_processes._Meeting, "come", watching)
    assert [copy.problems for copy in copy_together(pids(processes), several_processes.Budget(seconds=60))] == [()] * 3


def test_what_is_read_of_those_that_stand_still(processes):
    def looks(pid):
        return os.getpid(), processes[pids(processes).index(pid)].state(), b"\0", None

    seen = [copy.during for copy in copy_together(pids(processes), during=looks)]
    assert [one[1:] for one in seen] == [("t", b"\0", None)] * 3
    assert {one[0] for one in seen}.isdisjoint({os.getpid()})
    assert len({one[0] for one in seen}) == 2


def test_one_that_has_ended_does_not_cost_the_others(processes):
    processes[1].kill()
    copies = copy_together(pids(processes))
    assert [copy.state for copy in copies] == ["ok", "lost", "ok"]
    assert "zombie" in copies[1].problems[0]


def test_a_child_that_is_killed_while_it_holds_its_share(processes):
    """The kernel lets its share go, the others do not wait for it, and the share is copied once more."""

    def killed(pid):
        if pid == processes[1].pid and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return (pid,)

    parent = os.getpid()
    copies = copy_together(pids(processes), during=killed)
    assert [copy.during for copy in copies] == [(pid,) for pid in pids(processes)]
    assert [copy.problems for copy in copies] == [(), (several_processes._MISSED,), ()]


def test_a_child_that_is_late_is_told(processes, monkeypatch):
    monkeypatch.setattr(several_processes, "_LONGEST", 0.01)
    come = several_processes._Meeting.come

    def late(self, number, which):
        if number == 1:
            for process in (processes[0], processes[2]):
                process.wait_asleep()  # they were let go already
        come(self, number, which)

    monkeypatch.setattr(several_processes._Meeting, "come", late)
    copies = copy_together(pids(processes), several_processes.Budget(seconds=0.02))
    assert several_processes._MISSED in copies[0].problems


def test_without_room_for_children(processes, monkeypatch):
    def refuses():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuses)
    copies = copy_together(pids(processes))
    assert [len(copy.threads) for copy in copies] == [len(process.tids()) for process in processes]
    assert [copy.problems for copy in copies] == [(several_processes._MISSED,)] * 3


def test_children_end_when_nobody_wants_their_words(processes, monkeypatch):
    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(several_processes, "_come_home", fails)
    real, children = os.fork, []
    monkeypatch.setattr(os, "fork", lambda: children.append(real()) or children[-1])
    with pytest.raises(MemoryError):
        copy_together(pids(processes), during=lambda _: (b"more than a pipe holds" * 10000,))
    assert len(children) == 2
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_children_end_when_we_are_killed(processes):
    """They had let go of their shares, but had not yet told what they saw."""
    script = f"""
import os, sys
os.sched_getaffinity = lambda _: {{0, 1}}
from gdbext.capture.stop.several_processes import copy_together
parent = os.getpid()
def during(pid):
    os.write(1, b"%d\\n" % os.getpid())
    sys.stdin.read()  # until the parent is killed
    return (bytes(1 << 20),)
copy_together({pids(processes)!r}, during=during)
"""
    front = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        children = {int(front.stdout.readline()) for _ in range(2)}
        front.kill()
    finally:
        front.communicate()
    wait_until(lambda: not any(os.path.exists(f"/proc/{child}/fd/1") for child in children))


def test_signals_wait_until_all_are_free(processes):
    seen = []

    def interrupts(pid):
        os.kill(parent, signal.SIGINT)
        return (pid,)

    parent = os.getpid()
    before = signal.signal(signal.SIGINT, lambda *_: seen.append([process.state() == "t" for process in processes]))
    try:
        copies = copy_together(pids(processes), during=interrupts)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [copy.state for copy in copies] == ["ok"] * 3
    assert seen == [[False, False, False]]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
