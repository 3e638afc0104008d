"""Numbers folded into ranges."""

from hypothesis import given
from hypothesis import strategies as some

from gdbext.model.text.ranges import numbers_in, ranges_text, spans


@given(some.sets(some.integers(0, 300)))
def test_spans_hold_every_number_once(numbers):
    assert [number for first, last in spans(numbers) for number in range(first, last + 1)] == sorted(numbers)


def test_folded():
    assert ranges_text([7, 0, 1, 2, 2, 9]) == "0-2,7,9"
    assert ranges_text([]) == ""


def test_numbers_of_ranges_up_to_a_limit():
    assert numbers_in("0-3, 7,9", 100) == [0, 1, 2, 3, 7, 9]
    assert numbers_in("5-3, 0-999999999", 4) == [0, 1, 2, 3]
