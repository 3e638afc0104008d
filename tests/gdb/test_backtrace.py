"""llm-bt: Python frames among the native ones, under gdb's own numbers."""

import re

import pytest

from tests.gdb.gdbrun import INFERIORS, Target, gdb_batch
from tests.inferiors.python_target import PythonTarget

pytestmark = pytest.mark.gdb


def test_python_frames_stand_among_native_ones_and_the_numbers_are_gdbs(any_gdb, tmp_path):
    core = tmp_path / "core"
    with PythonTarget("python_two_threads.py") as target:
        answer = gdb_batch(
            any_gdb,
            f"llm-attach-all {target.pid}",
            "llm-bt --all --json",
            "llm-bt 1",
            "python gdb.execute('bt -frame-info short-location')",
            f"gcore {core}",
            "llm-bt nothing",
            "llm-bt --ranks 7",
            "llm-detach-all",
            f"llm-attach-all --core {core}",
            "llm-bt --json",
        )
    alive, dead = answer.documents
    main, other = alive["threads"]
    assert [frame["function"] for frame in main["frames"] if frame["number"] is None] == ["read_a_line", "<module>"]
    python = [frame["function"] for frame in other["frames"] if frame["number"] is None]
    assert python[:2] == ["wait_inside", "wait_outside"]
    assert not main["problems"] and not other["problems"]
    native = {frame["number"]: frame["function"] for frame in main["frames"] if frame["number"] is not None}
    assert len(native) > 3 and 0 in native
    by_gdb = {int(number): name for number, name in re.findall(r"^#(\d+) .*?(\w+) \(", answer.out, re.MULTILINE)}
    told = {number: name for number, name in native.items() if name}
    assert told.items() <= by_gdb.items()
    assert "1 more frame" not in answer.out and re.search(r"^#0 .*\n… \d+ more frames", answer.out, re.MULTILINE)
    assert "no rank 7 is attached" in answer.err and "llm-bt" in answer.err
    assert [frame["function"] for frame in dead["threads"][0]["frames"]] == [
        frame["function"] for frame in main["frames"]
    ]


def test_nothing_attached_and_no_python(turn_gdb):
    with Target("threads", 1) as target:
        answer = gdb_batch(turn_gdb, "llm-bt", f"llm-attach-all {target.pid}", "llm-bt --json", "llm-bt")
        target.assert_free()
    assert "nothing is attached; llm-attach-all" in answer.err
    (document,) = answer.documents
    (thread,) = document["threads"]
    assert [frame["number"] for frame in thread["frames"]] == list(range(len(thread["frames"])))
    assert not thread["problems"] and "  py" not in answer.out


def test_a_line_is_one_of_the_function_that_is_named(turn_gdb):
    """Optimised code has lines of inlined callees, of another file or further up."""
    lines = (INFERIORS / "inlined_lines.c").read_text().splitlines()
    own = [next(number for number, line in enumerate(lines, 1) if text in line) for text in ("+= 2", "+= 3")]
    with Target(source="inlined_lines.c", flags=("-g", "-O2")) as target:
        answer = gdb_batch(turn_gdb, f"attach {target.pid}", "llm-bt --json", "detach")
        target.kill()
    frames = {frame["function"]: frame for frame in answer.documents[0]["threads"][0]["frames"]}
    found = [frames[name] for name in ("waits_in_another_file", "waits_above")]
    assert [(frame["file"].rpartition("/")[2], frame["line"]) for frame in found] == [
        ("inlined_lines.c", line) for line in own
    ]
    assert frames["main"]["line"] > 29
