"""Threads whose call a stop would end are read without one: a write() to a full pipe, a call for a closed file."""

import subprocess
import sys

import pytest

from gdbext.capture.stop.copy_of_process import copy_in_turns, copy_processes
from gdbext.capture.stop.still_asleep import copy_asleep, copy_awake, sleeping_threads
from gdbext.capture.without_stop.kernel_threads import ThreadTimes, is_in_pipe_write, is_on_closed_file, look
from gdbext.collect.unstopped_ranks import copies_of_cut_short, without_unknown_registers
from gdbext.knowledge.runtimes.system_calls import RECVFROM
from gdbext.model.codes import StackEnd
from gdbext.model.stack import ThreadStack
from tests.polling import wait_until

pytestmark = pytest.mark.process

WRITES = "os.write(os.pipe()[1], bytes(1 << 20)); os.read(0, 1)"
PROGRAMS = {
    "alone": f"import os; {WRITES}",
    "beside one that sleeps": f"import os, threading\ndef write(): {WRITES}\nthreading.Thread(target=write).start()",
}


@pytest.fixture(params=PROGRAMS)
def writer(request):
    """The pid of a Python process, one of whose threads is in a write that it does not repeat, and that thread."""
    with subprocess.Popen([sys.executable, "-c", PROGRAMS[request.param]], stdin=subprocess.PIPE) as process:
        yield process.pid, wait_until(lambda: next(iter(writing(process.pid)), None), "it writes")
        process.kill()


def writing(pid):
    return [tid for tid, one in look(pid).items() if is_in_pipe_write(one)]


def times_slept(pid, tid):
    return look(pid)[tid].waited


def test_a_stop_ends_the_write(writer):
    pid, tid = writer
    copy_in_turns({pid: [tid]})
    wait_until(lambda: writing(pid) == [], "the write has returned")


def test_it_is_read_and_goes_on_writing(writer):
    pid, tid = writer
    times = {pid: look(pid)}
    before = times_slept(pid, tid)
    known = copy_asleep(times, unstopped=copies_of_cut_short(times))
    (first,) = copy_awake([pid], known, lambda pids, marks: copy_processes(pids, marks=marks))
    again = sleeping_threads([first], known)
    (second,) = copy_awake([pid], again, lambda pids, marks: copy_processes(pids, marks=marks))
    for copy in (first, second):
        assert {one.tid for one in copy.threads} == set(times[pid]) and copy.state == "ok"
        assert tid in copy.asleep and all(one.registers and one.stacks for one in copy.threads)
    assert writing(pid) == [tid] and times_slept(pid, tid) == before


def test_it_is_not_stopped_either_where_others_keep_waking_up(writer):
    pid, tid = writer
    times = {pid: look(pid)}
    known = copy_asleep(times, unstopped=copies_of_cut_short(times))
    asked = []

    def somebody_woke(pids, marks):
        asked.append(set(marks[pid]))
        (copy,) = copy_processes(pids, marks=marks)
        others = [other for other in marks[pid] if other != tid]
        return [type(copy)(**{**vars(copy), "woke": frozenset(others[:1] or [0]) & set(marks[pid])})]

    copy_awake([pid], known, somebody_woke)
    assert all(tid in marks for marks in asked) and writing(pid) == [tid]


def test_only_of_who_was_not_stopped_a_stack_ends_for_want_of_registers():
    stacks = [ThreadStack(str(lwp), (), lwp=lwp, truncated="no memory", end=StackEnd.MEMORY) for lwp in (1, 2)]
    found = without_unknown_registers(stacks, frozenset([2]))
    assert [one.end for one in found] == [StackEnd.MEMORY, StackEnd.REGISTERS] and found[0] == stacks[0]


RECEIVES = """import os, socket, threading
ours, theirs = socket.socketpair()
threading.Thread(target=ours.recv, args=(1,)).start()
os.read(0, 1)
os.close(ours.detach())
os.write(1, b"closed")
os.read(0, 1)
"""


def test_who_waits_for_a_file_that_was_closed_goes_on_waiting():
    with subprocess.Popen([sys.executable, "-c", RECEIVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pid = process.pid

        def receiving():
            return [tid for tid, one in look(pid).items() if one.syscall and one.syscall[0] == RECVFROM]

        (tid,) = wait_until(receiving, "it receives")
        assert not is_on_closed_file(pid, look(pid)[tid])
        process.stdin.write(b"1")
        process.stdin.flush()
        assert process.stdout.read(6) == b"closed"
        assert is_on_closed_file(pid, look(pid)[tid])
        times = {pid: look(pid)}
        known = copy_asleep(times, unstopped=copies_of_cut_short(times))
        (copy,) = copy_awake([pid], known, lambda pids, marks: copy_processes(pids, marks=marks))
        assert tid in copy.asleep and receiving() == [tid]
        copy_in_turns({pid: [tid]})
        wait_until(lambda: receiving() == [], "a stop ends the call")
        process.kill()


@pytest.mark.parametrize(
    ("wchan", "syscall", "true"),
    [("pipe_write", (1, 4), True), ("fifo_pipe_write", (20, 4), True), ("anon_pipe_read", (0, 3), False),
     ("pipe_write", None, False), (None, (1, 4), False)],
)  # fmt: skip
def test_what_such_a_write_is(wchan, syscall, true):
    assert is_in_pipe_write(ThreadTimes(1, 0.0, "S", wchan=wchan, syscall=syscall)) is true
