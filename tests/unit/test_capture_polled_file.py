"""A poll of one file is the read or write that it waits to make; one of several to read has their descriptors."""

import struct

import pytest

from gdbext.capture.without_stop.polled_file import as_read_or_write, calls_for_files
from gdbext.knowledge.runtimes.system_calls import FUTEX, POLL, PPOLL, READ, WRITE
from gdbext.knowledge.runtimes.untimed_calls import POLLED
from tests.unit.stacks import stack

EVER = 0xFFFFFFFF


def read_as(*call, events=1, descriptor=7):
    data = struct.pack("<ihh", descriptor, events, 0)
    return tuple(as_read_or_write(call, lambda address, size: data if (address, size) == (0x10, 8) else None))


@pytest.mark.parametrize(
    ("call", "events", "kind"),
    [((POLL, 0x10, 1, EVER, 0, 0, 0), 1, READ), ((POLL, 0x10, 1, EVER, 0, 0, 0), 4, WRITE),
     ((PPOLL, 0x10, 1, 0, 0, 8, 0), 3, READ), ((POLL, 0x10, 1, EVER, 0, 0, 0), 5, READ)],
)  # fmt: skip
def test_one_file_without_a_limit(call, events, kind):
    assert read_as(*call, events=events) == (kind, 7, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "call",
    [(POLL, 0x10, 2, EVER, 0, 0, 0), (POLL, 0x10, 1, 500, 0, 0, 0), (PPOLL, 0x10, 1, 0x20, 0, 8, 0),
     (POLL, 0x99, 1, EVER, 0, 0, 0), (FUTEX, 0x10, 1, 0, 0, 0, 0), (POLL, 0x10)],
)  # fmt: skip
def test_several_files_a_limit_or_memory_that_cannot_be_read(call):
    assert read_as(*call) == call


def test_nothing_that_is_asked_for_and_no_descriptor():
    call = (POLL, 0x10, 1, EVER, 0, 0, 0)
    assert read_as(*call, events=0) == call and read_as(*call, descriptor=-1) == call


@pytest.mark.parametrize(
    ("files", "found"),
    [(((7, 1), (9, 3)), (POLLED, 7, 9)), (((7, 1), (-1, 1)), (READ, 7, 0, 0, 0, 0, 0)), (((7, 1), (9, 4)), None)],
    ids=["two to read", "one of them closed", "one to write"],
)
def test_several_files(files, found):
    call = (POLL, 0x10, 2, EVER, 0, 0, 0)
    data = b"".join(struct.pack("<ihh", descriptor, events, 0) for descriptor, events in files)
    assert tuple(as_read_or_write(call, lambda _, size: data if size == 16 else None)) == (found or call)


def test_a_poll_of_zeromq_is_for_no_file():
    calls = dict.fromkeys((1, 2, 3), (POLL, 16, 1, EVER, 0, 0, 0))
    stacks = [
        stack("poll@libc.so.6", "??@/site-packages/pyzmq.libs/libzmq-2f02442c.so.5", "zmq_msg_recv@libzmq.so.5", lwp=1),
        stack("poll@libc.so.6", "zmq::signaler_t::wait@engine", "recv@engine", lwp=2),
        stack("poll@libc.so.6", "select_poll_poll@python3", "zmq_loop@loop.py:4", lwp=3),
    ]
    found = calls_for_files(calls, stacks, lambda _, size: struct.pack("<ihh", 7, 1, 0) if size == 8 else None)
    assert found == {3: (READ, 7, 0, 0, 0, 0, 0)}
