"""Copies shared out to several gdbs: each stack comes back to its copy, and what one gdb fails in costs no other."""

import contextlib
import itertools
import re
import threading

import pytest

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.collect.gdb_runs import batch_runs, unwinding
from gdbext.model.errors import GdbextError
from gdbext.model.snapshot_files.frame_table import FrameTable
from gdbext.model.stack import Frame, ThreadStack

COPIES = [ProcessCopy(pid, (ThreadCopy(pid),)) for pid in (10, 11, 12, 13, 14)]


def stack_of(pid):
    return ThreadStack(str(pid), (Frame("f", pc=pid, sp=8),), pid)


def record(request, hostile=()):
    """What a gdb leaves; one that comes to a copy of the pids `hostile` ends there."""
    rows = list(itertools.takewhile(lambda row: row["pid"] not in hostile, request["ranks"]))
    if len(rows) < len(request["ranks"]):
        at = request["ranks"][len(rows)]["index"]
        done = record({**request, "ranks": rows})
        return {**done, "complete": False, "at": at, "failure": GdbextError("it was ended by signal 11")}
    table = FrameTable()
    ranks = [
        {"index": row["index"], "threads": table.pack([stack_of(row["pid"])]), "problems": [f"odd {row['pid']}"]}
        for row in request["ranks"]
    ]
    return {"ranks": ranks, "frames": table.rows, "problems": ["said by each"]}


@pytest.fixture
def unwind(monkeypatch, tmp_path):
    def work(jobs, broken=(), hostile=(), only_early=False):
        """`broken`: gdbs that leave nothing, those for every `jobs`th copy. `only_early`: no later ones do."""
        said = []

        def run_batches(gdb, requests, folder, deadline, on_progress, module, begun, meanwhile):
            assert list(begun) == ([] if seen else ["begun"] * len(requests))
            fails = () if seen and only_early else broken
            for number, request in enumerate(requests):
                for row in request["ranks"]:
                    on_progress(number, f"stacks of pid {row['pid']}")
            seen.extend(requests)
            return [
                GdbextError(f"gdb {request['ranks'][0]['index'] % jobs} broke")
                if request["ranks"][0]["index"] % jobs in fails
                else record(request, hostile)
                for request in requests
            ]

        rows = [{"index": number, "pid": copy.pid, "files": []} for number, copy in enumerate(COPIES)]
        monkeypatch.setattr(unwinding, "ranks_of", lambda *_: (rows, [["file"], [], [], [], []]))
        monkeypatch.setattr(batch_runs, "run_batches", run_batches)
        monkeypatch.setattr(batch_runs, "begin", lambda gdb, count, folder: contextlib.nullcontext(["begun"] * count))
        seen.clear()
        result = unwinding.unwind(COPIES, "gdb", tmp_path, 256, 60.0, said.append, jobs=jobs)
        several = [f"{min(jobs, 5)} gdbs side by side"] if jobs > 1 else []
        lines = [f"stacks of {number}/5" for number in range(1, 6)]
        assert said[: len(several) + 5] == several + lines and set(said) == {*several, *lines}
        return result

    seen = []
    work.requests = seen
    return work


@pytest.mark.parametrize("jobs", [1, 2, 3, 5, 9])
def test_each_stack_comes_back_to_its_copy(unwind, jobs):
    result = unwind(jobs)
    assert len(unwind.requests) == min(jobs, 5)
    assert [one.stacks for one in result.ranks] == [(stack_of(copy.pid),) for copy in COPIES]
    assert [one.problems for one in result.ranks] == [(f"odd {copy.pid}",) for copy in COPIES]
    assert result.ranks[0].files == ("file",)
    assert (result.problems, result.failure) == (("said by each",), None)


def test_the_time_of_a_gdb_is_shared_by_its_copies(unwind):
    unwind(2)
    assert [len(request["ranks"]) for request in unwind.requests] == [3, 2]
    assert {request["budget"]["seconds"] for request in unwind.requests} == {20.0}


def test_a_gdb_that_fails_costs_its_own_copies_only(unwind):
    result = unwind(2, broken=[1])
    assert result.failure is None
    assert [bool(one.stacks) for one in result.ranks] == [True, False, True, False, True]
    assert result.ranks[1].problems == ("no native frames: gdb 1 broke",)


def test_a_gdb_that_failed_on_what_it_read_early_is_replaced(unwind):
    result = unwind(2, broken=[1], only_early=True)
    assert all(one.stacks for one in result.ranks)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_copy_that_ends_its_gdb_costs_no_other(unwind, jobs):
    result = unwind(jobs, hostile=[11, 13])
    assert [bool(one.stacks) for one in result.ranks] == [True, False, True, False, True]
    assert result.ranks[3].problems == ("no native frames: it was ended by signal 11",)
    assert result.failure is None


def test_one_that_is_hostile_alone_is_the_failure(unwind):
    result = unwind(1, hostile=[copy.pid for copy in COPIES])
    assert str(result.failure) == "it was ended by signal 11"


def test_numbers_that_are_none_cost_the_copies_of_their_gdb(unwind, monkeypatch):
    def nonsense(rows):
        raise ValueError("pc: -1 is not an address")

    monkeypatch.setattr(unwinding, "frames_of", nonsense)
    assert "invalid frames: pc: -1" in str(unwind(1).failure)


def test_when_all_fail_there_is_nothing(unwind):
    result = unwind(2, broken=[0, 1])
    assert str(result.failure) == "gdb 1 broke"
    assert not any(one.stacks for one in result.ranks)


def test_the_table_of_frames_is_read_once_for_all_copies_of_a_gdb(unwind, monkeypatch):
    read = []
    frames_of = unwinding.frames_of
    monkeypatch.setattr(unwinding, "frames_of", lambda rows: read.append(len(rows)) or frames_of(rows))
    unwind(2)
    assert len(read) == 2


def test_without_room_for_a_thread_the_work_is_done_in_silence(unwind, monkeypatch):
    def refuses(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    result = unwind(1)
    assert [one.stacks for one in result.ranks] == [(stack_of(copy.pid),) for copy in COPIES]


def test_a_long_silence_names_the_rank_and_the_library_that_is_read():
    said = []
    with unwinding._Count(2, 60.0, said.append, ["rank 3", "rank 4"]) as progress:
        progress.said(0, "stacks of 1/2")
        progress.said(0, "reading 1 /usr/lib/libtorch_cuda.so")
        assert said == ["stacks of 1/2"], "a line for each of 200 libraries is none"
        progress.silent_for(0.0)
        assert re.fullmatch(r"rank 4: reading libtorch_cuda\.so; \d+ s of 60", said[-1])
        progress.said(0, "reading 7 libc.so.6")
        progress.silent_for(0.0)
        assert said[-1].startswith("copy 8 of 2: reading libc.so.6;")
