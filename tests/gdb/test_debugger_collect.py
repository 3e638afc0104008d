"""The walk over threads and frames: complete, within its budget, and honest about what it left out."""

from pathlib import Path

import pytest

from gdbext.model.snapshot_files.codec import encode, load_snapshot
from tests.gdb.gdbrun import Target, gdb_batch

pytestmark = pytest.mark.gdb


def snapshot(gdb, tmp_path, target, *before, attach="attach"):
    """The snapshot that llm-stacks saves, its one process, and gdb's answer."""
    file = tmp_path / "snapshot.json"
    answer = gdb_batch(gdb, f"{attach} {target.pid}", *before, f"llm-stacks --save {file} --force")
    target.assert_free()
    assert "Traceback" not in answer.text and "mistake" not in answer.text, answer.text
    assert file.stat().st_mode & 0o777 == 0o600
    (process,) = processes(file)
    return process


def processes(file):
    """Those of a saved snapshot, with the frames of every thread."""
    return [encode(one) for one in load_snapshot(file.read_text()).processes]


def frame(process, function, thread=0):
    return next(frame for frame in process["threads"][thread]["frames"] if frame.get("function") == function)


def test_frames_captures_and_places(any_gdb, tmp_path):
    with Target("plain") as target:
        process = snapshot(any_gdb, tmp_path, target)
    (thread,) = process["threads"]
    functions = [frame.get("function") for frame in thread["frames"]]
    assert functions[-3:] == ["answer", "ncclAllReduce", "main"]
    found = frame(process, "ncclAllReduce")
    assert found["file"].endswith("debugger_target.c") and found["line"] > 10
    assert found["module"] == target.program
    assert 0 < found["module_offset"] < 1 << 20
    assert found["captures"]["count"] == 4096
    assert found["captures"]["datatype"] == "ncclFloat16"
    assert found["captures"]["op"] == "ncclMax"
    assert found["captures"]["comm->rank"] == 3 and found["captures"]["comm->nRanks"] == 8
    assert isinstance(found["captures"]["comm"], int) and isinstance(found["captures"]["stream"], int)
    stack = [frame["sp"] for frame in thread["frames"]]
    assert stack == sorted(stack) and stack[0] > 0
    assert "truncated" not in thread and "problems" not in process
    assert thread["id"] == "1" and thread["lwp"] == target.pid


def test_an_optimised_argument_is_missing_with_its_reason(turn_gdb, tmp_path):
    with Target("plain", flags=("-g", "-O2")) as target:
        process = snapshot(turn_gdb, tmp_path, target)
    captures = frame(process, "ncclAllReduce")["captures"]
    assert captures["count"] == {"missing": "optimized out"}
    assert set(map(type, captures.values())) <= {int, str, dict}


def test_without_debug_information(turn_gdb, tmp_path):
    with Target("plain", flags=("-O0",)) as target:
        captures = frame(snapshot(turn_gdb, tmp_path, target), "ncclAllReduce")["captures"]
    assert set(map(str, captures.values())) == {str({"missing": "no debug information"})}


def test_a_stripped_program_keeps_module_and_offset(turn_gdb, tmp_path):
    with Target("plain", flags=("-O0", "-s")) as target:
        process = snapshot(turn_gdb, tmp_path, target)
    inside = [frame for frame in process["threads"][0]["frames"] if frame.get("module") == target.program]
    assert len(inside) >= 3
    assert all("function" not in frame or frame["function"] is None for frame in inside)
    assert all(0 < frame["module_offset"] < 1 << 20 for frame in inside)


def test_a_program_at_a_fixed_address(turn_gdb, tmp_path):
    with Target("plain", flags=("-O0", "-no-pie", "-s")) as target:
        process = snapshot(turn_gdb, tmp_path, target)
    inside = [frame for frame in process["threads"][0]["frames"] if frame.get("module") == target.program]
    assert inside and all(frame["module_offset"] == frame["pc"] for frame in inside)


def test_a_deep_recursion_keeps_its_inner_frames(turn_gdb, tmp_path):
    with Target("recursion", 5000) as target:
        cut = snapshot(turn_gdb, tmp_path, target)
        whole = snapshot(turn_gdb, tmp_path, target, "set llm frames 6000", "set llm max-pause 60")
    (thread,) = cut["threads"]
    assert len(thread["frames"]) == 256
    assert thread["truncated"] == "limit of 256 frames"
    functions = [frame.get("function") for frame in whole["threads"][0]["frames"]]
    assert functions.count("recurse") == 5001 and functions[-1] == "main"
    assert "truncated" not in whole["threads"][0]


def test_two_thousand_threads(turn_gdb, tmp_path):
    with Target("threads", 2000) as target:
        some = snapshot(turn_gdb, tmp_path, target, "set llm threads 50", "set llm max-pause 60")
    assert len(some["threads"]) == 2001
    walked = [thread for thread in some["threads"] if thread["frames"]]
    assert len(walked) == 50
    assert any(thread["lwp"] == target.pid for thread in walked)  # the main thread comes first
    assert {thread["truncated"] for thread in some["threads"] if not thread["frames"]} == {
        "not walked: limit of 50 threads"
    }
    assert some["problems"] == ["1951 of 2001 threads not walked: limit of 50 threads"]
    assert some["state"] == "partial"


def test_time_is_a_budget_too(turn_gdb, tmp_path):
    tick = "tick = iter(range(10**9)); clock = lambda: float(next(tick))"  # every look at it takes a second
    late = f"python {tick}; from types import SimpleNamespace; from gdbext.inside_gdb.stacks import stack_walk"
    late += "; stack_walk.time = SimpleNamespace(monotonic=clock)"
    with Target("threads", 10) as target:
        process = snapshot(turn_gdb, tmp_path, target, "set llm max-pause 40", late)
    read = [thread for thread in process["threads"] if thread["frames"]]
    assert 0 < len(read) < 11
    assert all("limit of 40 s" in thread["truncated"] for thread in process["threads"] if not thread["frames"])
    assert any("limit of 40 s" in problem for problem in process["problems"])


def test_a_corrupt_stack_says_why_it_ends(any_gdb, tmp_path):
    """The saved registers of main's caller point nowhere: what can be walked is kept."""
    with Target("plain", flags=("-O0", "-s", "-fno-omit-frame-pointer")) as target:
        file = tmp_path / "snapshot.json"
        (stack,) = (line for line in Path(f"/proc/{target.pid}/maps").read_text().splitlines() if "[stack]" in line)
        end = int(stack.split("-")[1].split()[0], 16)  # with few variables it is near
        spoil = [
            "frame 0",
            "python sp = int(gdb.parse_and_eval('$sp'))",
            f"python gdb.selected_inferior().write_memory(sp, b'\\x07' * min(4096, {end} - sp))",
        ]
        answer = gdb_batch(any_gdb, f"attach {target.pid}", *spoil, f"llm-stacks --save {file} --force")
    assert "Traceback" not in answer.text and "mistake" not in answer.text
    (process,) = processes(file)
    (thread,) = process["threads"]
    assert thread["frames"][0]["pc"]
    assert thread["truncated"]


def test_several_ranks_have_thread_ids_as_gdb_prints_them(turn_gdb, tmp_path):
    with Target("threads", 1) as one, Target("plain") as two:
        file = tmp_path / "snapshot.json"
        gdb_batch(turn_gdb, f"llm-attach-all {one.pid} {two.pid}", f"llm-nccl-diagnose --save {file}")
        one.assert_free()
        two.assert_free()
    first, second = processes(file)
    assert [thread["id"] for thread in first["threads"]] == ["1.1", "1.2"]
    assert [thread["id"] for thread in second["threads"]] == ["2.1"]
    # What /proc said right before the stop; now they are all in ptrace_stop.
    assert {thread["state"] for thread in first["threads"]} == {"S"}
    assert all("ptrace" not in thread.get("wchan", "") for thread in first["threads"])


def test_a_core_file_is_walked_like_a_process(any_gdb, tmp_path):
    core, file = tmp_path / "core", tmp_path / "snapshot.json"
    with Target("threads", 3) as target:
        gdb_batch(any_gdb, f"attach {target.pid}", f"generate-core-file {core}")
        live = snapshot(any_gdb, tmp_path, target)
    answer = gdb_batch(
        any_gdb, f"file {target.program}", f"core-file {core}", "llm-ranks --json", f"llm-stacks --save {file} --force"
    )
    assert answer.documents[0]["ranks"][0]["state"] == "core file", answer.text
    (process,) = processes(file)
    assert process["source"] == "core" and "pause_ms" not in process
    stacks = {thread["lwp"]: thread["frames"] for thread in process["threads"]}
    assert stacks == {thread["lwp"]: thread["frames"] for thread in live["threads"]}
    assert frame(process, "ncclAllReduce", [*stacks].index(target.pid))["captures"]["count"] == 4096
