"""Where a blocked thread stands, by files that look like /proc, and what its registers are then."""

import pytest

from gdbext.capture.copies.syscall_line import GONE, REFUSED, RUNNING, Standing, parse_standing
from gdbext.capture.locks_in_memory.futexes import syscall_of
from gdbext.capture.machine import ARCHITECTURES
from gdbext.capture.memory.maps import parse_maps
from gdbext.capture.without_stop import sleeping_threads
from gdbext.capture.without_stop.sleeping_threads import UNKNOWN, Mark, registers_of, sleep_mark
from gdbext.model.codes import Code
from gdbext.model.stack import UNREAD

LINE = "202 0x7f00 0x80 0x3 0x4 0x5 0x6 0x7ffe0010 0x7f99\n"
STANDING = Standing(202, (0x7F00, 0x80, 3, 4, 5, 6), 0x7FFE0010, 0x7F99)
X86 = ARCHITECTURES[0]


@pytest.mark.parametrize(
    "text, expected",
    [
        (LINE, STANDING),
        ("0 0x0 0x0 0x0 0x0 0x0 0x0 0x10 0x20\n", Standing(0, (0,) * 6, 0x10, 0x20)),
        ("running\n", RUNNING),
        ("-1 0x7ffe0010 0x401000\n", Standing(-1, (), 0x7FFE0010, 0x401000)),
        ("-1 0x0 0x0\n", GONE),
        ("0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n", GONE),
        ("-1 0x10000000000000000 0x20\n", GONE),
        ("-1 -0x10 0x20\n", GONE),
        ("", REFUSED),
        ("202", REFUSED),
        ("running fast", REFUSED),
        ("202 0x1 0x2 0x3\n", REFUSED),
        (LINE.strip() + " 0x1", REFUSED),
        ("x 0x10 0x20", REFUSED),
        ("-1 0xzz 0x20", REFUSED),
        ("-1 \ufffd \ufffd", REFUSED),
    ],
)
def test_the_line_of_the_kernel(text, expected):
    assert parse_standing(text) == expected


def test_running_threads_are_known_by_what_is_said_of_them():
    assert RUNNING.code is Code.RAN and RUNNING.reason.endswith(UNREAD)


def task(tmp_path, **files):
    folder = tmp_path / "5" / "task" / "7"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return sleep_mark(5, 7, str(tmp_path))


def test_a_mark_changes_when_the_thread_has_run(tmp_path):
    first = task(tmp_path, syscall=LINE, schedstat="100 5 6\n", status="voluntary_ctxt_switches:\t1\n")
    assert isinstance(first, Mark) and first.standing == STANDING
    assert task(tmp_path, status="voluntary_ctxt_switches:\t2\n") == first  # the scheduler's own count is better
    assert task(tmp_path, schedstat="100 5 7\n") != first
    assert task(tmp_path, schedstat="101 5 6\n") != first
    assert task(tmp_path, schedstat="100 5 6\n") == first
    assert task(tmp_path, syscall=LINE.replace("0x7f99", "0x7f98")) != first
    assert task(tmp_path, syscall="running\n") == RUNNING


@pytest.mark.parametrize("schedstat", ["", "0 0 0\n", None])
def test_without_the_scheduler_s_statistics_context_switches_count(tmp_path, schedstat):
    files = {} if schedstat is None else {"schedstat": schedstat}
    status = "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n"
    first = task(tmp_path, syscall=LINE, status=status.format(1, 2), **files)
    assert isinstance(first, Mark)
    assert task(tmp_path, status=status.format(1, 3)) != first
    assert task(tmp_path, status=status.format(2, 2)) != first
    assert task(tmp_path, status=status.format(1, 2)) == first


def test_a_thread_that_is_gone_or_out_of_reach(tmp_path, monkeypatch):
    assert sleep_mark(5, 7, str(tmp_path)) == GONE

    def refuse(path):
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(sleeping_threads, "read_text", refuse)
    assert sleep_mark(5, 7, str(tmp_path)) == REFUSED


def test_registers_say_the_system_call_and_nothing_that_is_not_known():
    words = registers_of(STANDING, X86, thread_pointer=0x7000)
    assert syscall_of(words) == (202, *STANDING.arguments)
    assert (words[X86.sp], words[X86.pc], words[X86.thread_pointer]) == (0x7FFE0010, 0x7F99, 0x7000)
    rbp, rbx, r12 = words[4], words[5], words[3]
    assert rbp == rbx == r12 == UNKNOWN
    assert len(words) == X86.registers


def test_registers_outside_of_a_system_call():
    words = registers_of(Standing(-1, (), 0x10, 0x20), X86)
    assert syscall_of(words) is None
    assert words[14] == UNKNOWN  # rdi


def test_the_marker_is_no_address():
    assert UNKNOWN >> 47 not in (0, (1 << 17) - 1)


class Memory:
    """Memory that reads what is given."""

    def __init__(self, pieces):
        self._pieces = pieces

    def read(self, address, size):
        for start, data in self._pieces.items():
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return None

    def read_many(self, ranges):
        return [self.read(*one) for one in ranges]


def descriptor(page, at, tid):
    """A page with glibc's descriptor of a thread in it."""
    data = bytearray(0x4000)
    address = page + at
    for offset in (at, at + 16):
        data[offset : offset + 8] = address.to_bytes(8, "little")
    offset = at + X86.glibc_tid
    data[offset : offset + 4] = tid.to_bytes(4, "little")
    return bytes(data)


def test_thread_pointers_by_the_descriptors_of_glibc():
    maps = parse_maps("7f0000000000-7f0000004000 rw-p 0 00:00 0\n7f0000010000-7f0000014000 rw-p 0 00:00 0\n")
    memory = Memory(
        {0x7F0000000000: descriptor(0x7F0000000000, 0x3640, 12), 0x7F0000010000: descriptor(0x7F0000010000, 0x740, 11)}
    )
    stacks, own = {11: 0x7FFF00000000, 12: 0x7F0000001000, 13: 0x7F0000000800}, {11: 11, 12: 12, 13: 13}
    found = sleeping_threads.thread_pointers(11, stacks, own, maps, memory, X86)
    assert found == {11: 0x7F0000010740, 12: 0x7F0000003640, 13: 0}
    assert sleeping_threads.thread_pointers(11, stacks, own, maps, memory, ARCHITECTURES[1]) == {11: 0, 12: 0, 13: 0}


def test_in_a_container_descriptors_have_other_ids():
    maps = parse_maps("7f0000000000-7f0000004000 rw-p 0 00:00 0\n")
    memory = Memory({0x7F0000000000: descriptor(0x7F0000000000, 0x3640, 2)})
    assert sleeping_threads.thread_pointers(11, {4712: 0x7F0000001000}, {4712: 2}, maps, memory, X86) == {
        4712: 0x7F0000003640
    }


def test_processor_time(tmp_path):
    task(tmp_path, schedstat="123456789 5 6\n")
    assert sleeping_threads.processor_time(5, 7, str(tmp_path)) == 123456789
    for text in ("0 0 0\n", "", "x y z\n"):
        task(tmp_path, schedstat=text)
        assert sleeping_threads.processor_time(5, 7, str(tmp_path)) is None
    assert sleeping_threads.processor_time(5, 8, str(tmp_path)) is None
