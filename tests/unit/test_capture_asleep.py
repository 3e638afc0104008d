"""Threads that sleep on after their copy are left alone by the next one, which is whole nevertheless."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.copies.syscall_line import NO_CALL, Standing
from gdbext.capture.machine import ARCHITECTURES
from gdbext.capture.memory.maps import parse_maps
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.stop.copy_of_process import copy_process, copy_processes
from gdbext.capture.stop.several_processes import copy_together
from gdbext.capture.stop.still_asleep import Asleep, copy_asleep, copy_awake, merge_copies, sleeping_threads
from gdbext.capture.without_stop.kernel_threads import look as look_at_threads
from gdbext.capture.without_stop.sleeping_threads import Mark, stands_as
from tests.inferiors.capture_process import CaptureProcess
from tests.polling import wait_until

X86, ARM = ARCHITECTURES


@pytest.fixture
def process():
    with CaptureProcess() as process:
        process.wait_asleep()
        yield process
        if process.state() != "Z":
            process.assert_free()


@pytest.fixture(params=["whole", "in turns"])
def first_look(request):
    """A copy, and the threads that sleep on: all but the heartbeats, which at times are caught asleep."""

    def look(process):
        if request.param == "whole":
            return sleeping_threads([copy_process(process.pid)])
        return copy_asleep({process.pid: look_at_threads(process.pid)})

    return look


def hearts(process):
    return {tid for tid in process.tids() if process.name(tid) == "heartbeat"}


def switches(process, tid):
    text = Path(f"/proc/{process.pid}/task/{tid}/status").read_text()
    return [line for line in text.splitlines() if "ctxt_switches" in line]


def stopping(pids, marks):
    return copy_processes(pids, marks=marks)


@pytest.mark.process
def test_who_sleeps_as_it_was_copied(process, first_look):
    known = first_look(process)[process.pid]
    assert set(process.tids()) - hearts(process) <= set(known.marks)
    assert all(isinstance(one, Mark) for one in known.marks.values())


@pytest.mark.process
def test_sleepers_do_not_feel_the_second_copy(process, first_look):
    known = first_look(process)
    sleepers = set(process.tids()) - hearts(process)
    before = {tid: switches(process, tid) for tid in sleepers}
    (second,) = copy_awake([process.pid], known, stopping)
    assert {tid: switches(process, tid) for tid in sleepers} == before
    assert sleepers <= second.asleep and second.state == "ok"


@pytest.mark.process
def test_the_second_copy_is_what_a_stop_of_all_would_have_brought(process, first_look):
    known = first_look(process)
    (second,) = copy_awake([process.pid], known, stopping)
    stopped = copy_process(process.pid)
    assert second.threads[0].tid == process.pid
    ours, theirs = ({one.tid: one for one in copy.threads} for copy in (second, stopped))
    assert set(ours) == set(theirs)
    for tid in set(ours) - hearts(process):
        one, other = ours[tid], theirs[tid]
        assert (one.pc, one.sp, one.stacks, one.problem) == (other.pc, other.sp, other.stacks, None)
        for address, size in one.stacks:
            assert covered(second, address, size) == len(covered(stopped, address, size)) * b"1"
    assert [(one.address, one.end) for one in second.blocks] == sorted((one.address, one.end) for one in second.blocks)
    assert all(one.end < other.address for one, other in zip(second.blocks, second.blocks[1:]))


def covered(copy, address, size):
    """A "1" for each byte of the range that the copy has."""
    (block,) = [one for one in copy.blocks if one.address <= address < one.end]
    return b"1" * min(size, block.end - address)


@pytest.mark.process
def test_the_longest_stop_so_far_is_told(process, first_look):
    known = first_look(process)
    (second,) = copy_awake([process.pid], known, stopping)
    assert second.felt_ms >= known[process.pid].copy.felt_ms > 0


@pytest.mark.process
def test_whoever_ran_is_copied_again(process, first_look):
    known = first_look(process)
    before = process.ask()
    assert process.ask() == before  # the main thread reads and answers
    process.wait_asleep()
    (second,) = copy_awake([process.pid], known, stopping)
    assert process.pid not in second.asleep
    assert {one.tid for one in second.threads} == set(process.tids())


@pytest.mark.process
def test_whoever_wakes_up_meanwhile_is_stopped_in_another_round(process, first_look):
    known, rounds = first_look(process), []

    def copier(pids, marks):
        def during(pid):
            if len(rounds) == 1:
                process.ask()  # the main thread is not stopped: it wakes up, answers, and sleeps again
                wait_until(lambda: process.state() == "S")
            return len(rounds)

        rounds.append(set(marks.get(process.pid, ())))
        return copy_processes(pids, during=during, marks=marks)

    (second,) = copy_awake([process.pid], known, copier)
    assert [process.pid in one for one in rounds] == [True, False]
    assert process.pid not in second.asleep and second.during == 2


@pytest.mark.process
def test_in_the_end_all_are_stopped(process, first_look):
    known, seen = first_look(process), []

    def copier(pids, marks):
        seen.append(len(marks.get(process.pid, ())))
        (copy,) = copy_processes(pids, marks=marks)
        return [replace(copy, woke=copy.asleep & set(sorted(copy.asleep)[:1]))]

    (second,) = copy_awake([process.pid], known, copier)
    assert len(seen) == 4 and seen[0] > seen[1] > seen[2] > seen[3] == 0
    assert second.asleep == frozenset() and second.state == "ok"


@pytest.mark.parametrize("together", [False, True])
def test_another_round_is_for_all_only_when_they_stand_still_together(together):
    rounds = []
    known = {pid: Asleep(ProcessCopy(pid), {pid: None}) for pid in (1, 2)}

    def copier(pids, marks):
        rounds.append((list(pids), {pid: list(marks[pid]) for pid in pids}))
        return [ProcessCopy(pid, woke=frozenset([1]) if pid == 1 and len(rounds) == 1 else frozenset()) for pid in pids]

    copies = copy_awake([1, 2], known, copier, together)
    assert rounds == [([1, 2], {1: [1], 2: [2]}), ([1, 2], {1: [], 2: [2]}) if together else ([1], {1: []})]
    assert [copy.pid for copy in copies] == [1, 2]


@pytest.mark.process
def test_threads_that_came_and_went():
    with CaptureProcess(4, 0, 0, "storm") as process:
        known = sleeping_threads([copy_process(process.pid)])
        (second,) = copy_awake([process.pid], known, stopping)
        assert {one.tid for one in second.threads} >= {tid for tid in known[process.pid].marks if tid in second.asleep}
        assert process.pid in second.asleep and second.state in ("ok", "partial")
        process.assert_free()


@pytest.mark.process
def test_a_process_that_ended_meanwhile(process, first_look):
    known = first_look(process)
    process.kill()
    (second,) = copy_awake([process.pid], known, stopping)
    assert second.state == "lost" and "zombie" in second.problems[0]


@pytest.mark.process
def test_a_process_killed_while_the_others_of_it_stand_still(process, first_look):
    known = first_look(process)

    def copier(pids, marks):
        return copy_processes(pids, during=lambda _: process.kill(), marks=marks)

    (second,) = copy_awake([process.pid], known, copier)
    assert second.state == "lost" or not second.asleep


@pytest.mark.process
def test_a_program_that_was_replaced_since(first_look):
    with CaptureProcess() as process:
        process.wait_asleep()
        known = first_look(process)
        process.tell("exec")
        process.wait_ready()
        process.wait_asleep()
        (second,) = copy_awake([process.pid], known, stopping)
        assert process.pid not in second.asleep
        assert {one.tid for one in second.threads} == set(process.tids())


@pytest.mark.process
def test_a_job_control_stop_stays_and_needs_no_second_one(process, first_look):
    os.kill(process.pid, signal.SIGSTOP)
    wait_until(lambda: all(process.state(tid) == "T" for tid in process.tids()))
    known = first_look(process)
    (second,) = copy_awake([process.pid], known, stopping)
    assert second.was_stopped and second.state == "ok"
    wait_until(lambda: all(process.state(tid) == "T" for tid in process.tids()))
    os.kill(process.pid, signal.SIGCONT)


@pytest.mark.process
def test_through_several_of_ours(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with CaptureProcess() as one, CaptureProcess() as two:
        processes = [one, two]
        for process in processes:
            process.wait_asleep()
        pids = [process.pid for process in processes]
        known = sleeping_threads(copy_processes(pids))
        copies = copy_awake(
            pids, known, lambda pids, marks: copy_together(pids, None, lambda pid: (pid,), marks), together=True
        )
        for process, copy in zip(processes, copies):
            assert copy.state == "ok" and copy.during == (process.pid,)
            assert set(process.tids()) - hearts(process) <= copy.asleep
            assert {thread.tid for thread in copy.threads} == set(process.tids())
            process.assert_free()


# --- the parts ---


def words(row, **values):
    found = [0] * row.registers
    for name, value in values.items():
        found[{"sp": row.sp, "pc": row.pc}.get(name) or int(name[1:])] = value
    return found


@pytest.mark.parametrize(
    "standing, expected",
    [
        (Standing(202, (1, 2, 3, 4, 5, 6), 0x10, 0x20), True),
        (Standing(219, (1, 2, 3, 4, 5, 6), 0x10, 0x20), True),  # gone on with by restart_syscall
        (Standing(7, (1, 2, 3, 4, 5, 6), 0x10, 0x20), False),
        (Standing(202, (1, 2, 3, 4, 5, 7), 0x10, 0x20), False),
        (Standing(202, (1, 2, 3, 4, 5, 6), 0x18, 0x20), False),
        (Standing(202, (1, 2, 3, 4, 5, 6), 0x10, 0x28), False),
        (Standing(NO_CALL, (), 0x10, 0x20), False),
    ],
)
def test_where_a_thread_stands_and_what_its_registers_show(standing, expected):
    known = words(X86, sp=0x10, pc=0x20, w15=202, w14=1, w13=2, w12=3, w7=4, w9=5, w8=6)
    assert stands_as(standing, known, X86) is expected


def test_outside_of_any_call():
    known = words(X86, sp=0x10, pc=0x20, w15=(1 << 64) - 1)
    assert stands_as(Standing(NO_CALL, (), 0x10, 0x20), known, X86)


def test_on_arm_the_first_argument_has_become_the_result():
    known = words(ARM, sp=0x10, pc=0x20, w8=98, w0=(1 << 64) - 512, w1=2, w2=3)
    assert stands_as(Standing(98, (1, 2, 3, 0, 0, 0), 0x10, 0x20), known, ARM)
    assert stands_as(Standing(128, (1, 2, 3, 0, 0, 0), 0x10, 0x20), known, ARM)
    assert not stands_as(Standing(98, (1, 9, 3, 0, 0, 0), 0x10, 0x20), known, ARM)


def test_the_new_bytes_count_where_stacks_were_copied_twice():
    old = ProcessCopy(
        1,
        (ThreadCopy(1, (1,), sp=0x100, stacks=((0x100, 8),)), ThreadCopy(2, (2,), sp=0x200, stacks=((0x200, 8),))),
        (Block(0x100, b"oldmain!"), Block(0x200, b"sleeping")),
    )
    new = ProcessCopy(
        1,
        (ThreadCopy(1, (9,), sp=0x104, stacks=((0x104, 4),)),),
        (Block(0x104, b"new!"),),
        parse_maps(""),
        asleep=frozenset([2]),
    )
    whole = merge_copies(old, new)
    assert [(one.tid, one.registers) for one in whole.threads] == [(1, (9,)), (2, (2,))]
    assert whole.blocks == (Block(0x104, b"new!"), Block(0x200, b"sleeping"))


def test_a_copy_of_nothing_has_no_sleepers():
    assert sleeping_threads([ProcessCopy(1, problems=("gone",))])[1].marks == {}
