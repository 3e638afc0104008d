"""What a look says of its copies while it goes on."""

import pytest

from gdbext.capture.stop import ProcessCopy, ThreadCopy
from gdbext.frontend import afterwards
from gdbext.frontend.live import Limits, Look
from gdbext.frontend.live_rank import LiveRank
from gdbext.model.job import Job, RankProcess


class Said:
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)


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
        look._tell_copies(copied)
        return said.lines

    return tell


def test_few_ranks_have_a_line_each(look_at):
    assert look_at(2) == [
        "rank 0: 1 threads copied, stopped for 0.0 ms",
        "rank 1: 1 threads copied, stopped for 1.0 ms",
    ]


def test_many_ranks_have_one_line(look_at):
    assert look_at(64) == ["64 threads of 64 ranks copied, each stopped for at most 63.0 ms"]
    assert look_at(64, no_stop=True) == ["64 threads of 64 ranks copied, without a stop"]


@pytest.mark.parametrize("before, problems", [(True, []), (False, ["process 5 traces it now"])])
def test_a_tracer_that_was_there_before_is_no_news(monkeypatch, capsys, before, problems):
    monkeypatch.setattr(afterwards, "sign_of", lambda *_: afterwards.Sign("traced", "process 5 traces it now"))
    process = RankProcess(100, "rank", rank=0)
    rank = LiveRank(process, traced=before)
    Look(Job("pgid 1", None, (process,)), Limits(), Said())._check_released(rank, {})
    assert (rank.after, rank.problems) == ("traced", problems)
    assert bool(capsys.readouterr().err) is not before
