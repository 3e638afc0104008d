"""Two looks that lie apart: who moved, who did not, which stacks and counters are others."""

import json
from dataclasses import replace

import pytest
from stacks import rank, stack

from gdbext.analysis.progress.look_difference import difference
from gdbext.model.communicator import Communicator
from gdbext.model.difference import STATES
from gdbext.model.job import JobSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.render import Style, render
from tests.front_end import gdbext

WAITS = ("poll@libc.so.6", "ncclAllReduce@libnccl.so.2", "decode@engine a.cc:66", "main@engine main.cc:9")
ALLOCATES = ("ioctl@libc.so.6", "cudaMallocHost@libcudart.so.12", "decode@engine a.cc:70", "main@engine main.cc:9")
COMPUTES = ("gemm@engine b.cc:3", "forward@engine b.cc:5", "main@engine main.cc:9")


def look(*ranks, **fields):
    return JobSnapshot(tuple(replace(one, index=at) for at, one in enumerate(ranks)), **fields)


def compared(before, after):
    return difference(before, after, (Origin(("a",), 0.0, ("h",)), Origin(("b",), 3600.0, ("h",))))


def states(found):
    return {one.rank: one.state for one in found.ranks}


def test_the_same_run_an_hour_later():
    before = look(rank(0, stack(*WAITS)), rank(1, stack(*ALLOCATES)), rank(2, stack(*COMPUTES)))
    after = look(rank(0, stack(*WAITS)), rank(1, stack(*ALLOCATES)), rank(2, stack(*WAITS)))
    found = compared(before, after)
    assert states(found) == {0: "same", 1: "same", 2: "moved"} and found.differs and found.told
    (new, gone) = sorted(found.stacks, key=lambda one: one.calls, reverse=True)
    assert {gone.calls[-1], new.calls[-1]} == {"gemm", "poll"}
    poll = next(one for one in found.stacks if one.calls[-1] == "poll")
    assert (poll.before, poll.after) == ((0,), (0, 2))
    assert not compared(before, before).differs


def test_another_run_and_build_with_other_pids_threads_and_lines():
    before = look(rank(0, stack(*WAITS, id="11")), rank(1, stack(*ALLOCATES, id="12")))
    moved = tuple(text.replace(":66", ":68").replace(":70", ":75") for text in WAITS)
    after = look(
        rank(1, stack(*WAITS, id="92"), pid=7001, host="other"), rank(0, stack(*moved, id="91"), pid=7000, host="other")
    )
    found = compared(before, after)
    assert states(found) == {0: "same", 1: "moved"}
    assert [(one.pid_before, one.pid_after) for one in found.ranks] == [(1000, 7000), (1001, 7001)]


def test_a_line_that_moved_in_the_same_process_is_a_move():
    later = tuple(text.replace(":66", ":68") for text in WAITS)
    assert states(compared(look(rank(0, stack(*WAITS))), look(rank(0, stack(*later))))) == {0: "moved"}


def test_new_gone_unread_and_a_thread_that_ran():
    ran = stack(*WAITS, turns=(1, 2)), stack(*WAITS, turns=(5, 6))
    before = look(rank(0, ran[0]), rank(1, stack(*WAITS)), rank(3))
    after = look(rank(0, ran[1]), rank(2, stack(*WAITS)), rank(3, stack(*WAITS)))
    found = compared(before, after)
    assert states(found) == {0: "unknown", 1: "gone", 2: "new", 3: "unknown"}
    why = {one.rank: one.why for one in found.ranks}
    assert "ran in between" in why[0] and "first snapshot" in why[3] and not found.told


def test_counts_of_one_communicator():
    def with_counts(count):
        communicator = Communicator(1, "scan", hash=0xABC, counts={"all_reduce": count, "all_gather": 2})
        return look(rank(0, stack(*WAITS), communicators=(communicator,)))

    found = compared(with_counts(4), with_counts(9))
    (one,) = found.ranks
    assert [(count.kind, count.before, count.after) for count in one.counts] == [("all_reduce", 4, 9)]
    assert one.state == "same" and found.differs
    assert "rank 0: all_reduce on 0xabc 4 → 9" in "\n".join(render(found, Style(width=100)))


def test_processes_without_rank_numbers_are_matched_by_pid():
    before = look(*(replace(rank(at, stack(*WAITS)), rank=None) for at in (0, 1)))
    found = compared(before, look(replace(rank(1, stack(*COMPUTES)), rank=None)))
    assert [(one.name, one.state) for one in found.ranks] == [("pid 1000", "gone"), ("pid 1001", "moved")]
    assert "matches processes by host and pid" in found.notes[0]


@pytest.mark.parametrize(
    "after, status", [(WAITS, 0), (COMPUTES, 1), ((), 3)], ids=["nothing moved", "moved", "cannot be told"]
)
def test_the_command(tmp_path, after, status):
    before = look(rank(0, stack(*WAITS)), taken_at=0.0)
    later = look(rank(0, *([stack(*after)] if after else [])), taken_at=3600.0)
    if not after:
        before = look(rank(0), taken_at=0.0)
    for name, snapshot in (("a.json", before), ("b.json", later)):
        (tmp_path / name).write_text(dump_snapshot(snapshot))
    done = gdbext("diff", tmp_path / "a.json", tmp_path / "b.json")
    assert done.returncode == status and "1970-01-01 01:00:00 UTC" in done.stdout
    document = json.loads(gdbext("diff", tmp_path / "a.json", tmp_path / "b.json", "--json").stdout)
    assert document["ranks"][0]["state"] in STATES and document["after"]["taken_at"] == 3600.0


def test_what_is_no_snapshot_is_said(tmp_path):
    (tmp_path / "text").write_text("Thread 1")
    done = gdbext("diff", tmp_path / "text", tmp_path / "text")
    assert done.returncode == 4 and "is not a snapshot" in done.stderr
    assert gdbext("diff", "-", "-").returncode == 2
