"""A tracer that stands still itself in the middle of a stop is ended by the kernel, and its targets run on."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gdbext.capture import private_folder
from gdbext.capture.copies import held_note
from gdbext.capture.machine import known_machine
from gdbext.capture.stop import copy_of_process, kill_timer, ptrace, several_processes
from gdbext.capture.stop.kill_timer import GRACE
from tests.inferiors.capture_process import CaptureProcess
from tests.polling import wait_until

LIMIT = 0.2  # of the stop, in seconds
SLACK = 60.0  # seconds for a busy machine

# Holds the processes of its arguments; says so when they stand still, and then does what the first argument says.
HOLD = """
import os, signal, sys, tempfile, time
from dataclasses import replace
from pathlib import Path
from gdbext.capture.stop import copy_of_process as stop
from gdbext.capture.copies.held_note import Note
from gdbext.capture.private_folder import private_copies

def during(pid):
    print("held", os.getpid(), flush=True)
    if sys.argv[1] == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(1000)

with private_copies() as folder:
    budget = stop.Budget(seconds=float(sys.argv[2]), note=Note(folder))
    stop.copy_processes([int(pid) for pid in sys.argv[3:]], budget, during)
"""


@contextlib.contextmanager
def holder(how, *processes, limit=LIMIT, **options):
    """A gdbext that holds them, and stands still itself. One whose stop took all of its time on a busy machine lets go
    before it comes to that: then the next one is started."""
    words = [sys.executable, "-c", HOLD, how, str(limit), *(str(process.pid) for process in processes)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as started:

        def holds():
            process = started.enter_context(subprocess.Popen(words, stdin=subprocess.DEVNULL, **pipes, **options))
            started.callback(process.kill)
            return process.stdout.readline().startswith("held") and process

        yield wait_until(holds, "somebody holds them")


@pytest.mark.process
@pytest.mark.parametrize("how", ["stopped", "blocked"])
def test_a_tracer_that_stands_still_itself_is_ended_and_the_threads_run_on(how):
    with CaptureProcess(threads=20) as process:
        process.ask("reset")
        with holder(how, process) as ours:
            since = time.monotonic()
            assert ours.wait() == -signal.SIGKILL
            assert time.monotonic() - since < LIMIT + GRACE + SLACK
            said = ours.stderr.read()
        process.assert_free()
        gaps = [end - start for _, start, end in process.hearts()]
    assert all(GRACE * 1e9 < gap < (LIMIT + GRACE + SLACK) * 1e9 for gap in gaps)
    assert f"while it held pid {process.pid} " in said and said.count("\n") == 1
    assert re.search(r"suspended for [1-9]\d* s while it held", said)


@pytest.mark.process
def test_a_stop_signal_for_its_whole_group_does_not_reach_the_kernel():
    """Ctrl-Z waits until the stop is over; `kill -STOP -PGID` does not, and there is no guard that it could stop."""
    with CaptureProcess() as process, holder("blocked", process, start_new_session=True) as ours:
        os.killpg(ours.pid, signal.SIGSTOP)
        assert ours.wait() == -signal.SIGKILL
        process.assert_free()


@pytest.mark.process
def test_killed_early_it_says_nothing():
    with CaptureProcess() as process, holder("blocked", process, limit=60) as ours:
        ours.kill()
        assert ours.stderr.read() == ""
        process.assert_free()


@pytest.mark.process
def test_a_signal_that_comes_between_the_seizing_and_the_stop_does_not_hold_a_thread(monkeypatch):
    """It stops the thread until its tracer hands the signal over."""
    script = """
import os, signal, sys
from gdbext.capture.stop import ptrace, copy_of_process as stop
seized = ptrace.Tracees.seize_new
def seize_new(self):
    seized(self)
    os.kill(self.pid, signal.SIGWINCH)
    tasks = f"/proc/{self.pid}/task"
    while not any(") t " in open(f"{tasks}/{tid}/stat").read() for tid in os.listdir(tasks)):
        pass  # the signal comes to a thread when that gets a processor
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
ptrace.Tracees.seize_new = seize_new
stop.copy_process(int(sys.argv[1]), stop.Budget(seconds=2.0))
"""
    with CaptureProcess() as process:
        words = [sys.executable, "-c", script, str(process.pid)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ours:
            assert ours.stdout.readline() == "held\n"
            assert ours.wait() == -signal.SIGKILL
        process.assert_free()


def cgroup_2():
    """Where a cgroup of version 2 can be made; its freezer needs no controller."""
    found = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((Path(words[1]) for words in found if words[2] == "cgroup2" and os.access(words[1], os.W_OK)), None)


@pytest.mark.process
@pytest.mark.skipif(cgroup_2() is None, reason="no cgroup of version 2 that we may write")
def test_a_frozen_cgroup_holds_nobody_for_longer():
    group = cgroup_2() / f"gdbext-test-{os.getpid()}"
    group.mkdir()
    try:
        with CaptureProcess() as process, holder("blocked", process, limit=3.0) as ours:
            (group / "cgroup.procs").write_text(str(ours.pid))
            (group / "cgroup.freeze").write_text("1")
            assert ours.wait() == -signal.SIGKILL
            process.assert_free()
            (group / "cgroup.freeze").write_text("0")
        wait_until(lambda: not (group / "cgroup.procs").read_text())
    finally:
        group.rmdir()


@pytest.mark.process
def test_the_turns_have_it_too():
    script = """
import os, signal, sys
from gdbext.capture.stop import copy_of_process as stop
def read_registers(self):
    os.kill(os.getpid(), signal.SIGSTOP)
stop.Tracees.read_registers = read_registers
stop.copy_in_turns({int(sys.argv[1]): [int(sys.argv[1])]}, stop.Budget(seconds=0.2))
"""
    with CaptureProcess() as process:
        process.wait_asleep()
        words = [sys.executable, "-c", script, str(process.pid)]
        assert subprocess.run(words).returncode == -signal.SIGKILL
        process.assert_free()


@pytest.mark.process
def test_nobody_is_ended_after_a_stop_that_went_well():
    """What was set is taken back: later than the limit this process, and its thread that traced, are long at rest."""
    with CaptureProcess() as process:
        words = [
            "import sys, time; from gdbext.capture.stop import kill_timer, copy_of_process; kill_timer.GRACE = 0.3",
            "copy_of_process.copy_process(int(sys.argv[1]), copy_of_process.Budget(seconds=2.0)); time.sleep(2.5)",
        ]
        done = subprocess.run([sys.executable, "-c", "\n".join(words), str(process.pid)])
    assert done.returncode == 0


@pytest.mark.process
@pytest.mark.parametrize("how", ["copy_process(pid, budget)", "copy_in_turns({pid: [pid]}, budget)"])
def test_nobody_is_ended_who_gets_no_processor_after_all_are_free(how):
    """On a busy machine what is left to do can take longer than the stop may."""
    script = f"""
import sys, time
from gdbext.capture.stop import copy_of_process as stop, kill_timer
kill_timer.GRACE = 0.0
release = stop._release
def late(group, timer):
    release(group, timer)
    time.sleep(1.0)
stop._release = late
pid, budget = int(sys.argv[1]), stop.Budget(seconds=0.5)
stop.{how}
"""
    with CaptureProcess() as process:
        process.wait_asleep()
        assert subprocess.run([sys.executable, "-c", script, str(process.pid)]).returncode == 0
        process.assert_free()


def test_a_thread_that_did_not_stop_is_not_free(monkeypatch):
    """It may come to its stop later; only the end of the tracing thread lets it go."""
    monkeypatch.setattr(ptrace, "_seize", lambda *_: 0)
    monkeypatch.setattr(ptrace, "_ptrace", lambda *_: 0)
    monkeypatch.setattr(ptrace.Tracees, "_reported", lambda self, tid: self._signals.setdefault(7, 0) or tid == 7)
    tracees = ptrace.Tracees(7, known_machine(), 8)
    assert tracees.all_free
    tracees.seize([7, 8])
    tracees.interrupt(time.monotonic() + SLACK)
    tracees.settle(time.monotonic())
    tracees.release()
    assert not tracees.all_free
    tracees._ours.discard(8)
    assert tracees.all_free


@pytest.mark.process
def test_where_there_is_no_timer_the_stop_is_as_it_was(monkeypatch):
    monkeypatch.setattr(kill_timer, "_create", lambda *_: -1)
    assert "timer_create: " in kill_timer.why_none()
    monkeypatch.setattr(kill_timer, "_create", None)
    assert kill_timer.why_none() == "the C library has no timer_create"
    with CaptureProcess() as process:
        assert copy_of_process.copy_process(process.pid).state == "ok"
        process.assert_free()


def test_it_can_be_had_here():
    assert kill_timer.why_none() is None


@pytest.mark.process
@pytest.mark.parametrize("held", [True, False])
def test_one_of_several_that_is_stopped_costs_its_share_time_and_no_more(held, monkeypatch):
    """The front end stays, copies that share once more, and tells the pause that it had."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(several_processes, "_LOOK", 60.0 if held else 0.05)  # as where a frozen cgroup does not show it
    parent, limit = os.getpid(), 3.0

    def during(pid):
        if pid == second.pid and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGSTOP)
        return (pid,)

    with CaptureProcess() as first, CaptureProcess() as second:
        pids = [first.pid, second.pid]
        whole, late = several_processes.copy_together(pids, copy_of_process.Budget(seconds=limit), during)
        first.assert_free()
        second.assert_free()
    assert (whole.during, late.during) == ((pids[0],), (pids[1],))
    assert whole.problems == () and whole.felt_ms < limit * 1e3
    assert len(late.problems) == 1 and "was itself suspended (SIGSTOP, a frozen cgroup?)" in late.problems[0]
    assert late.pause_ms >= late.felt_ms > (1e3 * (limit + GRACE) if held else 0)


@pytest.mark.process
def test_a_child_that_is_stopped_after_it_let_go_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(several_processes, "_LOOK", 0.05)
    plain, parent = several_processes._plain, os.getpid()

    def stopped(copy):
        if copy.pid == second.pid and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGSTOP)
        return plain(copy)

    monkeypatch.setattr(several_processes, "_plain", stopped)
    with CaptureProcess() as first, CaptureProcess() as second:
        whole, late = several_processes.copy_together([first.pid, second.pid])
        assert (whole.state, late.state) == ("ok", "partial")


def test_the_janitor_reads_what_the_note_says(tmp_path):
    """Its pids are as many as fit."""
    note = held_note.Note(tmp_path)
    note.holds(range(4_000_000, 4_000_500), 3.0)
    first, rest = (tmp_path / held_note.HELD).read_text().split("\n")
    since, limit, pids = first.split(maxsplit=2)
    assert (limit, pids.split(" and ")[1].strip(), rest) == ("299", "492 more", "")
    assert abs(int(since) / 100 - float(Path("/proc/uptime").read_text().split()[0])) < SLACK
    note.free()
    assert (tmp_path / held_note.HELD).read_text().strip() == ""
    assert f"$1/{held_note.HELD}\n" in private_folder._CLEAN_UP
