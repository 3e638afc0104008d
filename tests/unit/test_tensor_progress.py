"""How far a long count is: said often at first, then rarely, with a guess at the rest once the pace is known."""

from argparse import Namespace
from types import SimpleNamespace

import pytest

from gdbext.commands import tensor_request


@pytest.fixture
def told(monkeypatch):
    """Lines that are said while this many seconds pass, a hundredth of a second at a time."""

    def run(total, per_second, seconds):
        lines = []
        now = [0.0]
        monkeypatch.setattr(tensor_request.time, "monotonic", lambda: now[0])
        asked = tensor_request.Asked(SimpleNamespace(say=lines.append, tensors=None), Namespace(expression=""))
        tell = asked.progress("counted")
        for step in range(1, seconds * 100):
            now[0] = step / 100
            tell(min(total, int(per_second * now[0])), total)
        return lines

    return run


def test_short_work_is_silent(told):
    assert told(100, 100, 1) == []


def test_the_way_out_is_said_once(told):
    lines = told(10_000, 100, 99)
    assert lines[0] == "counted 1% of 10,000 elements; Ctrl-C stops, an index selects a part"
    assert lines[3].startswith("counted 4% of 10,000 elements, 96 s left")
    assert sum("Ctrl-C" in line for line in lines) == 1
    assert 15 < len(lines) < 40


@pytest.mark.parametrize(("total", "left"), [(600, "8 min"), (36_000, "10 h"), (10**15, "over a day")])
def test_the_rest_is_in_units_of_a_person(told, total, left):
    assert any(line.endswith(f", {left} left") for line in told(total, 1, 600))


def test_neither_the_start_of_a_helper_nor_a_second_look_spoils_the_guess(monkeypatch):
    """20 s until the first block, then 1,000 elements a second; after them the same once more."""
    lines, now = [], [0.0]
    monkeypatch.setattr(tensor_request.time, "monotonic", lambda: now[0])
    asked = tensor_request.Asked(SimpleNamespace(say=lines.append, tensors=None), Namespace(expression=""))
    tell = asked.progress("counted")
    now[0] = 20.0
    for done in [*range(100, 20_001, 100)] * 2:
        now[0] += 0.1
        tell(done, 20_000)
    guesses = [int(line.split(", ")[1].split()[0]) for line in lines if line.endswith("left")]
    assert " left" not in lines[0]
    assert len(guesses) > 3
    assert max(guesses) <= 17
