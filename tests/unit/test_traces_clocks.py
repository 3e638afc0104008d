"""All ranks on one clock: known offsets and drifts are found again, and what cannot be aligned is left as it was."""

import pytest

from gdbext.traces.clocks import align, to_common_clock
from gdbext.traces.collective_times import meetings
from gdbext.traces.matching import match_collectives
from gdbext.traces.rank_trace import read_rank
from gdbext.traces.traces_of_job import read_job
from tests.traces.making import Plan, write


def job(folder, plan, **more):
    return read_job(write(plan, folder, **more), True, lambda text: None, 1)


def test_known_offsets_and_drifts(tmp_path):
    offsets, drifts = {1: 5_000.0, 2: -300_000.0, 3: 700.0}, {1: 100.0, 2: -100.0}
    done = job(tmp_path, Plan(steps=60, work=8000, offsets=offsets, drifts=drifts))
    first = done.traces[0].first
    span = done.traces[0].last - first
    for rank in (1, 2, 3):
        clock = done.clocks[rank]
        assert clock.method == "collectives" and clock.aligned and clock.residual_us < 3
        for at in (0, span):  # what the clock of the rank showed at both ends, and what it is moved back to
            shown = first + at + offsets[rank] + drifts.get(rank, 0.0) * (at + 1000) / 1e6
            assert to_common_clock(clock, shown) == pytest.approx(first + at, abs=8)
    assert done.clocks[1].drift == pytest.approx(-100e-6, rel=0.1) and done.clocks[3].drift == 0


def test_ranks_of_one_host_share_its_clock(tmp_path):
    done = job(tmp_path, Plan(hosts=True, offsets={2: 900.0, 3: 900.0}))
    assert [clock.method for clock in done.clocks] == ["shared", "shared", "collectives", "shared"]
    assert [round(clock.offset_us, -1) for clock in done.clocks] == [0, 0, -900, -900]


def test_ranks_that_never_meet_stay_as_they_were(tmp_path):
    done = job(tmp_path, Plan(ranks=4, groups=2, offsets={2: 40.0}))
    assert [clock.aligned for clock in done.clocks] == [True, True, False, False]
    assert done.clocks[2].method == "base time" and done.clocks[2].offset_us == 0
    assert done.clocks[3].part == 2, "they are compared with each other all the same"
    assert {frozenset(one.arrivals) for one in meetings(done.traces, done.clocks)} == {
        frozenset({0, 1}),
        frozenset({2, 3}),
    }


def test_one_profile_began_later(tmp_path):
    paths = write(Plan(ranks=2, named=False, late="host", who=1, jitter=0.3), tmp_path)
    one, other = (read_rank(path)[0] for path in paths)
    (key,) = one.calls
    here, there = one.calls[key], other.calls[key]
    for values in (there.start, there.end, there.size, there.seq):
        del values[:3]
    assert match_collectives(here, there, lambda time: time) == [(at + 3, at) for at in range(len(there.start))]
    assert align([one, other])[1].residual_us < 3


def test_numbers_of_collectives_beat_their_order(tmp_path):
    paths = write(Plan(ranks=2), tmp_path)
    one, other = (read_rank(path)[0] for path in paths)
    (key,) = one.calls
    here, there = one.calls[key], other.calls[key]
    for calls, first in ((here, 0), (there, 5)):
        for at in range(len(calls.seq)):
            calls.seq[at] = first + at
    assert match_collectives(here, there, lambda time: time)[0] == (5, 0)
