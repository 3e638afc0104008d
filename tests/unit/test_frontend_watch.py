"""The parts of `gdbext watch` that need no job: which bundles it keeps, how it words events, what it refuses."""

import json
import os

import pytest

from gdbext.analysis.watching import Stillness
from gdbext.capture import threads
from gdbext.frontend import cli, watch
from gdbext.model.watching import WatchEvent
from gdbext.render.style import Style
from gdbext.render.watch import event_document, event_lines

HANG = WatchEvent("hang", "stands still\x1b[2J for 60 s.", 0.0, "/tmp/a", "missing-rank", "high", (1,))


def test_only_bundles_of_a_watch_are_ever_taken_away(tmp_path):
    for name in ("20261121-120000-missing-rank", "20261121-130000-unknown", "mine", "20261121-notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "snapshot.json").write_text("{}")
    (tmp_path / "20261121-110000-empty").mkdir()
    found = [path.name for path in watch.bundles_in(tmp_path)]
    assert found == ["20261121-120000-missing-rank", "20261121-130000-unknown"]


def test_an_event_for_people_and_for_programs():
    lines = event_lines(HANG, Style(width=80))
    assert "\x1b" not in "".join(lines)
    assert lines[0].endswith("stands still for 60 s.")
    assert [line.split()[0] for line in lines[1:]] == ["cause", "bundle"]
    assert json.loads(event_document(HANG))["culprits"] == [1]


@pytest.mark.parametrize(("option", "value"), [("--still", "0"), ("--every", "-1"), ("--keep", "0")])
def test_numbers_that_mean_nothing(option, value, tmp_path, capsys):
    assert cli.main(["watch", option, value, "--into", str(tmp_path / "x")]) == 2
    assert "must be positive" in capsys.readouterr().err


def test_nothing_to_watch_is_one_line(tmp_path, capsys):
    assert cli.main(["watch", "4194304", "--into", str(tmp_path / "x")]) == 4
    assert "4194304" in capsys.readouterr().err
    assert cli.main(["watch", "--into", str(tmp_path / "no" / "x")]) == 4
    assert "cannot write to" in capsys.readouterr().err


def test_places_of_sleeping_and_running_threads():
    asleep = threads.ThreadTimes(1, 0.0, "S", syscall=(202, 1, 2, 3, 4, 5, 6), sp=0x7FFE)
    assert watch.place_of(asleep) == "202@7ffe"
    assert watch.place_of(threads.ThreadTimes(1, 0.0, "R", sp=0x7FFE)) is None
    assert watch.place_of(threads.ThreadTimes(1, 0.0, "D", wchan="folio_wait")) == "folio_wait"
    awake = threads.ThreadTimes(1, 0.0, "S", wchan="hrtimer_nanosleep")
    assert watch.place_of(awake) == "hrtimer_nanosleep"
    assert watch.place_of(awake, told=True) is None, "it woke up between two files of the kernel"
    assert watch.pulse_of(os.getpid()).threads
    assert not watch.pulse_of(4194304).threads


def test_a_thread_that_woke_up_between_two_files_has_not_moved(monkeypatch):
    """Where the kernel tells calls, a state of sleep without a call is a race, and no new place."""
    asleep = threads.ThreadTimes(1, 0.0, "S", syscall=(230, 1, 2, 3, 4, 5, 6), sp=0x7FFE, started=1, waited=5)
    awake = threads.ThreadTimes(1, 0.0, "S", wchan="hrtimer_nanosleep", started=1, waited=6)
    other = threads.ThreadTimes(2, 0.0, "S", syscall=(202, 1, 2, 3, 4, 5, 6), sp=0x7FFF, started=1, waited=1)
    stillness, polls = Stillness(), []
    for one in (asleep, awake, asleep):
        monkeypatch.setattr(threads, "look", lambda pid, one=one: {1: one, 2: other})
        polls.append(stillness.poll({7: watch.pulse_of(7)}))
    assert 0 == polls[0] < polls[1] < polls[2]
