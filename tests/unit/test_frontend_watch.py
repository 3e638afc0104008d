"""The parts of `gdbext watch` that need no job: which bundles it keeps, how it words events, what it refuses."""

import json
import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gdbext.analysis.progress.standstill import Stillness
from gdbext.analysis.verdict.judge import judge
from gdbext.capture.without_stop import kernel_threads
from gdbext.cli import main
from gdbext.cli.terminal import Progress
from gdbext.cli.watching import look_with_bundle, terminal_watch
from gdbext.cli.watching.followed_job import place_of, pulse_of
from gdbext.cli.watching.look_with_bundle import bundles_in
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.errors import NothingFound
from gdbext.model.job import Job, RankProcess
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.model.watching import WatchEvent
from gdbext.render import dumps
from gdbext.render.style import Style
from gdbext.render.text.watch import event_lines

DEMO = Path(main.__file__).parents[1] / "demo"
HANG = WatchEvent("hang", "stands still\x1b[2J for 60 s.", 0.0, "/tmp/a", "missing-rank", "high", (1,))


def test_only_bundles_of_a_watch_are_ever_taken_away(tmp_path):
    for name in ("20261121-120000-missing-rank", "20261121-130000-unknown", "mine", "20261121-notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "snapshot.json").write_text("{}")
    (tmp_path / "20261121-110000-empty").mkdir()
    found = [path.name for path in bundles_in(tmp_path)]
    assert found == ["20261121-120000-missing-rank", "20261121-130000-unknown"]


def test_an_event_for_people_and_for_programs():
    lines = event_lines(HANG, Style(width=80))
    assert "\x1b" not in "".join(lines)
    assert lines[0].endswith("stands still for 60 s.")
    assert [line.split()[0] for line in lines[1:]] == ["cause", "bundle", "next"]
    assert json.loads(dumps(HANG))["culprits"] == [1]


@pytest.mark.parametrize(("option", "value"), [("--still", "0"), ("--every", "-1"), ("--keep", "0")])
def test_numbers_that_mean_nothing(option, value, tmp_path, capsys):
    assert main.main(["watch", option, value, "--into", str(tmp_path / "x")]) == 2
    assert "must be positive" in capsys.readouterr().err


@pytest.mark.process  # whether a reader would be killed is asked of a child
def test_nothing_to_watch_is_one_line(tmp_path, capsys):
    assert main.main(["watch", "4194304", "--into", str(tmp_path / "x")]) == 4
    assert "4194304" in capsys.readouterr().err
    assert main.main(["watch", "--into", str(tmp_path / "no" / "x")]) == 4
    assert "cannot write to" in capsys.readouterr().err


def test_what_others_are_told_is_scrubbed_as_bundles_are():
    snapshot = load_snapshot((DEMO / "missing-rank-io.json").read_bytes())
    diagnosis = judge(snapshot)
    loud = replace(
        diagnosis.verdict, summary="Rank 1 reads https://me:sesame@store/x with --token hf_0123456789abcdef."
    )
    event = look_with_bundle.watch_event(replace(diagnosis, verdict=loud), look_with_bundle.Asked(60.0, 20.0))
    assert (event.kind, event.cause, event.standstill, event.culprits) == ("hang", "missing-rank", 60.0, (1,))
    assert event.text.startswith("no progress for 60 s. Rank 1 reads https://***@store") and event.steps
    assert "sesame" not in dumps(event) and "hf_0123" not in dumps(event)
    last = look_with_bundle.watch_event(diagnosis, look_with_bundle.Asked(None, 20.0))
    assert last.text == diagnosis.verdict.summary and last.standstill is None


def test_places_of_sleeping_and_running_threads():
    asleep = kernel_threads.ThreadTimes(1, 0.0, "S", syscall=(202, 1, 2, 3, 4, 5, 6), sp=0x7FFE)
    assert place_of(asleep) == "202@7ffe"
    assert place_of(kernel_threads.ThreadTimes(1, 0.0, "R", sp=0x7FFE)) is None
    assert place_of(kernel_threads.ThreadTimes(1, 0.0, "D", wchan="folio_wait")) == "folio_wait"
    awake = kernel_threads.ThreadTimes(1, 0.0, "S", wchan="hrtimer_nanosleep")
    assert place_of(awake) == "hrtimer_nanosleep"
    assert place_of(awake, with_stack_pointer=True) is None, "it woke up between two files of the kernel"
    assert pulse_of(os.getpid()).threads
    assert not pulse_of(4194304).threads


def test_a_thread_that_woke_up_between_two_files_has_not_moved(monkeypatch):
    """Where the kernel tells calls, a state of sleep without a call is a race, and no new place."""
    asleep = kernel_threads.ThreadTimes(1, 0.0, "S", syscall=(230, 1, 2, 3, 4, 5, 6), sp=0x7FFE, started=1, waited=5)
    awake = kernel_threads.ThreadTimes(1, 0.0, "S", wchan="hrtimer_nanosleep", started=1, waited=6)
    other = kernel_threads.ThreadTimes(2, 0.0, "S", syscall=(202, 1, 2, 3, 4, 5, 6), sp=0x7FFF, started=1, waited=1)
    stillness, polls = Stillness(), []
    for one in (asleep, awake, asleep):
        monkeypatch.setattr(kernel_threads, "look", lambda pid, one=one, **more: {1: one, 2: other})
        polls.append(stillness.poll({7: pulse_of(7)}))
    assert 0 == polls[0] < polls[1] < polls[2]


def seen(monkeypatch, *events):
    """A watch that sees these events, and is ended by Ctrl-C then."""

    def forever(self):
        for kind in events:
            self._tell(kind, f"text of {kind}")
            self.hangs += kind == "hang"
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal_watch.Watch, "forever", forever)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ((), 0),
        (("watching", "no-hang"), 0),
        (("undecided",), 3),
        (("undecided", "trouble"), 3),
        (("undecided", "undecided"), 3),
        (("undecided", "moves"), 0),
        (("undecided", "gone", "watching"), 0),
        (("undecided", "no-hang"), 0),
        (("hang", "moves", "undecided"), 1),
    ],
)
def test_what_could_not_be_told_is_no_all_clear(events, status, monkeypatch, tmp_path, capsys):
    seen(monkeypatch, *events)
    assert main.main(["watch", "1", "--json", "--into", str(tmp_path / "x")]) == status
    assert [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()] == list(events)


def test_what_is_seen_goes_into_a_file_of_its_own(monkeypatch, tmp_path, capsys):
    seen(monkeypatch, "watching", "no-hang")
    file = tmp_path / "seen.jsonl"
    argv = ["watch", "1", "--json", "--into", str(tmp_path / "x"), "--output", str(file)]
    assert main.main(argv) == 0
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["watching", "no-hang"]
    assert capsys.readouterr().out == "" and file.stat().st_mode & 0o777 == 0o600
    assert main.main(argv) == 2, "it is there now"
    assert main.main([*argv, "--force"]) == 0
    assert len(file.read_text().splitlines()) == 2


def test_a_job_that_ends_rank_by_rank_is_remembered_whole(tmp_path, monkeypatch):
    """A new job of which two ranks have started is no successor of three that ended one after the other."""
    ranks = tuple(RankProcess(number, "rank", rank=number, start_time=10) for number in range(3))
    whole, rest = Job("pgid 7", None, ranks), Job("pgid 7", None, ranks[:2])
    options = Namespace(output=None, json=False, still=1.0, every=0.0, spinning_after=20.0, keep=1)
    watch = terminal_watch.Watch(Selector(pids=(0, 1, 2)), options, tmp_path, Progress(quiet=True))
    monkeypatch.setattr(watch, "_say", lambda event: None)
    monkeypatch.setattr(watch, "_proc", SimpleNamespace(tasks=lambda pid: ()))
    monkeypatch.setattr(terminal_watch, "FollowedJob", lambda *_: SimpleNamespace(poll=bool, whole=False))
    for job in (whole, rest):
        watch._follow(job)  # its processes have ended
    begun = tuple(replace(rank, pid=rank.pid + 7, start_time=20) for rank in ranks)
    found = [Job("pgid 8", None, begun[:2])]
    monkeypatch.setattr(terminal_watch, "find_jobs", lambda *_: found)
    with pytest.raises(NothingFound, match="not restarted yet"):
        watch._find()
    found[0] = Job("pgid 8", None, begun)
    assert watch._find().ranks == begun
