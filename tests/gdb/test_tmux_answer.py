"""A terminal of 80 x 24: when gdbext is done, the whole answer stands on the screen."""

import itertools
import sys
from pathlib import Path

import pytest

from tests.inferiors.demo import DemoJob
from tests.inferiors.scenarios import SCENARIOS
from tests.tmux import SHELL, Tmux

DEMO = Path(__file__).parents[2] / "gdbext" / "demo"
NUMBERS = itertools.count(1)
TYPED = f"{sys.executable} -m gdbext diagnose"


@pytest.fixture(scope="module")
def window():
    with Tmux({"TERM": "xterm-256color"}, columns=80, lines=24) as window:
        yield window


def last_answer(window, words):
    """The lines of the answer, which stand between the last empty line and the prompt."""
    number = next(NUMBERS)
    window.enter(f"{TYPED} {words}; echo ended-$((1000+{number}))")
    window.until(f"ended-{1000 + number}", SHELL)
    lines = window.seen()
    end = lines.index(f"ended-{1000 + number}")
    assert lines[end + 1].startswith(SHELL.strip()), "the prompt comes next"
    begin = max(number for number, line in enumerate(lines[:end]) if not line)
    return lines[begin + 1 : end]


@pytest.mark.parametrize("name", [one.name for one in SCENARIOS])
def test_the_answer_of_a_recorded_hang_is_on_the_last_screen(window, name):
    lines = last_answer(window, DEMO / f"{name}.json")
    assert " confidence): " in lines[0] and len(lines) <= 8
    assert lines[-1].startswith("  next     ")
    assert not any("gdbext: " in line for line in lines), "no step of the work is left"


def test_the_answer_of_a_running_hang_is_on_the_last_screen(window, turn_gdb):
    with DemoJob("pinned-alloc", ranks=4, wait="poll") as job:
        lines = last_answer(window, f"--gdb {turn_gdb} {' '.join(map(str, job.pids.values()))}")
    assert lines[0].startswith("implicit-sync-vs-collective (high confidence): Rank 1 is in cudaMallocHost,")
    titles = [line[2:10].strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert titles == ["suspect", "chain", "do", "pause", "next"]
    assert "holding up ranks 0,2-3" in " ".join(lines)
    assert "all are running again" in " ".join(lines)
