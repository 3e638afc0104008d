"""The request and result of a batch gdb that reads copies."""

import json
import os

import pytest

from gdbext.capture.cores.minicore import write_core
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.capture.symbols.mapped_libraries import libraries_on_stacks
from gdbext.collect.gdb_runs import batch_runs
from gdbext.model.errors import GdbextError
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.model.snapshot_files.frame_table import unpack
from tests.excerpts import whole
from tests.gdb.gdbrun import Target, gdb_batch

pytestmark = pytest.mark.gdb

BUDGET = {"seconds": 60, "frames": 256}


def rank(index, target, folder):
    """The request for a copy of a running target."""
    copy = copy_process(target.pid)
    core = folder / f"core.{index}"
    write_core(copy, str(core))
    files = libraries_on_stacks(copy)
    return {"index": index, "pid": target.pid, "core": str(core), **whole(copy, files), "held": files}


def batch(gdb, folder, ranks, budget=BUDGET, schema=1):
    """(result, gdb's answer)."""
    request, result = folder / "request.json", folder / "result.json"
    rows = [{name: value for name, value in one.items() if name != "held"} for one in ranks]
    request.write_text(json.dumps({"schema": schema, "result": str(result), "budget": budget, "ranks": rows}))
    answer = gdb_batch(
        gdb, f"python from gdbext.inside_gdb.stacks import read_copies; read_copies.main({str(request)!r})"
    )
    assert not (folder / "result.json.part").exists()
    assert result.stat().st_mode & 0o777 == 0o600
    return batch_runs._record(result, GdbextError("no result")), answer


def test_the_copies_of_two_processes(any_gdb, tmp_path):
    with Target("threads", 5) as one, Target("plain") as two:
        ranks = [rank(0, one, tmp_path), rank(7, two, tmp_path)]
        one.assert_free()
        result, answer = batch(any_gdb, tmp_path, ranks)
        two.assert_free()
    assert (result["schema"], result["complete"], result["problems"]) == (1, True, [])
    assert [(entry["index"], len(entry["threads"]), entry["problems"]) for entry in result["ranks"]] == [
        (0, 6, []),
        (7, 1, []),
    ]
    for entry, target in zip(result["ranks"], (one, two)):
        stacks = unpack(result["frames"], entry["threads"])
        main = next(stack for stack in stacks if stack.lwp == target.pid)
        assert main.id == str(target.pid)
        assert [frame.function for frame in main.frames[-3:]] == ["answer", "ncclAllReduce", "main"]
        assert main.frames[-2].captures["count"] == 4096
        assert main.frames[-2].module == target.program
        assert main.truncated is None
    assert "progress: stacks of 2/2" in answer.err
    assert answer.out == ""


def test_equal_to_a_live_gdb(any_gdb, tmp_path):
    with Target("threads", 20) as target:
        result, _ = batch(any_gdb, tmp_path, [rank(0, target, tmp_path)])
        saved = tmp_path / "live.json"
        gdb_batch(any_gdb, f"attach {target.pid}", f"llm-stacks --save {saved}")
        target.assert_free()
    live = load_snapshot(saved.read_bytes()).processes[0].threads
    assert len(live) == 21
    frames = {stack.lwp: stack.frames for stack in live}
    assert {one.lwp: one.frames for one in unpack(result["frames"], result["ranks"][0]["threads"])} == frames


def test_one_bad_copy_does_not_hide_the_others(turn_gdb, tmp_path):
    with Target("plain") as target:
        good = rank(1, target, tmp_path)
        (tmp_path / "garbage").write_bytes(os.urandom(4096))
        garbage = {**good, "index": 0, "core": str(tmp_path / "garbage")}
        absent = {**good, "index": 2, "core": str(tmp_path / "absent"), "files": []}
        gone = {"path": "/proc/1/no", "bias": 4096, "name": "/no/library.so"}
        unreadable = {**good, "index": 3, "files": [*good["files"], gone]}
        result, answer = batch(turn_gdb, tmp_path, [garbage, good, absent, unreadable])
    by_index = {entry["index"]: entry for entry in result["ranks"]}
    assert any("cannot read the copy" in problem for problem in by_index[0]["problems"])
    assert len(by_index[1]["threads"]) == 1 and by_index[1]["problems"] == []
    assert by_index[2]["threads"] == [] and by_index[2]["problems"]
    assert len(by_index[3]["threads"]) == 1
    (problem,) = by_index[3]["problems"]
    assert problem.startswith("no symbols of /no/library.so: ") and "/proc/1/no" not in problem
    assert result["complete"] and "Traceback" not in answer.text


def test_a_copy_cut_short_says_so(turn_gdb, tmp_path):
    """Of a long stack only the inner end was copied: the frames that are there, and why it ends."""
    with Target("recursion", 5000) as target:
        one = rank(0, target, tmp_path)
        result, _ = batch(turn_gdb, tmp_path, [one], {"seconds": 60, "frames": 100})
    (thread,) = result["ranks"][0]["threads"]
    assert len(thread["frames"]) == 100
    assert thread["truncated"] == "limit of 100 frames"


def test_a_request_of_another_schema(turn_gdb, tmp_path):
    result, _ = batch(turn_gdb, tmp_path, [], schema=2)
    assert result["ranks"] == [] and "schema 2" in result["problems"][0]
