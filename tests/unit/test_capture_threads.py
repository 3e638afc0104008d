"""What the kernel says of threads, from a folder that looks like /proc and from a real process."""

import os
from dataclasses import replace

import pytest

from gdbext.capture.without_stop.kernel_threads import ThreadTimes, look, processor_use_between
from tests.inferiors.capture_process import CaptureProcess
from tests.polling import wait_until

STAT = "7 (a (b) c) S " + " ".join(str(number) for number in range(4, 53))
STATUS = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"


def task(tmp_path, tid, **files):
    folder = tmp_path / "5" / "task" / str(tid)
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_everything_there(tmp_path):
    task(
        tmp_path,
        7,
        stat=STAT,
        status=STATUS,
        schedstat="123456789 5 6\n",
        wchan="futex_wait_queue",
        syscall="202 0x7f00 0x80 0x0 0x0 0x0 0xffffffff 0x7ffe0010 0x7f99\n",
    )
    (seen,) = look(5, str(tmp_path)).values()
    assert seen == ThreadTimes(
        tid=7,
        at=seen.at,
        state="S",
        name="a (b) c",
        started=22,
        cpu_ns=123456789,
        waited=12,
        preempted=3,
        wchan="futex_wait_queue",
        syscall=(202, 0x7F00, 0x80, 0, 0, 0, 0xFFFFFFFF),
        sp=0x7FFE0010,
        pc=0x7F99,
    )


def test_what_the_kernel_keeps_to_itself_is_none(tmp_path):
    task(tmp_path, 7, stat=STAT, wchan="0", syscall="running\n")
    (seen,) = look(5, str(tmp_path)).values()
    assert (seen.waited, seen.wchan, seen.syscall, seen.sp) == (None, None, None, None)
    ticks = os.sysconf("SC_CLK_TCK")
    assert seen.cpu_ns == (14 + 15) * 1_000_000_000 // ticks  # no schedstat: utime and stime in clock ticks


def test_blocked_outside_of_a_system_call(tmp_path):
    task(tmp_path, 7, stat=STAT, syscall="-1 0x10 0x20\n")
    (seen,) = look(5, str(tmp_path)).values()
    assert (seen.syscall, seen.sp, seen.pc) == (None, 0x10, 0x20)


def test_damaged_files_and_ended_threads(tmp_path):
    task(tmp_path, 7, stat="garbage")
    task(tmp_path, 8, stat="8 (x) S 1")
    task(tmp_path, 9)
    task(tmp_path, 10, stat=STAT, syscall="zz 1 2", status="voluntary_ctxt_switches:\tmany", schedstat="-")
    seen = look(5, str(tmp_path))
    assert list(seen) == [10]
    assert seen[10].syscall is None
    assert look(6, str(tmp_path)) == {}


def test_processor_time_between_two_looks():
    first = ThreadTimes(tid=1, at=10.0, started=5, cpu_ns=1_000_000_000)
    later = replace(first, at=12.0, cpu_ns=2_000_000_000)
    assert processor_use_between({1: first}, {1: later}) == {1: 0.5}
    assert processor_use_between({1: first}, {1: replace(later, cpu_ns=9_000_000_000)}) == {1: 1.0}
    assert processor_use_between({1: first}, {1: replace(later, started=6)}) == {}  # another thread by now
    assert processor_use_between({1: first}, {1: replace(later, cpu_ns=None)}) == {}
    assert processor_use_between({1: first}, {1: first}) == {}
    assert processor_use_between({}, {1: later}) == {}


def without_hearts(seen):
    return {tid: thread for tid, thread in seen.items() if thread.name != "heartbeat"}


@pytest.mark.process
def test_a_spinning_thread_is_told_from_sleeping_ones():
    def settled():
        seen = without_hearts(look(process.pid))
        return seen if [thread.state for thread in seen.values()].count("S") == 6 else None

    def working():
        used = processor_use_between(first, look(process.pid))
        return {tid for tid, fraction in used.items() if fraction > 0}

    with CaptureProcess(threads=6, busy=1) as process:
        first = wait_until(settled)
        (spinner,) = wait_until(working)
        last = without_hearts(look(process.pid))
    assert next(iter(last)) == process.pid != spinner
    sleeping = [thread for tid, thread in last.items() if tid != spinner]
    assert {thread.state for thread in sleeping} == {"S"}
    assert all(thread.syscall and thread.sp and thread.pc for thread in sleeping)
