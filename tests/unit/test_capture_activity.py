"""What a process did between two moments: pages, bytes, children; and states that did not last."""

import dataclasses
import os
import subprocess
import sys

import pytest

from gdbext.capture.machine import this_machine
from gdbext.capture.without_stop import counters as activity
from gdbext.capture.without_stop import kernel_threads
from gdbext.capture.without_stop.kernel_threads import ThreadTimes
from gdbext.capture.without_stop.sleeping_threads import asleep_in
from tests.polling import wait_until


def stat(pid, parent, faults=0, ticks=0, started=5, name="a b) c", state="S", status=0, session=1):
    fields = [state, parent, 1, session, 0, -1, 0, 0, 0, faults, 0, ticks, 0, 0, 0, 20, 0, 1, 0, started, 0]
    fields += [0] * 28 + [status]
    return f"{pid} ({name}) " + " ".join(map(str, fields))


@pytest.fixture
def proc(tmp_path):
    def write(pid, parent, io=None, swap=None, **more):
        folder = tmp_path / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(stat(pid, parent, **more))
        (folder / "io").write_text("" if io is None else f"rchar: {io}\nwchar: 0\n")
        (folder / "status").write_text("" if swap is None else f"Name:\tx\nVmSwap:\t{swap} kB\n")

    return tmp_path, write


def between(proc, change, pids=(7,)):
    root, _ = proc
    before = activity.take(pids, str(root))
    change()
    after = activity.take(pids, str(root))
    after = dataclasses.replace(after, at=before.at + 2.0)
    return activity.activity_between(before, after, pids)


def test_counters_and_children(proc):
    _, write = proc
    second = os.sysconf("SC_CLK_TCK")
    for pid, parent in ((7, 1), (8, 7), (9, 8), (10, 7), (11, 10)):
        write(pid, parent, io=100, swap=0, ticks=0)

    def change():
        write(7, 1, io=5_000_100, swap=2048, faults=400, ticks=second)
        write(9, 8, ticks=second, name="ptxas")
        write(11, 10, ticks=second, name="below another rank")
        write(12, 8, ticks=second // 2, name="cc1plus")

    found = between(proc, change, (7, 10))
    one = found[7]
    assert (one.seconds, one.major_faults, one.read_bytes, one.swapped_bytes) == (2.0, 400, 5_000_000, 2048 * 1024)
    assert [(child.name, child.cpu) for child in one.children] == [("ptxas", 0.5), ("cc1plus", 0.25)]
    assert (one.resting, found[10].resting) == (1, 0)
    assert [child.pid for child in found[10].children] == [11]


def test_bytes_that_were_read_and_written(proc):
    """A call counts when it is over; before that the disk tells."""
    root, write = proc
    counters = "rchar: {}\nwchar: {}\nsyscr: 1\nsyscw: 1\nread_bytes: {}\nwrite_bytes: {}\ncancelled_write_bytes: 9\n"

    def counted(*values, own=(0, 0, 0, 0)):
        write(7, 1)
        (root / "7" / "io").write_text(counters.format(*values))
        task = root / "7" / "task" / "7"
        task.mkdir(parents=True, exist_ok=True)
        (task / "io").write_text(counters.format(*own))

    counted(10, 100, 5, 1000)
    found = between(proc, lambda: counted(30, 150, 5, 9000, own=(7, 40, 0, 0)))[7]
    assert (found.read_bytes, found.written_bytes, found.own_bytes) == (20, 8000, 40)


def test_what_cannot_be_read_is_unknown_and_a_new_process_is_left_out(proc):
    _, write = proc
    write(7, 1)
    assert between(proc, lambda: None)[7].read_bytes is None
    assert between(proc, lambda: write(7, 1, started=6)) == {}


def test_a_circle_of_parents_ends(proc):
    _, write = proc
    write(7, 8)
    write(8, 7, ticks=0)
    assert between(proc, lambda: write(8, 7, ticks=1000))[7].children[0].pid == 8


def test_children_that_all_ended_and_were_replaced_are_counted(proc):
    """A zombie has ended; an orphan of another session is none of its own; one that stays shows that it works."""
    root, write = proc
    write(7, 1)
    for pid in (8, 9):
        write(pid, 7)
    write(10, 7, session=3)

    def ends(*pids):
        for pid in pids:
            (root / str(pid) / "stat").unlink()

    def change():
        ends(8)
        write(9, 7, state="Z")
        for pid in (11, 12, 13):
            write(pid, 7, started=9)

    assert between(proc, change)[7].replaced == 3
    assert between(proc, lambda: (ends(11), write(14, 7, started=12)))[7].replaced == 0


@pytest.mark.process
def test_a_real_child_that_works_is_seen():
    script = "while True: pass"
    with subprocess.Popen([sys.executable, "-c", script]) as child:
        before = activity.take([os.getpid()])
        while True:  # until the kernel has counted some of its time
            after = activity.take([os.getpid()])
            found = activity.activity_between(before, after, [os.getpid()])
            if found and found[os.getpid()].children:
                break
        child.kill()
    assert child.pid in [one.pid for one in found[os.getpid()].children]


def test_a_stop_counts_when_it_lasts():
    first = {
        1: ThreadTimes(1, 0.0, "T"),
        2: ThreadTimes(2, 0.0, "T"),
        3: ThreadTimes(3, 0.0, "S"),
        4: ThreadTimes(4, 0.0, "T"),
    }
    second = {1: ThreadTimes(1, 1.0, "T"), 2: ThreadTimes(2, 1.0, "R"), 3: ThreadTimes(3, 1.0, "T")}
    assert [one.state for one in kernel_threads.with_lasting_stops(first, second).values()] == ["T", "R", "S", "T"]


@pytest.mark.process
@pytest.mark.skipif(this_machine() is None, reason="needs the numbers of this machine's system calls")
@pytest.mark.process
def test_processes_below_that_sleep_for_a_while():
    with subprocess.Popen(["sleep", "100"]) as naps, subprocess.Popen(["cat"], stdin=subprocess.PIPE) as reads:
        wait_until(lambda: all(asleep_in(one.pid, one.pid) for one in (naps, reads)))
        before = activity.take([os.getpid()])
        assert naps.pid in before.napping and reads.pid not in before.napping
        assert activity.activity_between(before, activity.take([os.getpid()]), [os.getpid()])[os.getpid()].napping == 1
        naps.kill()


def test_children_that_have_ended_and_nobody_has_asked_for(proc):
    _, write = proc

    def change():
        write(8, 7, state="Z", status=9)  # SIGKILL
        write(9, 7, state="Z", status=139)  # SIGSEGV, with a core
        write(10, 7, state="Z", status=256)  # exit status 1
        write(11, 8, state="Z", status=9)  # of another process
        write(12, 7, state="Z", status=9, session=6)  # an orphan that came to the first process of a container
        write(13, 7, state="Z", status=9, session=13)  # one that began a session of its own

    for pid, parent in ((7, 1), (8, 7), (9, 7), (10, 7), (11, 8)):
        write(pid, parent)
    found = between(proc, change)[7]
    assert sorted((child.pid, child.signal) for child in found.ended) == [(8, 9), (9, 11), (10, 0), (13, 9)]
