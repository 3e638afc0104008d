"""Lines that a parallel debugger prints once for several ranks."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files
from gdbext.parsers.rank_sets import ranks_of_line

pytestmark = pytest.mark.pure

LGDB = "app{{{ranks}}}: #0  0x00002aaaacb6fa07 in sched_yield\napp{{{ranks}}}: #1  0x00002aaaae9aadbc in sync_wait_mt\n"


def diagnosis(text):
    return judge(parse_files([("a.txt", text.encode())]))


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("app{95,103..105,114}: #0  sched_yield", (95, 103, 104, 105, 114)),
        ("0-2,7: #0  0x00002aaaacb6fa07 in poll ()", (0, 1, 2, 7)),
        ("app{3}: #0  poll", (3,)),
        ("app{0..99999}: #0  poll", ()),  # more than any debugger groups by hand
        ("3: #0  poll ()", ()),  # of one rank: a prefix of its own
        ("10-12: some words", ()),
        ("size{3}: int", ()),
    ],
)
def test_the_ranks_of_a_line(line, ranks):
    assert ranks_of_line(line)[1] == ranks


def test_each_rank_of_a_set_has_the_stack():
    answer = diagnosis(LGDB.format(ranks="95,103..105"))
    assert [process.rank for process in answer.snapshot.processes] == [95, 103, 104, 105]
    assert all(len(process.threads[0].frames) == 2 for process in answer.snapshot.processes)
    assert {one.wait.kind for one in answer.processes} == {"mpi"}


@pytest.mark.parametrize(("ranks", "lacks"), [("95,103..105", True), ("0..3", False)])
def test_ranks_that_are_not_in_the_text_may_be_what_the_others_wait_for(ranks, lacks):
    verdict = diagnosis(LGDB.format(ranks=ranks)).verdict
    assert ("The stacks of the other ranks are not in the text" in verdict.summary) == lacks
    assert verdict.remedies[0].action.startswith("Dump the ranks that are not in the text") == lacks


@pytest.mark.parametrize("name", ["sync_wait_mt", "ompi_sync_wait_mt"])
def test_open_mpi_waits_for_a_request(name):
    answer = diagnosis(f"#0  0x00002aaaacb6fa07 in sched_yield ()\n#1  0x00002aaaae9aadbc in {name} ()\n")
    assert answer.processes[0].wait.kind == "mpi"
