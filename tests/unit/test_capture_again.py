"""Comparing two copies: where on the stack did anything change?"""

import pytest

from gdbext.capture.again import compare
from gdbext.capture.memory import Block
from gdbext.capture.stop import ProcessCopy, ThreadCopy
from gdbext.capture.threads import ThreadTimes
from gdbext.model.stack import Frame, ThreadStack

BASE = 0x7000
FRAMES = tuple(Frame(name, sp=BASE + sp) for name, sp in (("poll", 0), ("sync", 64), ("forward", 256), ("main", 1024)))
STACK = ThreadStack("7", FRAMES, 7)


def copy(changes=(), registers=(1, 2), sp=BASE, size=2048):
    data = bytearray(size)
    for offset in changes:
        data[offset] = 0xFF
    return ProcessCopy(7, (ThreadCopy(7, tuple(registers), sp=sp),), (Block(BASE - 128, b"\1" * 128 + bytes(data)),))


def times(waited, started=1):
    return {7: ThreadTimes(7, 0.0, started=started, waited=waited, preempted=1)}


@pytest.mark.parametrize(
    ("changed", "still"),
    [
        ([], 0),
        ([0], 1),  # the polling loop's own frame
        ([63], 1),
        ([64], 2),  # inside sync
        ([255, 3], 2),
        ([300], 3),  # the engine's frame: its loop goes on
        ([1024], 4),  # all of it
        ([1023], 3),
    ],
)
def test_still_is_the_innermost_unchanged_frame(changed, still):
    (seen,) = compare([STACK], copy(), copy(changed), times(3), times(3))
    assert seen.still == still
    assert seen.switches == 0


def test_other_registers_mean_that_the_innermost_frame_moved():
    (seen,) = compare([STACK], copy(), copy(registers=(1, 3)), times(3), times(9))
    assert (seen.still, seen.switches) == (1, 6)


def test_a_thread_that_one_look_lacks_is_not_judged():
    (seen,) = compare([STACK], copy(), ProcessCopy(7), times(3), {})
    assert (seen.still, seen.switches) == (None, None)


def test_a_reused_thread_id_is_another_thread():
    (seen,) = compare([STACK], copy(), copy(), times(3), times(3, started=2))
    assert seen.switches is None


def test_python_frames_without_a_place_on_the_stack_do_not_hinder():
    frames = (FRAMES[0], Frame("decode", language="python"), *FRAMES[2:])
    (seen,) = compare([ThreadStack("7", frames, 7)], copy(), copy([300]), times(1), times(1))
    assert seen.still == 3
