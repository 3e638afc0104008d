"""Comparing two copies: where on the stack did anything change?"""

from dataclasses import replace

import pytest

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.stop.second_copy import compare
from gdbext.capture.without_stop.kernel_threads import ThreadTimes
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


def test_what_lies_beyond_the_first_function_of_a_thread_is_none_of_its_calls():
    started = replace(STACK, frames=(*FRAMES[:-1], replace(FRAMES[-1], function="clone3")))
    assert compare([started], copy(), copy([1024]), times(3), times(3))[0].still == 0
    assert compare([started], copy(), copy([1023]), times(3), times(3))[0].still == 3


def test_other_registers_mean_that_the_innermost_frame_moved():
    (seen,) = compare([STACK], copy(), copy(registers=(1, 3)), times(3), times(9))
    assert (seen.still, seen.switches) == (1, 6)


def test_a_thread_that_one_look_lacks_is_not_judged():
    (seen,) = compare([STACK], copy(), ProcessCopy(7), times(3), {})
    assert (seen.still, seen.switches) == (None, None)


def returning(*addresses, registers=(1, 2), sp=BASE, asleep=()):
    """A copy in which these addresses lie below the frames `forward` and `main`: where their callees return to."""
    data = bytearray(2048)
    for slot, address in zip((256, 1024), addresses):
        data[slot - 8 : slot] = address.to_bytes(8, "little")
    blocks = (Block(BASE - 128, bytes(128) + bytes(data)),)
    return ProcessCopy(7, (ThreadCopy(7, registers, sp=sp),), blocks, asleep=frozenset(asleep))


CALLING = ThreadStack("7", (*FRAMES[:2], *(replace(one, pc=pc) for one, pc in zip(FRAMES[2:], (0x11, 0x22)))), 7)


@pytest.mark.parametrize(
    ("second", "left"),
    [
        (returning(0x11, 0x22), 0),
        (returning(0x12, 0x22), 2),  # `forward` is in another call: `poll` and `sync` are over
        (returning(0x12, 0x23), 3),
        (returning(0x11, 0x22, sp=BASE + 512), 2),  # its stack pointer lies further out
    ],
)
def test_calls_that_are_over(second, left):
    (seen,) = compare([CALLING], returning(0x11, 0x22), second, times(3), times(3))
    assert seen.left == left


def test_where_no_address_to_return_to_is_found_nothing_is_said():
    (seen,) = compare([CALLING], returning(0, 0), returning(1, 1), times(3), times(3))
    assert seen.left == 0


def test_what_our_own_stop_adds_to_the_counters_does_not_count():
    (slept,) = compare([STACK], returning(), returning(asleep=(7,)), times(3), times(5))
    assert (slept.switches, slept.turns) == (0, (4, 6))
    (woke,) = compare([STACK], returning(), returning(), times(3), times(5))
    assert (woke.switches, woke.turns) == (2, ())


def test_a_reused_thread_id_is_another_thread():
    (seen,) = compare([STACK], copy(), copy(), times(3), times(3, started=2))
    assert seen.switches is None


def test_python_frames_without_a_place_on_the_stack_do_not_hinder():
    frames = (FRAMES[0], Frame("decode", language="python"), *FRAMES[2:])
    (seen,) = compare([ThreadStack("7", frames, 7)], copy(), copy([300]), times(1), times(1))
    assert seen.still == 3
