"""Ranks that are large in one respect, small enough for CI: what a look takes is bounded, and nothing is left out.

The sizes of production are those of `scripts/bench size --full` (docs/scale.md).
"""

import pytest

from gdbext.model.snapshot_files.codec import load_snapshot
from tests.bench.size import count_threads, look
from tests.inferiors import size_build
from tests.inferiors.size_build import Symbols

pytestmark = pytest.mark.gdb

LIBRARIES, THREADS, RANKS = 100, 300, 12
TABLE = 200 << 20  # bytes of symbol table, most of them a hole
ENOUGH = 120  # MiB: the front end takes 30 for the smallest look, an index of that table would take 1,400
ENOUGH_FOR_GDB = 250  # MiB: it takes 65; of the table it would take 200 alone


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("size")
    size_build.build(folder, LIBRARIES, Symbols(1000, gap=TABLE))
    assert (folder / "lib0.so").stat().st_size > TABLE
    return folder


def looked_at(folder, libraries, threads, ranks=1, extra=()):
    """(cost, stacks of each rank) of one look."""
    saved = folder / "snapshot.json"
    saved.unlink(missing_ok=True)
    with size_build.running(folder, libraries, threads, ranks) as pids:
        assert count_threads(pids) == threads * ranks
        cost = look(pids, threads * ranks, ["--save", str(saved), *extra], folder / "cache")
    return cost, [process.threads for process in load_snapshot(saved.read_bytes()).processes]


def names(stack):
    return [frame.function for frame in stack.frames]


def test_many_threads_in_many_libraries_and_a_large_symbol_table(folder):
    """Each thread sleeps in the function of a library, one in a hundred in that with the large table."""
    cost, (stacks,) = looked_at(folder, LIBRARIES, THREADS)
    assert cost["states"] == ["ok"] and cost["problems"] == []
    assert cost["threads"] == [THREADS, THREADS]
    assert all("library" in names(stack) for stack in stacks), "each is walked to its outer frames, and named"
    modules = {frame.module for stack in stacks for frame in stack.frames if frame.function == "library"}
    assert len(modules) == LIBRARIES
    assert cost["gdbs"] == 1
    assert cost["memory"] < ENOUGH and cost["gdb_memory"] < ENOUGH_FOR_GDB
    assert any("scanning the 8.7 million symbols of lib0.so" in text for text, _, _ in cost["phases"])
    assert cost["lines"] < 60, "a screen, whatever the size"


@pytest.mark.parametrize("jobs", [0, 2])
def test_many_ranks(folder, jobs):
    """Their stacks are not worth a second gdb; two that were asked for share the ranks."""
    cost, ranks = looked_at(folder, 1, 4, RANKS, ("--jobs", str(jobs)))
    assert cost["states"] == ["ok"] and cost["threads"] == [4 * RANKS, 4 * RANKS]
    assert len(ranks) == RANKS and all("library" in names(stack) for stacks in ranks for stack in stacks)
    assert cost["gdbs"] == (jobs or 1)
    assert cost["memory"] < ENOUGH and cost["gdb_memory"] < ENOUGH_FOR_GDB
    assert cost["lines"] < 60
