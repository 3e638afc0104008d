"""How long a thread of a copy still sleeps."""

import struct
import time

import pytest

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.machine import ARCHITECTURES
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.without_stop import sleep_times
from gdbext.model.stack import ThreadStack

BASE = 0x7000
X86 = next(one for one in ARCHITECTURES if one.name == "x86_64")
ORIG_RAX, RDI, RSI, RDX = 15, 14, 13, 12  # sys/user.h


def told(number, rdi=0, rsi=0, rdx=0, at=(0, 0), architecture=X86):
    words = [0] * 27
    words[ORIG_RAX], words[RDI], words[RSI], words[RDX] = number, rdi, rsi, rdx
    blocks = (Block(BASE, struct.pack("<qq", *at)),)
    copy = ProcessCopy(7, (ThreadCopy(7, tuple(words), sp=BASE),), blocks, architecture=architecture)
    (one,) = sleep_times.with_sleep_times([ThreadStack("7", (), 7)], copy)
    return one.sleeps


def test_a_relative_sleep_takes_that_long_at_most():
    assert told(35, BASE, at=(3, 500_000_000)) == 3.5
    assert told(230, time.CLOCK_MONOTONIC, 0, BASE, at=(2, 0)) == 2.0


def test_an_absolute_sleep_ends_at_its_time():
    """As Python sleeps since 3.11."""
    ends = int(time.clock_gettime(time.CLOCK_MONOTONIC)) + 100
    assert 95 < told(230, time.CLOCK_MONOTONIC, 1, BASE, at=(ends, 0)) <= 100
    assert told(230, time.CLOCK_MONOTONIC, 1, BASE, at=(1, 0)) == 0.0


@pytest.mark.parametrize(
    "call",
    [(202, BASE), (2**64 - 1, BASE), (35, BASE + 4096), (230, 99, 1, BASE), (219, BASE)],
    ids=["futex", "in no call", "memory that was not copied", "a clock that nobody knows", "begun anew"],
)
def test_what_is_not_known_is_none(call):
    assert told(*call) is None


def test_garbage_and_other_machines_say_nothing():
    assert told(35, BASE, at=(5, 10**9)) is None and told(35, BASE, at=(-1, 0)) is None
    assert told(35, BASE, at=(5, 0), architecture=None) is None


@pytest.mark.parametrize(
    ("sleeps", "seconds"),
    [((2.0, None), 2.3), ((0.05, 3.0), 3.3), ((None, None), 0.0), ((60.0, None), 0.0), ((60.0, 1.0), 1.3),
     ((2.0,), 0.0)],
)  # fmt: skip
def test_a_look_waits_until_main_threads_that_sleep_for_seconds_go_on(sleeps, seconds):
    """Of a single process nobody waits for the end of its sleep."""
    other = ThreadStack(id="9", frames=(), lwp=9, sleeps=4.0)
    mains = {pid: (ThreadStack(id="1", frames=(), lwp=pid, sleeps=one), other) for pid, one in enumerate(sleeps, 100)}
    assert sleep_times.until_awake(mains) == pytest.approx(seconds)
