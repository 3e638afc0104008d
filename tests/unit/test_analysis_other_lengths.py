"""Ranks in different collectives, called from one function that goes through lists of different lengths."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.stack import Loop
from tests.unit.stacks import job, rank, stack

INNER = ("poll@libc.so.6", "gloo::transport::tcp::UnboundBuffer::waitRecv@libtorch_cpu.so")
SENDS = ("broadcast@torch/distributed/distributed_c10d.py:2100", "update@sync.py:50", "main@sync.py:60")
ENDS = ("barrier@torch/distributed/distributed_c10d.py:3700", "update@sync.py:53", "main@sync.py:60")


def at(number, frames, left=None, **lengths):
    named = {f"update.{name}": one for name, one in lengths.items()}
    loops = () if left is None else (Loop("update", 0x70 + number, left), Loop("main", 0x90, 7 - number))
    return rank(number, replace(stack(*INNER, *frames), lengths=named, loops=loops))


def judged(*lengths, last=ENDS):
    frames = (SENDS, ENDS, last)
    return judge(job(*(at(number, frames[number], **one) for number, one in enumerate(lengths)))).verdict


def test_whose_list_is_shorter_than_all_the_others_has_called_fewer():
    found = judged({"tensors": 12}, {"tensors": 12}, {"tensors": 11})
    assert (found.cause, found.culprits, found.victims) == ("collective-mismatch", (2,), (0, 1))
    assert found.confidence == "low"  # by the stacks it would be rank 0
    assert "On rank 2, `tensors` in update() has 11 items; elsewhere, 12. Most likely rank 2 called" in found.summary


def test_a_list_tells_where_a_loop_over_it_has_ended():
    found = judged({"tensors": 12, "left": 4}, {"tensors": 12, "left": 4}, {"tensors": 11})
    assert found.culprits == (2,) and "`tensors` in update() has 11 items" in found.summary


def test_whose_loop_has_another_number_of_items_left_has_called_more_or_fewer():
    found = judged({"left": 4}, {"left": 4}, {"left": 3})
    assert (found.cause, found.culprits, found.confidence) == ("collective-mismatch", (2,), "low")
    assert "On rank 2, a loop in update() has 3 items left; elsewhere, 4. Most likely rank 2 called" in found.summary


@pytest.mark.parametrize(
    "lengths",
    [
        ({"tensors": 12},) * 3,
        ({"tensors": 12}, {"tensors": 12}, {}),
        ({"tensors": 12}, {"tensors": 11}, {"tensors": 10}),
        ({"left": 4}, {"left": 4}, {}),
        ({"tensors": 12, "requests": 3}, {"tensors": 12, "requests": 0}, {"tensors": 11, "requests": 0}),
    ],
    ids=[
        "equal",
        "not read",
        "all differ",
        "one loop is not read",
        "two lists speak of two ranks",
    ],
)
def test_otherwise_the_stacks_tell(lengths):
    found = judged(*lengths)
    assert (found.cause, found.culprits) == ("collective-mismatch", (0,)) and "items" not in found.summary


def test_from_different_functions_no_list_is_compared():
    other = (ENDS[0], "restore@sync.py:9", "main@sync.py:61")
    assert "items" not in judged({"tensors": 12}, {"tensors": 12}, {"tensors": 11}, last=other).summary
