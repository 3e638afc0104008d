"""Reading memory: our own stands for another process's, the kernel makes no difference."""

import ctypes
import errno
import mmap
import os
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdbext.capture.memory import memory_file
from gdbext.capture.memory import process_memory as memory
from gdbext.capture.memory.process_memory import IOV_MAX, READ_LIMIT, Block, CopyBuffer, ProcessMemory, merge

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@pytest.fixture
def pages():
    """(address, mapping) of four pages, the third of which cannot be read."""
    room = mmap.mmap(-1, 4 * PAGE)
    room.write(b"\xab" * 4 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(room))
    assert libc.mprotect(address + 2 * PAGE, PAGE, 0) == 0
    yield address, room
    assert libc.mprotect(address + 2 * PAGE, PAGE, 3) == 0


@pytest.fixture
def own():
    return ProcessMemory(os.getpid())


def test_read(own, pages):
    address, room = pages
    room[5:10] = b"hello"
    assert own.read(address + 5, 5) == b"hello"
    assert own.read(address, 2 * PAGE) == room[: 2 * PAGE]
    assert own.read(address, 0) == b""


def test_what_cannot_be_read_is_none(own, pages):
    address, _ = pages
    assert own.read(address + 2 * PAGE, 1) is None  # reserved and never given, as a driver's address space
    assert own.read(address + 2 * PAGE - 4, 8) is None  # not half of it either
    assert own.read(0, 8) is None
    assert own.read((1 << 64) - 4, 8) is None
    assert own.read(-8, 8) is None
    assert own.read(1 << 70, 8) is None
    assert own.read(address, -1) is None
    assert own.read(address, READ_LIMIT + 1) is None
    assert own.read_pointer(8) is None
    assert own.read_cstring(8) is None


@pytest.mark.process
def test_a_process_that_is_gone(pages):
    child = subprocess.Popen(["true"])
    child.wait()
    assert ProcessMemory(child.pid).read(pages[0], 8) is None


def test_many_ranges_at_once_are_as_single_ones(own, pages):
    address, room = pages
    for index in range(2 * PAGE):
        room[index] = index * 7 % 251
    wanted = [(address + index, index % 17) for index in range(2 * IOV_MAX + 100)]
    wanted[3] = (address + 2 * PAGE, 8)
    wanted[IOV_MAX] = (address + 2 * PAGE - 1, 2)
    wanted[IOV_MAX + 1] = (-1, 1)
    wanted[-1] = (0, 1)
    answers = own.read_many(wanted)
    assert answers == [own.read(*one) for one in wanted]
    assert [index for index, answer in enumerate(answers) if answer is None] == [
        3,
        IOV_MAX,
        IOV_MAX + 1,
        len(wanted) - 1,
    ]
    assert own.read_many([]) == []


def test_pointers_and_strings(own, pages):
    address, room = pages
    room[:8] = (0x7F1234567890).to_bytes(8, "little")
    room[2 * PAGE - 4 : 2 * PAGE] = b"end\0"
    room[100:108] = "größe\0".encode()
    room[200:203] = b"\xff\0x"
    assert own.read_pointer(address) == 0x7F1234567890
    assert own.read_cstring(address + 2 * PAGE - 4) == "end"  # although the next page cannot be read
    assert own.read_cstring(address + 2 * PAGE - 4, cap=2) == "en"
    assert own.read_cstring(address + 100) == "größe"
    assert own.read_cstring(address + 200) == "\ufffd"
    room[2 * PAGE - 1 : 2 * PAGE] = b"x"
    assert own.read_cstring(address + 2 * PAGE - 4) is None  # its end lies where nothing can be read


def later():
    return time.monotonic() + 60


def test_copy_buffer_stops_at_a_bad_page_and_goes_on_behind(pages):
    address, room = pages
    room[0:2] = b"ab"
    buffer = CopyBuffer(16 * PAGE, PAGE)
    got = buffer.copy(os.getpid(), [(address + PAGE, 3 * PAGE), (0, 8), (address, 16)], later())
    assert got == [PAGE, 0, 16]
    assert buffer.blocks() == [Block(address, room[:16]), Block(address + PAGE, room[PAGE : 2 * PAGE])]
    assert buffer.words(address, 8).tolist() == [int.from_bytes(room[:8], "little")]
    assert not buffer.words(address + 1, 8)


def test_copy_buffer_ends_where_room_or_time_end(pages):
    address, _ = pages
    small = CopyBuffer(PAGE + 8, 1 << 30)
    assert small.copy(os.getpid(), [(address, PAGE), (address, 8), (address, 1)], later()) == [PAGE, 8]
    assert small.left == 0
    late = CopyBuffer(PAGE, 0)
    assert late.copy(os.getpid(), [(address, 8)], time.monotonic() - 1) == []


@pytest.mark.process
def test_copy_buffer_says_when_the_process_is_gone(pages):
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(ProcessLookupError):
        CopyBuffer(PAGE, 0).copy(child.pid, [(pages[0], 8)], later())


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30))))
def test_merged_blocks_hold_the_same_bytes(ranges):
    memory = bytes(range(100))
    merged = merge(Block(start, memory[start : start + size]) for start, size in ranges)
    assert {at for block in merged for at in range(block.address, block.end)} == {
        at for start, size in ranges for at in range(start, start + size)
    }
    assert all(block.data == memory[block.address : block.end] for block in merged)
    assert all(one.end < other.address for one, other in zip(merged, merged[1:]))


@pytest.fixture(params=["the call", "the file"])
def either(request, monkeypatch, own):
    """Reads by process_vm_readv, and by /proc/PID/mem, as where a filter refuses the call."""
    if request.param == "the file":

        def refused(*_):
            ctypes.set_errno(errno.EPERM)
            return -1

        monkeypatch.setattr(memory, "_shared", refused)
        monkeypatch.setattr(memory_file, "_maps", {})
    return own


def test_what_the_process_may_not_read_is_not_zeros(either):
    """As the addresses that a device driver has reserved; the kernel's file would give zeros."""
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_long] * 5]
    reserved = libc.mmap(None, 2 * PAGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    try:
        assert either.read(reserved, 8) is None
        assert either.read_many([(reserved, 8), (reserved + PAGE - 4, 8)]) == [None, None]
    finally:
        libc.munmap(ctypes.c_void_p(reserved), ctypes.c_size_t(2 * PAGE))


def test_as_far_as_it_may_be_read(either, pages):
    address, room = pages
    assert either.read(address + PAGE, PAGE) == room[PAGE : 2 * PAGE]
    assert either.read(address + PAGE, PAGE + 1) is None
    assert either.read_many([(address + 3 * PAGE, 8), (address + 2 * PAGE, 8)]) == [b"\xab" * 8, None]
