"""The selected Python frame: llm-py-up, llm-py-down, llm-py-frame, the lines around, and local variables in llm-bt."""

import os
import subprocess
import sys

import pytest

from tests.gdb.gdbrun import INFERIORS, gdb_batch

pytestmark = pytest.mark.gdb
SOURCE = INFERIORS / "numpy_ranks.py"


@pytest.fixture(scope="module")
def process():
    with subprocess.Popen(
        [sys.executable, str(SOURCE), "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout.readline() == "ready\n"
        yield running.pid
        running.kill()


def line_with(text):
    return next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)


def test_frames_are_selected_and_names_follow(turn_gdb, process, tmp_path):
    script = tmp_path / "outer.gdb"
    script.write_text(
        "python\nframe, seen = gdb.newest_frame(), 0\nwhile True:\n"
        "    seen += frame.name() == '_PyEval_EvalFrameDefault'\n    if seen == 2:\n        break\n"
        "    frame = frame.older()\nframe.select()\nend\n"
    )
    commands = (
        "llm-py-frame --json", "llm-py-up --json", "llm-tensor p hidden --json", "llm-py-up 9 --json",
        "llm-py-down 1 --json", "llm-py-frame py0 --json", f"source {script}", "llm-py-frame --json",
        "frame 0", "llm-py-frame --json", "llm-py-frame 1", "llm-py-frame 7", "llm-py-down 2", "llm-py-down",
        "llm-tensor p elsewhere",
    )  # fmt: skip
    answer = gdb_batch(turn_gdb, "set width 120", f"attach {process}", *commands, "detach")
    places = [one for one in answer.documents if "frames" in one]
    assert [one["number"] for one in places] == [0, 1, 2, 1, 0, 2, 0]
    assert [one["function"] for one in places[:3]] == ["wait", "Worker.step", "<module>"]
    assert {one["frames"] for one in places} == {3} and places[1]["file"] == str(SOURCE)
    here = line_with("        wait()")
    assert places[1]["line"] == here and {"number": here, "text": "        wait()"} in places[1]["source"]
    (tensor,) = [one["tensor"] for one in answer.documents if "tensor" in one]
    assert tensor["notes"] == [f"Python frame py1, in Worker.step at numpy_ranks.py:{here}"]
    assert f"py1 of 3 Python frames of thread 1: Worker.step at {SOURCE}:{here}" in answer.out
    assert f"\n> {here}          wait()\n" in answer.out and f"\n  {here + 1}          return hidden" in answer.out
    assert answer.err.splitlines()[-3:] == [
        "there is no py7: thread 1 has py0 to py2; llm-bt",
        "py0 is the innermost Python frame of thread 1",
        f"elsewhere: no variable elsewhere in py0, in wait at numpy_ranks.py:{line_with('sys.stdin.read')}; "
        f"py1, in Worker.step at numpy_ranks.py:{here} has one: py1:elsewhere",
    ]


def test_local_variables_stand_below_their_frames(turn_gdb, process):
    answer = gdb_batch(
        turn_gdb, f"attach {process}", "llm-bt --locals", "llm-bt --locals --json", "llm-bt --json", "detach"
    )
    lines = answer.out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("  py1 Worker.step"))
    assert lines[start + 1].startswith("        self = Worker object at 0x")
    assert lines[start + 2 : start + 6] == [
        "        hidden = fp64 [6] on cpu",
        "        batch = dict of 1: ids",
        "        elsewhere = fp16 [3] on cpu",
        "        only = fp64 [1] on cpu",
    ]
    with_locals, without = (one["threads"][0] for one in answer.documents)
    frames = [frame for frame in with_locals["frames"] if frame["python_number"] is not None]
    assert [(frame["python_number"], frame["number"]) for frame in frames] == [(0, None), (1, None), (2, None)]
    assert {"name": "batch", "value": "dict of 1: ids"} in frames[1]["variables"]
    assert not any(frame["variables"] for frame in without["frames"])


def test_what_runs_no_python(turn_gdb):
    with subprocess.Popen(["sleep", "1000"], env=os.environ) as sleeper:
        try:
            answer = gdb_batch(
                turn_gdb, "llm-py-up", f"attach {sleeper.pid}", "llm-py-up", "llm-py-frame x", "llm-bt --locals"
            )
        finally:
            sleeper.kill()
    assert "no Python frames: no thread is selected" in answer.err
    assert "no Python frames: not a Python process" in answer.err and "Traceback" not in answer.text


def test_names_are_completed(turn_gdb, process):
    lines = ("complete llm-tensor p hid", "complete llm-tensor p self.k", "complete llm-tensor stats py1:self.k")
    answer = gdb_batch(turn_gdb, f"attach {process}", "llm-py-up", *lines, "detach")
    found = answer.out.splitlines()
    assert "llm-tensor p hidden" in found
    assert "llm-tensor p self.kv" in found and "llm-tensor stats py1:self.kv" in found
