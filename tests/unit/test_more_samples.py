"""When `gdbext diagnose` looks again by itself."""

import time
from types import SimpleNamespace

import pytest

from gdbext.cli.judge_and_show import LONGER, seconds_to_wait
from gdbext.model.job import JobSnapshot

pytestmark = pytest.mark.pure


UNDECIDED = SimpleNamespace(decided_by=f"{LONGER} 3 --interval 10")


@pytest.mark.parametrize(
    ("ages", "apart", "wait"),
    [
        ((5.0,), 1.2, (14.0, 15.0)),
        ((60.0,), 1.2, (0.0, 0.0)),  # one look that took a minute: the next one at once
        ((60.0,), 25.0, (0.0, 0.0)),  # whose two copies are that far apart: a place has its name in one of them
        ((60.0, 30.0), 1.2, None),
        ((21.0, 2.0), 1.2, None),
    ],
    ids=["soon", "slow-look", "slow-copies", "seen-for-long", "just-enough"],
)
def test_looks_go_on_until_they_cover_the_time(ages, apart, wait):
    now = time.time()
    *earlier, last = (JobSnapshot((), taken_at=now - age, apart=apart) for age in ages)
    snapshot = JobSnapshot((), taken_at=last.taken_at, apart=apart, earlier=tuple(earlier))
    left = seconds_to_wait(SimpleNamespace(snapshot=snapshot, verdict=UNDECIDED), 20.0)
    if wait is None:
        assert left is None
    else:
        assert left is not None and wait[0] <= left <= wait[1]
