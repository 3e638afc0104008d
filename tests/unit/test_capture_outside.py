"""Blocked threads of real processes, read while they run on."""

import os
import re
import signal
import subprocess
import sys

import pytest

from gdbext.capture.copies.copied_process import Budget
from gdbext.capture.copies.syscall_line import RUNNING
from gdbext.capture.memory.overlapping_pieces import changed_words
from gdbext.capture.memory.process_memory import Block, merge
from gdbext.capture.stop import ptrace
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.capture.without_stop import copying
from gdbext.capture.without_stop.copying import TRIES, copy_outside
from gdbext.capture.without_stop.sleeping_threads import Mark
from gdbext.model.stack import UNREAD
from tests.inferiors.capture_process import CaptureProcess, as_nobody
from tests.polling import wait_until

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def no_ptrace(monkeypatch):
    """None of this may trace anything. A test that compares with a stop puts it back."""

    def refuse(*arguments):
        raise AssertionError("ptrace was called")

    real = ptrace._ptrace
    monkeypatch.setattr(ptrace, "_ptrace", refuse)
    return lambda: monkeypatch.setattr(ptrace, "_ptrace", real)


@pytest.fixture(scope="module")
def process():
    """Twelve threads, one of them spins, two heartbeats that beat 5,000 times a second."""
    with CaptureProcess(threads=12, busy=1, depth=500) as one:
        yield one


def names(process, copy, read):
    return [process.name(thread.tid) for thread in copy.threads if bool(thread.registers) == read]


def test_threads_that_sleep_are_read_and_the_one_that_runs_is_told(process, no_ptrace):
    process.wait_asleep(running=1)
    process.ask("reset")
    copy = copy_outside(process.pid).copy
    assert sorted(thread.tid for thread in copy.threads) == sorted(process.tids())
    assert copy.threads[0].tid == process.pid
    assert (copy.pause_ms, copy.felt_ms, copy.was_stopped) == (None, None, False)
    reasons = {process.name(thread.tid): thread.problem for thread in copy.threads if not thread.registers}
    assert reasons.pop("capture_threads") == RUNNING.reason
    assert set(reasons) <= {"heartbeat"}
    no_ptrace()
    stopped = {thread.tid: thread for thread in copy_process(process.pid).threads}
    compared = [thread for thread in copy.threads if thread.registers and process.name(thread.tid) != "heartbeat"]
    assert len(compared) == 13
    for thread in compared:
        row, other = copy.architecture, stopped[thread.tid]
        assert (thread.sp, thread.pc) == (other.sp, other.pc)
        assert thread.registers[row.thread_pointer] == other.registers[row.thread_pointer]
        assert thread.truncated is None and thread.problem is None
        assert any(block.address <= thread.sp < block.end for block in copy.blocks)


def test_what_is_read_with_the_stacks_is_true_of_the_threads_that_did_not_run(process):
    found = copy_outside(process.pid, during=lambda pid: "seen")
    assert {moment.found for moment in found.moments} == {"seen"}
    true_of = set().union(*(moment.tids for moment in found.moments))
    asleep = {
        thread.tid for thread in found.copy.threads if process.name(thread.tid) != "heartbeat" and thread.registers
    }
    assert asleep <= true_of
    assert not {thread.tid for thread in found.copy.threads if thread.problem == RUNNING.reason} & true_of


def test_an_error_of_the_reader_is_one_line(process):
    def fail(pid):
        raise ValueError("odd")

    copy = copy_outside(process.pid, during=fail).copy
    assert copy.problems == ("reading its memory failed: ValueError: odd",)
    assert len([thread for thread in copy.threads if thread.registers]) >= 13


def test_a_thread_that_never_keeps_still_is_given_up(process, monkeypatch):
    real, restless, number = copying.sleep_mark, process.pid, iter(range(10_000))

    def mark(pid, tid):
        seen = real(pid, tid)
        if tid == restless and isinstance(seen, Mark):
            seen = seen._replace(counters=str(next(number)))
        return seen

    monkeypatch.setattr(copying, "sleep_mark", mark)
    copy = copy_outside(process.pid).copy
    main = copy.threads[0]
    assert main.tid == restless and not main.registers
    assert re.fullmatch(rf"it ran while it was read, \d+ times: {UNREAD}", main.problem)
    assert int(main.problem.split()[6]) >= TRIES
    assert copy.state == "partial"


@pytest.mark.parametrize("code, kept", [(True, False), (False, True)])
def test_a_stack_that_others_write_to(process, monkeypatch, code, kept):
    """A counter that lies on a sleeping stack may change; what frames are made of may not."""
    text = next(
        one for one in copying.parse_maps(copying.read_maps_text(process.pid)) if one.executable and one.is_file
    )
    word = (text.start if code else 12345).to_bytes(8, "little")
    monkeypatch.setattr(
        copying._Look,
        "_again",
        lambda self, blocks: {tid: [word + one.data[8:] for one in each] for tid, each in blocks.items()},
    )
    copy = copy_outside(process.pid).copy
    assert bool(copy.threads[0].registers) == kept


def test_deep_stacks_are_whole_until_the_budget_cuts_them(process):
    def cut(copy):
        return [thread for thread in copy.threads if thread.truncated]

    assert cut(copy_outside(process.pid).copy) == []
    assert len(cut(copy_outside(process.pid, Budget(stack=16 << 10)).copy)) == 1
    copy = copy_outside(process.pid, Budget(threads=3)).copy
    assert len(copy.threads) <= 3
    assert copy.problems == ("threads beyond the limit of 3 were not read",)


def test_a_thread_in_a_signal_handler_on_another_stack():
    with CaptureProcess(threads=2, mode="alternate") as one:
        copy = copy_outside(one.pid).copy
        sps = [thread.sp for thread in copy.threads if thread.registers and one.name(thread.tid) != "heartbeat"]
        homes = {copy.maps.find(block.address).start for block in copy.blocks}
    assert len(sps) == 4
    assert len(homes) > len(sps)  # the stack that it interrupted as well


def test_a_stopped_process_is_read_and_stays_stopped():
    with CaptureProcess() as one:
        os.kill(one.pid, signal.SIGSTOP)
        wait_until(lambda: {one.state(tid) for tid in one.tids()} == {"T"})
        copy = copy_outside(one.pid).copy
        assert {one.state(tid) for tid in one.tids()} == {"T"}
    assert copy.was_stopped and copy.state == "ok", copy.problems


def test_a_process_that_ends_while_it_is_read():
    with CaptureProcess(threads=4) as one:
        copy = copy_outside(one.pid, during=lambda pid: one.kill()).copy
        assert "ended while it was read" in " ".join(copy.problems)
        assert "zombie" in copy_outside(one.pid).copy.problems[0]
    copy = copy_outside(one.pid).copy
    assert (copy.state, copy.problems) == ("lost", (f"there is no process {one.pid} (any more)",))


def test_a_program_that_is_replaced_while_it_is_read():
    with CaptureProcess(threads=2) as one:

        def replace(pid):
            one.tell("exec")
            one.wait_ready()

        copy = copy_outside(one.pid, during=replace).copy
    assert "exec" in " ".join(copy.problems)


def test_threads_that_come_and_go_do_no_harm():
    with CaptureProcess(threads=4, mode="storm") as one:
        copy = copy_outside(one.pid).copy
        one.assert_free()
    assert copy.state in ("ok", "partial")
    assert len([thread for thread in copy.threads if thread.registers]) >= 5


def test_what_is_missing_without_permission(process):
    if os.getuid() == 0:
        text = as_nobody(lambda: " ".join(copy_outside(process.pid).copy.problems))
    else:
        text = " ".join(copy_outside(1).copy.problems)
    assert "cannot be read without a stop either" in text
    assert "/proc/PID/task/TID/syscall" in text and "gdbext doctor" in text


def test_a_process_of_which_every_thread_runs():
    with subprocess.Popen([sys.executable, "-S", "-c", "print(flush=True)\nwhile True: pass"], stdout=-1) as spins:
        try:
            spins.stdout.readline()
            copy = copy_outside(spins.pid).copy
        finally:
            spins.kill()
    assert copy.state == "lost"
    assert f"every thread of {spins.pid} ran: {UNREAD}" in copy.problems[0]
    assert [thread.tid for thread in copy.threads] == [spins.pid]


def test_blocks_that_overlap():
    blocks = [Block(0x1000, b"a" * 32), Block(0x1010, b"b" * 8), Block(0x2000, b"c"), Block(0x3000, b"")]
    assert merge(blocks) == [Block(0x1000, b"a" * 16 + b"b" * 8 + b"a" * 8), Block(0x2000, b"c")]
    assert merge([Block(0x10, b"xy"), Block(0x12, b"z")]) == [Block(0x10, b"xyz")]
    assert merge([Block(0x10, b"xy"), Block(0x11, b"123")]) == [Block(0x10, b"x123")]


def test_words_that_changed():
    one, two = bytes(24), bytes(8) + b"\7" + bytes(15)
    assert changed_words(one, two) == [0, 7]
    assert changed_words(one, one) == []
