"""llm-stream p: the handle out of every engine's holder, and one line for what is not a stream."""

import pytest

from tests.gdb.gdbrun import INFERIORS, Target, gdb_batch

pytestmark = pytest.mark.gdb

GOOD = (
    ("made", "user", 0x7F0000001000, None),
    ("legacy", "legacy", 1, None),
    ("own", "per-thread", 2, None),
    ("none", "default", 0, None),
    ("event", "event", 0x7F0000002000, None),
    ("no_event", "event", None, None),
    ("of_torch", "event", 0x7F0000002000, 3),
    ("of_trt", "event", 0x7F0000002000, None),
    ("of_tm", "event", 0x7F0000002000, None),
    ("pooled", "pool", 0x7F0000004000, 3),
    ("pooled.stream_", "pool", 0x7F0000004000, 3),
    ("unmade", "pool", None, 2),
    ("foreign", "user", 0x7F0000003000, 3),
    ("broken", "unverified", None, 3),
    ("owned", "user", 0x7F0000001000, 4),
    ("&owned", "user", 0x7F0000001000, 4),
    ("shared", "user", 0x7F0000001000, None),
    ("layer", "user", 0x7F0000001000, None),
    ("layer->stream_", "user", 0x7F0000001000, None),
    ("0x2", "per-thread", 2, None),
    ("0x7f0000009000", "unverified", 0x7F0000009000, None),
)
BAD = ("empty", "dangling", "number", "no_such_variable", "getpid()", "(void*)getpid()")


@pytest.fixture(scope="module")
def answer(calling_gdb):
    with Target(source="streams.cpp") as target:
        commands = [f"llm-stream p --json {row[0]}" for row in GOOD] + ["llm-stream p pooled", "llm-stream p"]
        commands += [f"llm-stream p {name}" for name in BAD]

        commands += ["p pooled", "p foreign", "p *behind", "p owned", "p none", "p made", "p empty", "p own"]
        commands += ["llm-stream list --json", "set llm allow-calls on", "llm-stream p made", "llm-stream list"]
        yield gdb_batch(calling_gdb, f"attach {target.pid}", "frame function main", *commands, "detach")
        target.assert_free()


@pytest.mark.parametrize("at", range(len(GOOD)), ids=[row[0] for row in GOOD])
def test_what_holds_a_stream(answer, at):
    expression, kind, handle, device = GOOD[at]
    assert len(answer.documents) == len(GOOD) + 1, answer.text
    found = answer.documents[at]["stream"]
    assert [found[key] for key in ("expression", "kind", "handle", "device")] == [expression, kind, handle, device]
    assert found["state"] is None and "not called" in found["missing"]["state"]


def test_words(answer):
    assert "pooled: pool stream, 0x7f0000004000 (c10::cuda::CUDAStream)" in answer.out
    assert "torch's pool: index 5, priority -1" in answer.out
    assert "llm-stream p: missing expression; for example: llm" in answer.err


@pytest.mark.parametrize("name", BAD)
def test_no_stream_is_one_line(answer, name):
    lines = [line for line in answer.err.splitlines() if line.startswith(name + ":") or f'"{name}"' in line]
    assert len(lines) == 1 and "Traceback" not in answer.text, answer.text


def test_an_expression_calls_nothing(answer):
    assert answer.err.count("may-call-functions is off") == 2


def test_printers(answer):
    shown = [line.split(" = ", 1)[1] for line in answer.out.splitlines() if line.startswith("$")]
    assert shown == [
        "pool stream 5 of priority -1 0x7f0000004000 on device 3",
        "stream 0x7f0000003000 on device 3",
        "stream 0x7f0000001000",
        "stream 0x7f0000001000 on device 4",
        "0x0 (default stream)",
        "(cudaStream_t) 0x7f0000001000",
        "<null pointer>",
        "0x2 (per-thread stream)",
    ]


def test_streams_of_torch(answer):
    """The pool's stream is one with its handle, and the current one of the thread."""
    rows = answer.documents[-1]["ranks"][0]["streams"]
    (pooled,) = [row for row in rows if row["handle"] == 0x7F0000004000]
    assert (pooled["kind"], pooled["device"], pooled["pool_index"]) == ("pool", 3, 5)
    assert {use["expression"] for use in pooled["uses"]} >= {"torch's current stream", "pooled"}
    (unmade,) = [row for row in rows if row["device"] == 2 and row["kind"] == "pool"]
    assert "not made" in unmade["missing"]["handle"]


def test_the_current_stream_of_an_engine(answer):
    """Of the stack in TurboMind's thread-local storage the top."""
    rows = answer.documents[-1]["ranks"][0]["streams"]
    (current,) = [row for row in rows if any("TurboMind" in use["expression"] for use in row["uses"])]
    assert current["handle"] == 0x7F0000005000


def test_a_process_without_cuda(answer):
    assert answer.out.count("the process has no CUDA: no driver is loaded") == 2 and "calls cu" not in answer.err


KERNELS = """\
  Kernel Parent Dev Grid Status                           SMs Mask GridDim  BlockDim Invocation
*      0      -   3    7 Active 0x0000000000000000000000000001 (4,1,1) (256,1,1) spin<float>(flag=0x7f)
       1      -   1    8 Active 0x0000000000000000000000000002 (8,1,1) (512,1,1) other()
"""


@pytest.mark.parametrize("text", [KERNELS, "No CUDA kernels.\n", None], ids=["kernels", "none", "error"])
def test_kernels_of_cuda_gdb(text, tmp_path):
    """Each stream with what runs on its device; an error of cuda-gdb is a reason."""
    script = tmp_path / "become.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(INFERIORS)!r})\nimport fake_cuda_gdb\nfake_cuda_gdb.become({text!r})\n"
    )
    with Target(source="streams.cpp") as target:
        commands = (f"source {script}", "llm-stream list --json", "llm-stream list", "detach")
        answer = gdb_batch("gdb", f"attach {target.pid}", *commands)
    (rank,) = answer.documents[0]["ranks"]
    if text is None:
        assert "All CUDA devices" in rank["missing"]["kernels"] and rank["kernels"] is None
        return
    assert [one["grid"] for one in rank["kernels"]] == ([7, 8] if text == KERNELS else [])
    here = {row["handle"]: row["kernels"] for row in rank["streams"] if row["device"] is not None}
    assert here[0x7F0000004000] == (["spin<float>"] if text == KERNELS else [])
    assert not here[0x7F0000001000]
    assert ("spin<float>" in answer.out) == (text == KERNELS)
