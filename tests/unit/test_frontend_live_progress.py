"""What a look says of its copies while it goes on."""

import pytest

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.stop import kill_timer
from gdbext.collect import release_check
from gdbext.collect.live_ranks import Limits, Look
from gdbext.collect.one_rank import LiveRank
from gdbext.model.job import Job, RankProcess, RankSnapshot


class Said:
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    warn = say

    note = say


@pytest.fixture
def look_at():
    def tell(count, **limits):
        ranks = tuple(RankProcess(100 + number, "rank", rank=number) for number in range(count))
        said = Said()
        look = Look(Job("pgid 1", None, ranks), Limits(**limits), said)
        copied = [LiveRank(process) for process in ranks]
        for number, rank in enumerate(copied):
            threads = (ThreadCopy(rank.pid, (1,)), ThreadCopy(rank.pid + 1000, problem="gone"))
            rank.copy, rank.pause_ms = ProcessCopy(rank.pid, threads), float(number)
        look._report_copies(copied)
        return said.lines

    return tell


def test_without_the_timer_of_the_kernel_a_line_says_so_and_the_look_goes_on(monkeypatch, tmp_path):
    said = Said()
    look = Look(Job("pgid 1", None, ()), Limits(), said)
    look._limit_stops(tmp_path)
    assert said.lines == [] and look._budget.note is not None
    monkeypatch.setattr(kill_timer, "why_none", lambda: "timer_create: refused")
    look._limit_stops(tmp_path)
    assert said.lines == [
        "no timer for the stop (timer_create: refused): if gdbext itself is stopped meanwhile, the ranks stay stopped"
    ]
    Look(Job("pgid 1", None, ()), Limits(no_stop=True), said)._limit_stops(tmp_path)
    assert len(said.lines) == 1


def test_few_ranks_have_a_line_each(look_at):
    assert look_at(2) == [
        "rank 0: 1 thread copied, stopped for 0.0 ms",
        "rank 1: 1 thread copied, stopped for 1.0 ms",
    ]


def test_many_ranks_have_one_line(look_at):
    assert look_at(64) == ["64 threads of 64 ranks copied, each stopped for at most 63.0 ms"]
    assert look_at(64, no_stop=True) == ["64 threads of 64 ranks copied, without a stop"]


@pytest.mark.parametrize("before, problems", [(True, []), (False, ["process 5 traces it now"])])
def test_a_tracer_that_was_there_before_is_no_news(monkeypatch, before, problems):
    monkeypatch.setattr(release_check, "sign_of", lambda *_: release_check.Sign("traced", "process 5 traces it now"))
    process = RankProcess(100, "rank", rank=0)
    rank = LiveRank(process, traced=before)
    said = Said()
    found = Look(Job("pgid 1", None, (process,)), Limits(), said)._check_released(rank, {}, RankSnapshot(0, ()))
    assert (found.after, list(found.problems)) == ("traced", problems)
    assert bool(said.lines) is not before
