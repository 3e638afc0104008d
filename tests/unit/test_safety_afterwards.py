"""After a look: nobody is left traced or stopped, and every rank lives as it did before."""

import os
import signal
import subprocess
import sys

import pytest

from gdbext.capture.copies.syscall_line import RUNNING, Standing
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.capture.without_stop.kernel_threads import look
from gdbext.capture.without_stop.sleeping_threads import Mark
from gdbext.collect.release_check import marks_of, sign_of
from gdbext.knowledge.runtimes.system_calls import RESTART
from gdbext.model.job import AFTER
from gdbext.render import Style, render
from tests.inferiors.capture_process import CaptureProcess
from tests.polling import wait_until
from tests.unit.render_samples import hang
from tests.unit.stacks import job, syncing

HOLD = """
import ctypes, sys
ptrace = ctypes.CDLL(None).ptrace
assert ptrace(0x4206, int(sys.argv[1]), None, None) == 0
assert ptrace(0x4207, int(sys.argv[1]), None, None) == 0
print("held", flush=True)
sys.stdin.read()
"""
QUIET = {
    "reads": "import sys; print('ready', flush=True); sys.stdin.readline()",
    "polls": "import select; print('ready', flush=True); select.poll().poll(10**9)",
    "reads, then sleeps": "import sys, time; print('ready', flush=True); sys.stdin.readline(); time.sleep(1e6)",
}


class Quiet:
    """A Python process with one thread that is blocked."""

    def __init__(self, does):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", QUIET[does]], **pipes)
        self.pid = self.process.pid

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        self.wait_asleep()
        return self

    def __exit__(self, *details):
        self.process.kill()
        self.process.communicate()

    def wait_asleep(self, number=None):
        """In a system call; in another one than `number`."""
        wait_until(lambda: (look(self.pid)[self.pid].syscall or [number])[0] != number)

    def state(self):
        return look(self.pid)[self.pid].state


@pytest.fixture
def sleeper():
    with Quiet("reads") as one:
        yield one


@pytest.mark.process
def test_who_runs_runs():
    with CaptureProcess(threads=2) as process:
        before, since = look(process.pid), marks_of(process.pid)
        beats = process.hearts()[0][0]
        wait_until(lambda: process.hearts()[0][0] > beats)
        assert sign_of(process.pid, before, since) == ("runs", "")


@pytest.mark.process
@pytest.mark.parametrize("does", ["reads", "polls"])
def test_who_waits_waits_after_a_stop_too(does):
    """A poll with a time-out goes on as another system call after it was interrupted: that is no progress."""
    with Quiet(does) as one:
        before = look(one.pid)
        assert copy_process(one.pid).state == "ok"
        one.wait_asleep()
        assert (look(one.pid)[one.pid].syscall[0] == RESTART) == (does == "polls")
        assert sign_of(one.pid, before, marks_of(one.pid)) == ("waits", "")


@pytest.mark.process
def test_who_went_on_to_another_call_does_not_wait_as_before():
    with Quiet("reads, then sleeps") as one:
        before = look(one.pid)
        one.process.stdin.write("\n")
        one.process.stdin.flush()
        one.wait_asleep(before[one.pid].syscall[0])
        assert sign_of(one.pid, before, marks_of(one.pid)).word in ("moved", "runs")  # runs: it had just begun to sleep
        wait_until(lambda: sign_of(one.pid, before, marks_of(one.pid)).word == "moved")


@pytest.mark.process
def test_a_rank_that_a_foreign_hand_stopped_is_noticed(sleeper):
    before, since = look(sleeper.pid), marks_of(sleeper.pid)
    os.kill(sleeper.pid, signal.SIGSTOP)
    wait_until(lambda: sleeper.state() == "T")
    word, trouble = sign_of(sleeper.pid, before, since)
    assert word == "stopped"
    assert trouble == f"it is stopped now and was in state S before; kill -CONT {sleeper.pid} resumes it"


@pytest.mark.process
def test_a_rank_that_was_stopped_before_is_no_trouble_unless_it_runs(sleeper):
    os.kill(sleeper.pid, signal.SIGSTOP)
    wait_until(lambda: sleeper.state() == "T")
    before, since = look(sleeper.pid), marks_of(sleeper.pid)
    assert copy_process(sleeper.pid).was_stopped
    wait_until(lambda: sleeper.state() == "T")
    assert sign_of(sleeper.pid, before, since) == ("stopped", "")
    os.kill(sleeper.pid, signal.SIGCONT)
    wait_until(lambda: sleeper.state() == "S")
    assert "was stopped before" in sign_of(sleeper.pid, before, marks_of(sleeper.pid)).trouble


@pytest.mark.process
def test_one_thread_that_a_debugger_holds_is_noticed():
    """The process as a whole looks well then: its main thread is neither traced nor stopped."""
    with CaptureProcess(threads=3) as process:
        before, since = look(process.pid), marks_of(process.pid)
        tid = next(tid for tid in process.tids() if tid != process.pid and process.name(tid) != "heartbeat")
        words = [sys.executable, "-c", HOLD, str(tid)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "held\n"
            wait_until(lambda: process.state(tid) == "t")
            word, trouble = sign_of(process.pid, before, since)
            assert word == "traced"
            assert f"process {other.pid} traces it now and holds 1 of its {len(before)} threads" in trouble
            other.stdin.close()
        process.assert_free()
        wait_until(lambda: sign_of(process.pid, before, since) == ("runs", ""))


@pytest.mark.process
def test_who_has_ended_is_gone(sleeper):
    before, since = look(sleeper.pid), marks_of(sleeper.pid)
    sleeper.process.kill()
    wait_until(lambda: not os.path.exists(f"/proc/{sleeper.pid}") or sleeper.state() == "Z")
    assert sign_of(sleeper.pid, before, since) == ("gone", "")
    sleeper.process.wait()
    assert sign_of(sleeper.pid, before, since) == ("gone", "")


@pytest.mark.process
def test_a_thread_that_got_a_processor_has_run(sleeper, monkeypatch):
    before, since = look(sleeper.pid), dict(marks_of(sleeper.pid))
    mark = since[sleeper.pid]
    assert sign_of(sleeper.pid, before, since).word == "waits"
    assert sign_of(sleeper.pid, before, {sleeper.pid: mark._replace(counters="0 0 0")}).word == "runs"
    assert sign_of(sleeper.pid, before, {sleeper.pid: RUNNING}).word == "runs"
    assert sign_of(sleeper.pid, before, {}).word == "runs", "a thread that is new was made by somebody"
    elsewhere = Mark(Standing(0, (), 1, 1), mark.counters)
    assert sign_of(sleeper.pid, {}, {sleeper.pid: elsewhere}).word == "moved"


# --- telling it ---


def pause_line(signs):
    sample = hang(max(2, len(signs)), 0)
    processes = zip(sample.snapshot.processes[: len(signs)], signs)
    told = tuple(type(one)(**{**vars(one), "after": sign}) for one, sign in processes)
    snapshot = type(sample.snapshot)(**{**vars(sample.snapshot), "processes": told})
    lines = render(type(sample)(**{**vars(sample), "snapshot": snapshot}), Style(160))
    return next(line for line in lines if line.startswith("  pause "))


@pytest.mark.parametrize(
    ("signs", "ending"),
    [
        (["runs", "runs"], " ms for each process; all are running again"),
        (["waits", "waits", "runs"], " ms for each process; 1 is running again, 2 wait as before"),
        (
            ["runs", "stopped", "traced"],
            " ms for each process; rank 1 is stopped, rank 2 is traced, 1 is running again",
        ),
        (["moved"], " ms; it waits in a different call than before"),
        ([None, None], " ms for each process"),
    ],
)
def test_the_line_of_the_pause_tells_it(signs, ending):
    assert pause_line(signs).endswith(ending)


def test_every_word_has_a_meaning():
    assert set(AFTER) == {"runs", "waits", "moved", "held", "stopped", "traced", "gone"}
    for word in AFTER:
        assert pause_line([word, word]) != pause_line([None, None])
    assert job(syncing(0)).processes[0].after is None
