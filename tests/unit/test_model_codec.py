"""Snapshots survive the way to JSON and back; other files are one clear line."""

import json

import pytest

from gdbext.model.codec import decode, dump_snapshot, encode, load_snapshot
from gdbext.model.errors import GdbextError
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame, ThreadStack

FRAME = Frame(
    "f<int>", "/lib/x.so", 4096, "f.cc", 7, captures={"comm": 93, "text": "a", "count": Missing("optimized out")}
)
THREAD = ThreadStack("3", (FRAME, Frame(None)), 12, "name", "S", 0.25, syscall=(202, 0), still=0, switches=4)
SNAPSHOT = JobSnapshot(
    (RankSnapshot(0, (THREAD,), rank=3, environment={"RANK": "3"}, problems=("a", "b")),),
    taken_at=1.5,
    absent=(1, 2),
    apart=2.0,
    earlier=(JobSnapshot(()),),
)


def test_there_and_back():
    assert load_snapshot(dump_snapshot(SNAPSHOT)) == SNAPSHOT


def test_what_is_at_its_default_is_not_written():
    assert encode(Frame("f")) == {"function": "f"}


def test_keys_of_a_later_release_are_ignored():
    document = json.loads(dump_snapshot(SNAPSHOT))
    document["snapshot"]["processes"][0]["colour"] = "red"
    assert load_snapshot(json.dumps(document)) == SNAPSHOT


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "null", '{"schema": 1}', '{"schema": 1, "snapshot": []}', "[" * 100000],
)
def test_something_else_is_one_line(text):
    with pytest.raises(GdbextError, match="not a gdbext snapshot"):
        load_snapshot(text)


def test_another_schema_says_so():
    with pytest.raises(GdbextError, match="schema 99, this gdbext reads 1"):
        load_snapshot('{"schema": 99, "snapshot": {}}')


@pytest.mark.parametrize(
    "data", [{"id": 1, "frames": []}, {"id": "1", "frames": [3]}, {"frames": []}, {"id": "1", "frames": [], "lwp": "x"}]
)
def test_values_of_another_type_are_refused(data):
    with pytest.raises(ValueError):
        decode(ThreadStack, data)
