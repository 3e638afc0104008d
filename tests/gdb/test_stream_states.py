"""llm-stream list, and what the driver says when it may be asked: the process lives, whatever state a stream is in."""

import re
import shutil
from pathlib import Path

import pytest

from tests.gdb.gdbrun import gdb_batch
from tests.inferiors.demo_build import libraries
from tests.inferiors.stream_build import StreamTarget

pytestmark = pytest.mark.gdb

ALLOW = "set llm allow-calls on"
PATIENT = "set llm max-pause 60"  # a busy machine is no finding
MAIN = "frame function main"
NOBODY_ASKED = "only the driver knows it, and it is not called"


def calls(answer):
    return re.findall(r"^gdbext: calls (\w+) in ", answer.err, re.MULTILINE)


def named(document, variable):
    """The row of `llm-stream list` that a local variable of main leads to."""
    rows = document["ranks"][0]["streams"] + document["ranks"][0]["events"]
    return next(row for row in rows if any(use["expression"] == variable for use in row["uses"]))


def waits(document):
    return {wait["call"]: wait for wait in document["ranks"][0]["waits"]}


def state(row):
    return row["driver"] and row["driver"]["state"]


@pytest.fixture(scope="module")
def states(calling_gdb):
    """Every state, asked by one gdb; then by a list without calls and one with."""
    with StreamTarget() as target:
        threads = len(list(Path(f"/proc/{target.pid}/task").iterdir()))
        answer = gdb_batch(
            calling_gdb, PATIENT, f"attach {target.pid}", "llm-stream list --json", ALLOW, "llm-stream list --json",
            MAIN, *(f"llm-stream p --json {name}" for name in ("idle", "busy", "capturing", "failed", "gone", "own")),
            *(f"llm-stream p {name}" for name in ("garbage", "foreign", "done", "(cudaStream_t)main")),
            "llm-stream p 0x7f0000009000", "thread", "detach",
        )  # fmt: skip
        target.assert_free()
        assert target.capture_mode() == 0  # as it was before the calls
        assert len(list(Path(f"/proc/{target.pid}/task").iterdir())) == threads
        yield answer


def test_list_without_calls(states):
    silent = states.documents[0]
    assert [state(named(silent, name)) for name in ("idle", "busy", "done")] == [None] * 3
    assert named(silent, "busy")["missing"]["driver"] == NOBODY_ASKED
    owners = {use["owner"] for use in named(silent, "idle")["uses"]}
    assert owners == {"", "fastertransformer::Decoder"}  # through the unique_ptr of another object
    assert "fastertransformer::Gpt" in {use["owner"] for use in named(silent, "busy")["uses"]}
    assert "nothing is mapped" in named(silent, "garbage")["notes"][0]
    assert named(silent, "own")["kind"] == "per-thread"


def test_who_waits_for_what(states):
    found = waits(states.documents[0])
    busy, pending = (named(states.documents[0], name)["handle"] for name in ("busy", "pending"))
    assert found["cudaStreamSynchronize"]["handle"] == busy
    assert found["cudaStreamSynchronize"]["how"] == "code of the call"  # the runtime is stripped
    assert found["cudaStreamSynchronize"]["engine_function"] == "fastertransformer::Gpt::synchronize"
    assert found["cudaEventSynchronize"]["handle"] == pending
    assert found["cudaDeviceSynchronize"]["waits"] == "device"
    assert "all streams" in found["cudaDeviceSynchronize"]["missing"]["handle"]
    (waiting,) = [use for use in named(states.documents[0], "busy")["uses"] if use["waits"]]
    assert waiting["thread"] == found["cudaStreamSynchronize"]["thread"]


def test_states_of_all(states):
    asked = states.documents[1]
    wanted = {"idle": "idle", "busy": "busy", "capturing": "capturing", "failed": "failed", "gone": "invalid"}
    assert {name: state(named(asked, name)) for name in wanted} == wanted
    assert named(asked, "failed")["driver"]["error"] == {"number": 700, "name": "CUDA_ERROR_ILLEGAL_ADDRESS"}
    idle = named(asked, "idle")["driver"]
    assert (idle["blocking"], idle["priority"], idle["id"], idle["device"]) == (False, -1, 2, 0)
    assert "nothing is mapped" in named(asked, "garbage")["missing"]["driver"]
    assert "each thread has its own" in named(asked, "own")["missing"]["driver"]
    assert "is being captured" in named(asked, "done")["missing"]["driver"]


def test_order_of_the_calls(states):
    made = calls(states)
    first = ["mmap", "cuCtxGetCurrent", "cuStreamIsCapturing", "cuStreamGetFlags", "cuStreamGetPriority"]
    last = ["cuStreamGetId", "cuStreamGetDevice", "cuThreadExchangeStreamCaptureMode", "cuStreamQuery", "munmap"]
    assert made[:10] == first + last  # each is told once for one command
    assert "cuEventQuery" not in made and not [name for name in made if name.startswith("cuda")]


def test_one_at_a_time(states):
    found = [document["stream"] for document in states.documents[2:]]
    assert [row["state"] for row in found] == ["idle", "busy", "capturing", "failed", "invalid", "idle"]
    assert found[0]["driver"]["id"] == 2 and found[0]["device"] == 0
    assert found[4]["driver"]["missing"]["id"] == "not asked after the error"
    for words in (
        "state: unknown, nothing is mapped at the handle",  # garbage
        "state: invalid: CUDA_ERROR_INVALID_HANDLE (400)",  # foreign
        "being captured, and asking its events would spoil the capture",
        "no stream, or not set yet",  # an address in code
        "the driver is not given a number that may not be a stream",
    ):
        assert words in states.out, states.out
    assert "[Current thread is 1 " in states.out and "Traceback" not in states.text


@pytest.mark.calls
def test_events_and_a_handle_that_crashes_the_driver(any_gdb, tmp_path):
    """Also with a second copy of the runtime in the process, which was never used and stays so."""
    copy = shutil.copy(libraries()["libcudart.so.12"], tmp_path / "libcudart-copy.so.12")
    with StreamTarget("events", copy) as target:
        names = ("pending", "done", "idle")
        answer = gdb_batch(
            any_gdb, PATIENT, f"attach {target.pid}", ALLOW, MAIN, *(f"llm-stream p --json {name}" for name in names),
            "set var crashing = kept", "llm-stream p --json crashing", "llm-stream list --json",
            "llm-stream p --json done", "llm-stream p --json idle", "detach",
        )  # fmt: skip
        target.assert_free()
        assert "libcudart-copy.so.12" in Path(f"/proc/{target.pid}/maps").read_text()
    found = answer.documents
    assert [one["stream"]["state"] for one in found[:3]] == ["pending", "done", "idle"], answer.text
    crashed, listed, event, idle = found[3:]
    assert "was ended by " in crashed["stream"]["missing"]["state"]
    assert state(named(listed, "busy")) == "busy"  # what an object holds is asked before what only a variable has
    assert "was ended by " in named(listed, "crashing")["missing"]["driver"]
    assert "whether stream" in event["stream"]["missing"]["state"]
    assert idle["stream"]["state"] == "idle"


@pytest.mark.calls
def test_a_lock_that_another_thread_holds(any_gdb):
    with StreamTarget("lock") as target:
        answer = gdb_batch(any_gdb, PATIENT, f"attach {target.pid}", ALLOW, "llm-stream list", "p 1", "detach")
        target.assert_free()
    assert answer.out.count("cuStreamIsCapturing did not return within 2 s") == 1
    assert "others not queried: after an error gdbext makes no more calls in the process" in answer.out
    assert calls(answer) == ["mmap", "cuCtxGetCurrent", "cuStreamIsCapturing", "munmap"]
    assert "cudaMallocHost" in answer.out and "$1 = 1" in answer.out


def test_cuda_that_was_never_used_and_words_that_are_wrong(calling_gdb):
    with StreamTarget("none") as target:
        answer = gdb_batch(
            calling_gdb, ALLOW, "llm-stream list", f"attach {target.pid}", MAIN, "llm-stream p idle", "llm-stream list",
            "llm-stream list --ranks 77", "llm-stream list --ranks x", f"llm-stream list --ranks {target.pid}",
            "llm-stream", "detach",
        )  # fmt: skip
        target.assert_free()
    assert answer.out.count("the process has not initialised CUDA, and gdbext does not do that") == 3
    for line in (
        "no rank is attached",
        "no rank 77 is attached",
        "not a list of ranks: x",
        "llm-stream: missing subcommand",
    ):
        assert len([one for one in answer.err.splitlines() if line in one]) == 1, answer.err
    assert calls(answer) == [] and "Traceback" not in answer.text


@pytest.mark.calls
def test_without_debug_information(any_gdb):
    """The code of one call and the place on the stack of another tell."""
    with StreamTarget(release=("-O2",)) as target:
        answer = gdb_batch(any_gdb, PATIENT, ALLOW, f"attach {target.pid}", "llm-stream list --json", "detach")
        target.assert_free()
    found = waits(answer.documents[0])
    (row,) = answer.documents[0]["ranks"][0]["streams"]
    assert found["cudaEventSynchronize"]["handle"]
    assert found["cudaStreamSynchronize"]["handle"] == row["handle"]
    assert {use["function"] for use in row["uses"]} == {"cudaStreamSynchronize", "ncclAllReduce"}
    assert state(row) == "busy"


def test_a_core_file_of_a_stripped_program(tmp_path):
    """Where a function begins, its unwind table says."""
    core = tmp_path / "core"
    with StreamTarget(release=("-O2", "-s")) as target:
        gdb_batch("gdb", f"attach {target.pid}", f"generate-core-file {core}", "detach", source=None)
        program = target.program
    commands = (PATIENT, ALLOW, f"file {program}", f"core-file {core}", "llm-stream list --json", "llm-stream list")
    answer = gdb_batch("gdb", *commands)
    found = waits(answer.documents[0])
    (row,) = answer.documents[0]["ranks"][0]["streams"]
    assert found["cudaEventSynchronize"]["handle"]
    assert found["cudaStreamSynchronize"]["handle"] == row["handle"] and state(row) is None
    assert "the driver was not asked: a core file has no process" in answer.out and calls(answer) == []


def test_one_that_runs():
    with StreamTarget("none") as target:
        commands = ("set non-stop on", f"attach {target.pid}", "continue -a &", "llm-stream list")
        answer = gdb_batch("gdb", *commands)
    assert "the process is running; `interrupt` stops it" in answer.out, answer.text
