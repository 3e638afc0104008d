"""Trace files of any age and in any state: what is whole is kept, what is lost is counted, in a line that says so."""

import gzip
import json
import zlib

import pytest

from gdbext.traces import event_reader, gzip_text
from gdbext.traces import trace_event as events
from gdbext.traces.event_reader import Contents, blocks
from gdbext.traces.rank_trace import read_rank
from gdbext.traces.trace_event import Event, arguments, decode, encode, number
from gdbext.traces.trace_files import find_trace_files, labels_of
from tests.traces.making import Plan, kineto, simulate, trace_of


def document(ranks=1):
    plan = Plan(ranks=2)
    return trace_of(plan, 0, simulate(plan)[0])


def read(path):
    contents = Contents()
    with open(path, "rb") as file:
        return [event for block in blocks(file, contents) for event in block], contents


LAYOUTS = {
    "Kineto": kineto,
    "packed": lambda document: json.dumps(document, separators=(",", ":")),
    "spaced": json.dumps,
    "indented": lambda document: json.dumps(document, indent=2),
    "a bare list": lambda document: json.dumps(document["traceEvents"]),
    "events first": lambda document: json.dumps({"traceEvents": document.pop("traceEvents"), **document}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("piece", [gzip_text.PIECE, 999])
@pytest.mark.parametrize("packed", [False, True])
def test_every_layout_gives_every_event(tmp_path, monkeypatch, layout, piece, packed):
    monkeypatch.setattr(gzip_text, "PIECE", piece)
    whole = document()
    text = LAYOUTS[layout](dict(whole)).encode()
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    events, contents = read(path)
    assert [event.name for event in events] == [event["name"] for event in whole["traceEvents"]]
    assert contents.problems == [] and contents.events == len(events)
    if layout != "a bare list":
        assert contents.keys["distributedInfo"] == whole["distributedInfo"]
        assert "traceEvents" not in contents.keys and contents.keys["traceName"] == whole["traceName"]


@pytest.mark.parametrize("without", ["msgspec", "isal"])
def test_the_standard_library_does_the_same(tmp_path, monkeypatch, without):
    if without == "msgspec":
        monkeypatch.setattr(events, "msgspec", None)
    else:
        monkeypatch.setattr(gzip_text, "LIBRARY", zlib)
    whole = document()
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(kineto(whole).encode()))
    found, contents = read(path)
    assert len(found) == len(whole["traceEvents"]) and not contents.problems
    again = json.loads(b"[" + b",".join(encode([one]) for one in found) + b"]")
    assert again == json.loads(json.dumps(whole["traceEvents"]))


def test_keys_that_nobody_knows_stay():
    text = b'[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1,"mine":{"b":[1,{"c":2}]}}]'
    assert json.loads(b"[" + encode(decode(text)) + b"]") == json.loads(text)


@pytest.mark.parametrize("part", [0.3, 0.7, 0.99])
@pytest.mark.parametrize("packed", [False, True])
def test_a_cut_file_gives_what_is_whole(tmp_path, part, packed):
    whole = document()
    text = kineto(whole).encode()
    stored = gzip.compress(text) if packed else text
    path = tmp_path / "trace.json"
    path.write_bytes(stored[: int(len(stored) * part)])
    events, contents = read(path)
    assert 0 < len(events) < len(whole["traceEvents"])
    assert any("cut" in one or "ends early" in one for one in contents.problems)


def test_a_file_that_two_ranks_wrote_into_gives_what_is_whole(tmp_path):
    text = kineto(document()).encode()
    middle = len(text) // 2
    path = tmp_path / "trace.json"
    path.write_bytes(text[:middle] + text[100 : middle + 177] + text[middle:])
    events, contents = read(path)
    assert len(events) > len(document()["traceEvents"])
    assert contents.lost >= 1 and "skipped" in contents.problems[-1]


def test_damaged_gzip_says_how_much_was_read(tmp_path):
    stored = bytearray(gzip.compress(kineto(document()).encode()))
    stored[len(stored) // 2 :] = b"\xff" * 40
    path = tmp_path / "trace.json.gz"
    path.write_bytes(bytes(stored))
    events, contents = read(path)
    assert events and "gzip data" in contents.problems[0]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "hello", '{"traceEvents": {}}', '{"nodes": []}', "[1, 2, 3]", "null", "\0" * 99]
)
def test_what_is_no_trace_is_said_in_a_line(tmp_path, text):
    path = tmp_path / "trace.json"
    path.write_text(text)
    events, contents = read(path)
    assert events == [] and (contents.problems or text in ("[]",))
    assert all("\n" not in one for one in contents.problems)


def test_times_that_are_no_numbers_and_phases_that_nobody_knows(tmp_path):
    rows = [
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":NaN,"dur":1}',
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":5,"dur":-3}',
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":"9.5","dur":2}',
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":20,"dur":Infinity}',
        '{"ph":"Q?","name":"b","pid":0,"tid":7,"ts":20}',
        '{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":4,"dur":2}',
    ]
    path = tmp_path / "rank-0.json"
    path.write_text('{"traceEvents":[' + ",".join(rows) + "]}")
    trace, found = read_rank(str(path))
    assert trace.events == 6 and list(found.device.start) == [9.5, 4.0]
    assert trace.problems == [
        "2 slices have no time that is a number and were left out",
        "1 slices end before they begin and were not judged",
        "1 events have an unknown phase ('Q?')",
    ]


def test_deep_nesting_ends_nothing(tmp_path):
    path = tmp_path / "trace.json"
    deep = '{"ph":"X","name":"a","ts":1,"dur":1,"args":' + '{"a":' * 100_000 + "1" + "}" * 100_001
    path.write_text('{"traceEvents":[' + deep + ',{"ph":"X","name":"b","ts":1,"dur":1}]}')
    events, contents = read(path)
    assert [one.name for one in events][-1:] == ["b"] or contents.problems


def test_an_event_that_never_ends_takes_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(event_reader, "_EVENT", 1 << 16)
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents":[{"ph":"X","name":"' + "x" * (3 << 20) + '"},{"ph":"X","name":"b","ts":1}]}')
    events, contents = read(path)
    assert [one.name for one in events] == ["b"] and contents.lost_bytes > 1 << 20


def test_arguments_and_numbers():
    assert arguments(Event({"args": [1]})) == {} and arguments(Event({})) == {}
    assert number(True) is None and number(float("nan")) is None and number("1.5") == 1.5 and number("x") is None


@pytest.mark.parametrize(
    ("name", "rank", "labels"),
    [
        ("1713.5-TP-3-DP-1-PP-0-EP-2.trace.json.gz", None, {"dp": 1, "ep": 2, "pp": 0, "tp": 3}),
        ("1713.5-TP-3-DECODE.trace.json.gz", None, {"tp": 3}),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.1713.pt.trace.json.gz", 1, {"dp": 0, "ep": 1, "pp": 0, "tp": 1}),
        ("0a-rank-12.1713000000000000000.pt.trace.json.gz", 12, {}),
        ("rank-7.Apr_03_18_51_38.1102.pt.trace.json.gz", 7, {}),
        ("trace_rank3.json", 3, {}),
        ("node1_4000.1713000000000.pt.trace.json", None, {}),
    ],
)
def test_ranks_in_names(name, rank, labels):
    assert labels_of(f"/traces/{name}") == (rank, labels)


def test_files_of_a_folder(tmp_path):
    for name in ("rank-0.json.gz", "merged-1.trace.json.gz", "memory_timeline.json", "notes.txt", "deep/rank-1.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    inner = tmp_path / "host_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    inner.mkdir(parents=True)
    for name in ("trace_view.json", "communication.json"):
        (inner / name).write_text("[]")
    (inner.parent / "profiler_info_5.json").write_text("{}")
    names = [path[len(str(tmp_path)) + 1 :] for path in find_trace_files([str(tmp_path)])]
    assert names == ["rank-0.json.gz", "deep/rank-1.json", "host_1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"]
    assert labels_of(str(inner / "trace_view.json"))[0] == 5
