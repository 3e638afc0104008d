"""Stop, copy, release on real processes: what is copied, and that nothing is left behind."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from gdbext.capture import machine
from gdbext.capture.copies.copied_process import Budget
from gdbext.capture.memory import process_memory
from gdbext.capture.memory.maps import read_maps
from gdbext.capture.stop import copy_of_process, ptrace
from gdbext.capture.stop.copy_of_process import copy_process, copy_processes
from tests.inferiors.capture_process import CaptureProcess, as_nobody
from tests.polling import lasts, wait_until

pytestmark = pytest.mark.process


def missing(copy):
    return [
        (thread.tid, thread.problem, thread.truncated) for thread in copy.threads if thread.problem or thread.truncated
    ]


def test_every_thread_is_copied_and_let_go():
    with CaptureProcess(threads=40, busy=1, depth=2000) as process:
        copy = copy_process(process.pid)
        process.assert_free()
        assert sorted(thread.tid for thread in copy.threads) == sorted(process.tids())
    assert copy.state == "ok", (copy.problems, missing(copy))
    assert copy.threads[0].tid == process.pid
    assert copy.pause_ms > 0
    assert copy.exe == os.path.realpath(process.program)
    for thread in copy.threads:
        assert copy.maps.find(thread.pc).executable
        assert any(block.address <= thread.sp < block.end for block in copy.blocks)


def test_the_pause_is_told_as_the_process_felt_it():
    with CaptureProcess(threads=40) as process:
        process.ask("reset")
        began = time.monotonic_ns()
        copy = copy_process(process.pid, during=lambda pid: lasts(0.2))
        ended = time.monotonic_ns()
        process.assert_free()
        gaps = [(start, end) for _, start, end in process.hearts()]
    assert 200 <= copy.felt_ms <= copy.pause_ms <= (ended - began) / 1e6
    for start, end in gaps:
        assert end - start >= 200e6
        assert end > began and start < ended


def test_deep_stacks_are_whole_until_the_budget_cuts_them():
    with CaptureProcess(threads=3, depth=5000) as process:
        whole = copy_process(process.pid)
        cut = copy_process(process.pid, Budget(stack=128 << 10))
        small = copy_process(process.pid, Budget(total=4096))
        process.assert_free()
    assert missing(whole) == []
    assert cut.state == small.state == "partial"
    assert len(missing(cut)) == 1 and "were not copied (budget)" in missing(cut)[0][2]
    assert len(cut.threads) == len(small.threads) == len(whole.threads)
    assert sum(len(block.data) for block in small.blocks) <= 4096 + (64 << 10)  # and the kernel's code page


def test_threads_beyond_the_limit_are_left_running():
    with CaptureProcess(threads=20) as process:
        copy = copy_process(process.pid, Budget(threads=5))
        process.assert_free()
    assert len(copy.threads) == 5
    assert copy.threads[0].tid == process.pid
    assert copy.problems == ("18 threads beyond the limit of 5 were left running",)


def test_no_time_at_all():
    with CaptureProcess(threads=20, busy=2) as process:
        process.ask("reset")
        copy = copy_process(process.pid, Budget(seconds=0), during=lambda pid: lasts(20))
        gaps = [end - start for _, start, end in process.hearts()]
        process.assert_free()
    assert max(gaps) < 1e10
    assert copy.felt_ms <= copy.pause_ms < 1e4
    assert copy.state in ("partial", "lost")  # what stops at once is there
    assert copy.during is None
    assert copy.problems


def test_the_time_that_was_given_ends_the_pause_whatever_is_left_to_copy(monkeypatch):
    """By the heartbeats of the process: all that was asked for would take four seconds."""
    given, most = 0.05, 3.0

    def slowly(*arguments):
        lasts(0.02)
        return read_ranges(*arguments)

    read_ranges = process_memory._read_ranges
    monkeypatch.setattr(process_memory, "_read_ranges", slowly)
    monkeypatch.setattr(process_memory, "_CALL_BYTES", 4096)  # a call for each page
    with CaptureProcess(threads=3) as process:
        stack = next(one for one in read_maps(process.pid) if one.path == "[stack]")
        process.ask("reset")
        copy = copy_process(process.pid, Budget(seconds=given), lambda pid: lasts(4), [(stack.end - 4096, 4096)] * 200)
        gaps = [end - start for _, start, end in process.hearts()]
        process.assert_free()
    assert all(given / 2 * 1e9 <= gap < most * 1e9 for gap in gaps)
    assert given / 2 * 1e3 <= copy.felt_ms <= copy.pause_ms < most * 1e3
    assert copy.during is None
    assert "--max-pause was used up before everything was read" in copy.problems


def test_time_that_ends_while_threads_are_told_to_stop(monkeypatch):
    """Those that were not told run on, and are not asked for one by one while the others stand still."""
    with CaptureProcess(threads=60) as process:
        process.wait_asleep()
        tracees, began, asked = ptrace.Tracees(process.pid, machine.this_machine(), 4096), time.monotonic(), []

        def stops():
            tracees.seize_new()
            moments = iter([began] * 12)  # then the time is up
            clock = SimpleNamespace(monotonic=lambda: next(moments, began + 9), sleep=time.sleep)
            monkeypatch.setattr(ptrace, "time", clock)
            monkeypatch.setattr(ptrace, "_blocked_registers", lambda *of: asked.append(of))
            tracees.stop_all(began + 1)
            tracees.release()

        worker = threading.Thread(target=stops)
        worker.start()
        worker.join()
        late = [tid for tid, why in tracees.refused.items() if why == ptrace._NO_TIME]
        assert len(process.tids()) - 12 <= len(late) <= len(process.tids())
        assert 0 < len(asked) <= 2 * ptrace._READ
        process.assert_free()


def test_thousands_of_threads():
    with CaptureProcess(threads=2000) as process:
        copy = copy_process(process.pid)
        process.assert_free()
    assert copy.state == "ok", copy.problems
    assert len(copy.threads) == 2003


def test_a_stopped_process_stays_stopped():
    with CaptureProcess() as process:
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: {process.state(tid) for tid in process.tids()} == {"T"})
        copy = copy_process(process.pid)
        assert copy.state == "ok" and copy.was_stopped
        wait_until(lambda: {process.state(tid) for tid in process.tids()} == {"T"})
        beats = process.hearts()
        assert process.hearts() == beats
        os.kill(process.pid, signal.SIGCONT)
        process.assert_free()
        assert not copy_process(process.pid).was_stopped


def test_a_stop_signal_that_comes_meanwhile_is_obeyed_afterwards():
    with CaptureProcess() as process:
        copy = copy_process(process.pid, during=lambda pid: os.kill(pid, signal.SIGSTOP))
        assert copy.state == "ok" and not copy.was_stopped
        wait_until(lambda: {process.state(tid) for tid in process.tids()} == {"T"})
        os.kill(process.pid, signal.SIGCONT)
        process.assert_free()


SENDER = """
import os, signal, sys
for _ in range(int(sys.argv[2])):
    while True:
        try:
            os.kill(int(sys.argv[1]), signal.SIGRTMIN)
            break
        except BlockingIOError:  # the queue is full
            pass
"""


def test_no_signal_is_lost():
    with CaptureProcess(mode="signals") as process:
        sender = subprocess.Popen([sys.executable, "-c", SENDER, str(process.pid), "20000"])
        seen = 0
        while sender.poll() is None:
            copy = copy_process(process.pid)
            assert copy.state == "ok", copy.problems
            seen += sum(thread.signal == signal.SIGRTMIN for thread in copy.threads)
        assert sender.returncode == 0
        wait_until(lambda: process.ask() == 20000)
        process.assert_free()


def test_threads_that_come_and_go():
    with CaptureProcess(mode="storm") as process:
        for _ in range(30):
            copy = copy_process(process.pid)
            assert {thread.tid for thread in copy.threads if thread.registers} >= {process.pid}
            assert len(copy.threads) >= 12
        process.assert_free()


def test_a_program_that_replaces_itself():
    with CaptureProcess(threads=30) as process:
        process.tell("exec")
        copies = [copy_process(process.pid) for _ in range(20)]
        process.wait_ready()
        process.assert_free()
        after = copy_process(process.pid)
    assert all(copy.pid == process.pid for copy in copies)
    assert after.state == "ok" and len(after.threads) == 6


def test_a_new_program_is_noticed(monkeypatch):
    real = copy_of_process.read_proc
    answers = iter([b"another program"])
    monkeypatch.setattr(
        copy_of_process, "read_proc", lambda pid, name: next(answers, b"") if name == "auxv" else real(pid, name)
    )
    with CaptureProcess() as process:
        copy = copy_process(process.pid)
    assert any("exec" in problem for problem in copy.problems)


def test_a_thread_that_cannot_be_stopped_is_read_as_far_as_the_kernel_tells():
    with CaptureProcess(mode="uninterruptible") as process:
        (stuck,) = wait_until(lambda: [tid for tid in process.tids() if process.state(tid) == "D"])
        copy = copy_process(process.pid)
        process.assert_free()
    threads = {thread.tid: thread for thread in copy.threads}
    assert copy.state == "partial"
    assert "state D" in threads[stuck].problem
    assert copy.maps.find(threads[stuck].pc).executable
    assert any(block.address <= threads[stuck].sp < block.end for block in copy.blocks)
    assert [tid for tid, thread in threads.items() if thread.problem] == [stuck]


def test_the_environment_is_not_in_the_copy():
    with CaptureProcess(env={**os.environ, "API_TOKEN": "planted-secret"}) as process:
        copy = copy_process(process.pid)
    assert copy.state == "ok"
    assert not any(b"planted-secret" in block.data for block in copy.blocks)


def test_pages_that_were_asked_for():
    with CaptureProcess() as process:
        stack = copy_process(process.pid).maps.find(process._hearts)
        copy = copy_process(process.pid, pages=[(stack.start, 4096), (8, 8)])
    assert any(block.address <= stack.start and block.end >= stack.start + 4096 for block in copy.blocks)


def test_one_after_the_other_or_all_at_once():
    def states(_):
        """Who was just let go on, or has just begun, runs until it sleeps again."""
        return [wait_until(lambda one=one: one.state() in "tS" and one.state()) for one in processes]

    with CaptureProcess() as first, CaptureProcess() as second:
        processes = (first, second)
        pids = [first.pid, second.pid]
        single = copy_processes(pids, Budget(seconds=60), states)
        together = copy_processes(pids, Budget(seconds=60), states, together=True)
        first.assert_free()
        second.assert_free()
    assert [copy.pid for copy in single] == [copy.pid for copy in together] == pids
    assert [copy.during for copy in single] == [["t", "S"], ["S", "t"]]
    assert [copy.during for copy in together] == [["t", "t"], ["t", "t"]]


def test_the_end_of_one_process_does_not_cost_the_others(monkeypatch):
    copy_stacks = copy_of_process.StackCopier.copy

    def killed_first(self, registers, deadline):
        if self._pid == dying.pid:
            dying.kill()
        copy_stacks(self, registers, deadline)

    monkeypatch.setattr(copy_of_process.StackCopier, "copy", killed_first)
    with CaptureProcess() as dying, CaptureProcess() as healthy:
        lost, fine = copy_processes([dying.pid, healthy.pid], together=True)
        healthy.assert_free()
    assert fine.state == "ok"
    assert lost.state == "partial"
    assert f"pid {dying.pid} ended while it was being copied" in lost.problems


def test_killed_before_its_registers_were_read(monkeypatch):
    read_registers = ptrace.Tracees.read_registers

    def killed_first(self):
        process.kill()
        read_registers(self)

    monkeypatch.setattr(ptrace.Tracees, "read_registers", killed_first)
    with CaptureProcess() as process:
        copy = copy_process(process.pid)
    assert copy.state == "lost"
    assert copy.problems == (f"pid {process.pid} has ended and was not reaped by its parent yet (zombie)",)


def test_who_cannot_be_stopped_at_all():
    with CaptureProcess() as process:
        process.kill()
        zombie = copy_process(process.pid)
    gone = copy_process(process.pid)
    own = copy_process(os.getpid())
    assert zombie.problems == (f"pid {process.pid} has ended and was not reaped by its parent yet (zombie)",)
    assert gone.problems == (f"there is no process {process.pid} (any more)",)
    assert own.problems == (f"pid {os.getpid()} could not be stopped: it is the gdbext process itself",)
    assert {copy.state for copy in (zombie, gone, own)} == {"lost"}
    assert {copy.pause_ms for copy in (zombie, gone, own)} == {None}


def test_a_process_that_ends_is_never_called_forbidden(monkeypatch):
    monkeypatch.setattr(copy_of_process, "thread_state", lambda pid, tid: "R")  # as between the kill and its end
    monkeypatch.setattr(ptrace.Tracees, "read_registers", lambda self: None)
    with CaptureProcess() as process:
        copy = copy_process(process.pid)
    assert copy.problems == (f"pid {process.pid} ended while it was being stopped",)


def test_no_room_for_the_copy(monkeypatch):
    def full(size, ready):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(copy_of_process, "CopyBuffer", full)
    with CaptureProcess() as process:
        copy = copy_process(process.pid, Budget(total=1 << 20))
        process.assert_free()
    assert copy.problems == ("no room of 1048576 bytes for the copy: Cannot allocate memory",)


def test_a_process_that_another_tracer_holds():
    with CaptureProcess() as process:
        script = (
            "import sys; from gdbext.capture.stop.copy_of_process import copy_process; "
            "copy_process(int(sys.argv[1]), during=lambda pid: (print('held', flush=True), sys.stdin.readline()))"
        )
        other = subprocess.Popen(
            [sys.executable, "-c", script, str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert other.stdout.readline() == "held\n"
        copy = copy_process(process.pid)
        other.communicate("go on\n")
        process.assert_free()
    assert copy.state == "lost"
    assert copy.problems == (f"pid {process.pid} could not be stopped: it is already traced by pid {other.pid}",)


def test_without_permission_the_text_says_what_would_help():
    # Somebody else's process: ours when we are root, else one of root's.
    with CaptureProcess() as process:
        pid = process.pid if os.getuid() == 0 else 1
        problems = as_nobody(lambda: "\n".join(copy_process(pid).problems))
    assert problems.startswith(f"pid {pid} could not be stopped: not permitted (another user's")
    assert "gdbext doctor" in problems


def test_a_hook_that_fails_is_a_problem_and_no_crash():
    with CaptureProcess() as process:
        copy = copy_process(process.pid, during=lambda pid: {}["nothing"])
        process.assert_free()
    assert copy.state == "partial"
    assert copy.problems == ("reading it while it was stopped failed: KeyError: 'nothing'",)


def test_an_interrupt_waits_until_the_process_is_free():
    handled = []
    states = []

    def interrupt(pid):
        os.kill(os.getpid(), signal.SIGINT)
        states.append((process.state(), list(handled)))

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with CaptureProcess() as process:
            with pytest.raises(KeyboardInterrupt):
                copy_process(process.pid, during=interrupt)
            process.assert_free()
    finally:
        signal.signal(signal.SIGINT, before)
    assert states == [("t", [])]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_error_of_ours_releases(monkeypatch):
    def broken(self, registers, deadline):
        raise RuntimeError("a bug")

    monkeypatch.setattr(copy_of_process.StackCopier, "copy", broken)
    with CaptureProcess() as process:
        with pytest.raises(RuntimeError, match="a bug"):
            copy_process(process.pid)
        process.assert_free()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_we_are_killed_in_the_middle_the_process_goes_on(number):
    # SIGTERM has to wait until the stop is over; SIGKILL cannot, then the kernel lets go.
    script = (
        "import sys; from gdbext.capture.stop.copy_of_process import copy_process; "
        "copy_process(int(sys.argv[1]), during=lambda pid: (print('held', flush=True), sys.stdin.readline()))"
    )
    with CaptureProcess(busy=1) as process:
        ours = subprocess.Popen(
            [sys.executable, "-c", script, str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert ours.stdout.readline() == "held\n"
        assert process.state() == "t"
        ours.send_signal(number)
        if number != signal.SIGKILL:
            ours.stdin.write("go on\n")
            ours.stdin.flush()
        assert ours.wait() == -number
        process.assert_free()
        ours.communicate()
