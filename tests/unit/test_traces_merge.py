"""The merged trace: every event once, one clock, own pids and flows, slices that nest, names in the order of ranks."""

import collections
import gzip
import io
import json
import os
import random
import signal
import zlib
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as trace_pb2

from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.traces.first_pass import ANNOTATION, KERNEL, Collector, Work
from gdbext.traces.gzip_parts import HEAD, Part, Sum, compress_part, crc32_combine, end
from gdbext.traces.merged_trace import Asked, merge
from gdbext.traces.overlap_lanes import lanes
from gdbext.traces.perfetto import write_perfetto
from gdbext.traces.trace_files import find_trace_files
from tests.traces.making import Plan, kineto, simulate, trace_of, write


def merged(paths, tmp_path, **asked):
    file = io.BytesIO()
    report = merge(
        [str(path) for path in paths], Asked(**asked), file, str(tmp_path / "out.json.gz"), lambda text: None, 1
    )
    document = json.loads(gzip.decompress(file.getvalue()))
    assert report.events_in == report.events_out + report.left_out + report.invalid
    assert len(document["traceEvents"]) == report.events_out + report.added
    assert not any("merge it again" in problem for problem in report.problems)
    return document, report


def without_nesting(events):
    """Slices that overlap another of their track, and neither holds the other."""
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    wrong = 0
    for slices in tracks.values():
        open_ones = []
        for start, length in sorted(slices):
            while open_ones and open_ones[-1] <= start + 0.0015:
                open_ones.pop()
            wrong += bool(open_ones) and start - length > open_ones[-1] + 0.0015
            open_ones.append(start - length)
    return wrong


def test_every_event_of_every_rank_once(tmp_path):
    paths = write(Plan(overlap=3, offsets={1: 5000.0}, late="kernel"), tmp_path, packed=True)
    document, report = merged(paths, tmp_path)
    assert report.events_in == report.events_out and report.moved > 0 and report.lanes >= 4
    given = collections.Counter()
    for path in paths:
        for event in json.loads(gzip.decompress(Path(path).read_bytes()))["traceEvents"]:
            if event["ph"] != "M":
                given[event["ph"], event["name"], json.dumps(event.get("args"))] += 1
    kept = collections.Counter()
    for event in document["traceEvents"]:
        if event["ph"] != "M":
            kept[event["ph"], event["name"], json.dumps(event.get("args"))] += 1
    assert kept == given, "names, phases and arguments are as they were"
    assert without_nesting(document["traceEvents"]) == 0


def test_three_kernels_deep_have_lanes_and_their_flows_go_with_them(tmp_path):
    document, _ = merged(write(Plan(ranks=2, overlap=3, kernels=8), tmp_path), tmp_path)
    events = document["traceEvents"]
    lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert "stream 7 (overlap 1)" in lanes
    where = {(event["pid"], event["tid"], event["ts"]) for event in events if event["ph"] == "X"}
    ends = [event for event in events if event["ph"] == "f"]
    assert ends and all((event["pid"], event["tid"], event["ts"]) in where for event in ends)
    assert {event["args"]["stream"] for event in events if event.get("cat") == "kernel"} == {7, 20}, (
        "the stream is kept"
    )


def test_a_wait_for_a_stream_has_a_lane_of_its_own(tmp_path):
    """As in traces of 2023: it begins before the copy that it waits for, and ends after it."""
    common = {"ph": "X", "pid": 0, "tid": 7}
    path = tmp_path / "rank0.json"
    events = [
        {**common, "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 100, "dur": 20},
        {**common, "cat": "cuda_sync", "name": "Stream Sync", "ts": 118, "dur": 9},
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    document, _ = merged([path], tmp_path)
    slices = {event["name"]: event["tid"] for event in document["traceEvents"] if event["ph"] == "X"}
    assert slices["Memcpy HtoD"] == 7 and slices["Stream Sync"] != 7


def test_pids_flows_and_names_are_kept_apart(tmp_path):
    document, _ = merged(write(Plan(), tmp_path), tmp_path)
    events = document["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    order = {event["pid"]: event["args"]["sort_index"] for event in events if event["name"] == "process_sort_index"}
    assert {event["pid"] for event in events} == set(names) == set(order)
    said = [names[pid] for pid in sorted(order, key=order.get)]
    assert said == [
        word for rank in range(4) for word in (f"rank {rank} python ({4000 + rank})", f"rank {rank} GPU {rank}")
    ]
    owners = collections.defaultdict(set)
    for event in events:
        if event["ph"] in "sf":
            owners[event["id"]].add(names[event["pid"]].split(" ")[1])
            assert event["id"] < 1 << 53
    assert owners and all(len(ranks) == 1 for ranks in owners.values())


def test_the_order_is_that_of_parallelism(tmp_path):
    plan = Plan(ranks=4)
    slices = simulate(plan)
    for rank, name in enumerate(("TP-1-DP-1", "TP-0-DP-1", "TP-1-DP-0", "TP-0-DP-0")):
        (tmp_path / f"170-{name}.trace.json").write_text(kineto(trace_of(plan, rank, slices[rank])))
    document, report = merged(find_trace_files([str(tmp_path)]), tmp_path)
    assert [one.name for one in report.files] == ["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"]
    assert document["gdbext"]["ranks"][0]["distributedInfo"]["rank"] == 3


def test_clocks_are_aligned_and_said(tmp_path):
    plan = Plan(steps=40, work=8000, offsets={1: 5000.0, 2: -90_000.0}, drifts={2: 100.0}, ranks=3)
    document, _ = merged(write(plan, tmp_path), tmp_path)
    ends = collections.defaultdict(list)
    pids = {}
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel" and "AllReduce" in event["name"]:
            ends[event["pid"]].append(event["ts"] + event["dur"])
        pids[event["pid"]] = 1
    columns = list(ends.values())
    assert len(columns) == 3
    assert max(max(row) - min(row) for row in zip(*map(sorted, columns))) < 12
    clocks = [one["clock"] for one in document["gdbext"]["ranks"]]
    assert [clock["method"] for clock in clocks] == ["shared", "collectives", "collectives"]
    assert all(clock["residual_us"] < 3 for clock in clocks[1:]) and clocks[2]["drift"] == pytest.approx(-1e-4, rel=0.1)
    assert without_nesting(document["traceEvents"]) == 0


def test_what_cannot_be_aligned_is_refused_where_that_is_asked(tmp_path):
    paths = write(Plan(ranks=4, groups=2), tmp_path)
    _, report = merged(paths, tmp_path)
    assert [one.clock.aligned for one in report.files] == [True, True, False, False]
    with pytest.raises(GdbextError, match="clock of rank 2 cannot be aligned"):
        merged(paths, tmp_path, aligned=True)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"threads": "gpu"}, lambda event: event["ph"] == "X" and event["cat"] == "kernel"),
        ({"threads": "cpu"}, lambda event: event["ph"] == "X" and event["cat"] != "kernel"),
        ({"threads": "stream 7"}, lambda event: event["ph"] == "X" and event["tid"] == 7),
        ({"kernels": "AllReduce", "threads": "gpu"}, lambda event: event["ph"] == "X" and "AllReduce" in event["name"]),
    ],
)
def test_parts_of_it(tmp_path, asked, kept):
    paths = write(Plan(ranks=2), tmp_path)
    given = [event for path in paths for event in json.loads(Path(path).read_text())["traceEvents"]]
    document, report = merged(paths, tmp_path, **asked)
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == sum(map(kept, given)) and report.left_out > 0


def test_a_window_steps_and_ranks(tmp_path):
    paths = write(Plan(steps=6), tmp_path)
    whole, report = merged(paths, tmp_path)
    span = max(event["ts"] for event in whole["traceEvents"] if event["ph"] == "X") - min(
        event["ts"] for event in whole["traceEvents"] if event["ph"] == "X"
    )
    document, some = merged(paths, tmp_path, window=(0.0, span / 2e6))
    assert 0.4 < some.events_out / report.events_out < 0.6
    document, some = merged(paths, tmp_path, steps=[2, 3])
    assert 0.25 < some.events_out / report.events_out < 0.45
    document, some = merged(paths, tmp_path, ranks=[1, 3])
    assert [one["name"] for one in document["gdbext"]["ranks"]] == ["rank 1", "rank 3"]
    with pytest.raises(UsageError, match="no such step; it has 0 to 5"):
        merged(paths, tmp_path, steps=[9])
    with pytest.raises(UsageError, match="no rank is left"):
        merged(paths, tmp_path, ranks=[7])


def test_runs_ranks_twice_and_ranks_missing(tmp_path):
    paths = write(Plan(absent=(2,)), tmp_path / "a")
    again = tmp_path / "a" / "copy-rank1.json"
    again.write_text((tmp_path / "a" / "rank1.json").read_text())
    late = json.loads((tmp_path / "a" / "rank0.json").read_text())
    late["baseTimeNanoseconds"] += 10**13
    (tmp_path / "a" / "other-rank3.json").write_text(json.dumps(late))
    document, report = merged([*paths, again, tmp_path / "a" / "other-rank3.json"], tmp_path)
    said = "\n".join(report.problems)
    assert "rank 1 is there twice" in said and "no trace of rank 2 of 4" in said
    assert "1 file of another run left out: other-rank3.json" in said
    assert len(document["gdbext"]["ranks"]) == 3


def test_files_that_are_no_traces(tmp_path):
    (tmp_path / "rank-0.json").write_text("hello")
    with pytest.raises(NothingFound, match="not a readable trace"):
        merged([tmp_path / "rank-0.json"], tmp_path)
    paths = write(Plan(ranks=2), tmp_path / "b")
    _, report = merged([*paths, tmp_path / "rank-0.json"], tmp_path)
    assert [one.state for one in report.files] == ["ok", "ok", "lost"]


def test_times_that_are_no_numbers_are_counted(tmp_path):
    plan = Plan(ranks=1)
    document = trace_of(plan, 0, simulate(plan)[0])
    document["traceEvents"].append(
        {"ph": "X", "cat": "kernel", "name": "n", "pid": 0, "tid": 7, "ts": float("nan"), "dur": 1}
    )
    (tmp_path / "rank-0.json").write_text(json.dumps(document))
    _, report = merged([tmp_path / "rank-0.json"], tmp_path)
    assert report.invalid == 1


def test_a_disk_that_fills_leaves_nothing(tmp_path, monkeypatch):
    def full(self, text):
        raise OSError(28, "No space left on device")

    paths = write(Plan(ranks=2), tmp_path / "in")
    monkeypatch.setattr(Part, "write", full)
    with pytest.raises(GdbextError, match="No space left on device"):
        merged(paths, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


@pytest.mark.process
def test_a_helper_that_is_killed_is_said(tmp_path, monkeypatch):
    def killed(self, events):
        os.kill(os.getpid(), signal.SIGKILL)

    paths = write(Plan(ranks=2), tmp_path / "in")
    monkeypatch.setattr(Collector, "take", killed)
    with pytest.raises(GdbextError, match="helper process was killed"):
        merge([str(path) for path in paths], Asked(), io.BytesIO(), str(tmp_path / "o"), lambda text: None, 2)


def test_perfetto_has_balanced_slices(tmp_path):
    paths = write(Plan(ranks=2, overlap=3), tmp_path)
    file = io.BytesIO()
    report = write_perfetto(paths, Asked(), file, "out.pftrace", lambda text: None, 1)
    trace = trace_pb2.Trace()
    trace.ParseFromString(file.getvalue())
    depth, before, slices = collections.Counter(), {}, 0
    for packet in trace.packet:
        if packet.HasField("track_event"):
            event = packet.track_event
            assert before.get(event.track_uuid, 0) <= packet.timestamp
            before[event.track_uuid] = packet.timestamp
            depth[event.track_uuid] += 1 if event.type == event.TYPE_SLICE_BEGIN else -1
            assert depth[event.track_uuid] >= 0
            slices += event.type == event.TYPE_SLICE_BEGIN
    given = sum(event["ph"] == "X" for path in paths for event in json.loads(Path(path).read_text())["traceEvents"])
    assert slices == given and not any(depth.values()) and report.events_in == report.events_out


def work_of(*slices, sort=KERNEL):
    work = Work()
    for start, length in slices:
        work.add(start, length, 0, 0, sort)
    return work


def test_lanes_are_the_lowest_that_are_free():
    found, used = lanes(work_of((0, 10), (5, 10), (8, 10), (15, 5), (30, 1)))
    assert list(found) == [0, 1, 2, 0, 0] and used == {0: 3}
    assert list(lanes(work_of((0, 10), (10, 5)))[0]) == [0, 0], "they touch"
    assert list(lanes(work_of((0, 10), (2, 5)))[0]) == [0, 1], "a kernel holds no kernel"
    assert list(lanes(work_of((0, 10), (2, 5), (2, 9), sort=ANNOTATION))[0]) == [0, 0, 1]


def test_crc_of_parts_is_that_of_the_whole():
    rng = random.Random(5)
    parts = [bytes(rng.choices(range(256), k=size)) for size in (1000, 0, 70_000, 3)]
    assert crc32_combine(zlib.crc32(parts[0]), zlib.crc32(parts[2]), 70_000) == zlib.crc32(parts[0] + parts[2])
    out, total = io.BytesIO(HEAD), Sum()
    out.seek(0, 2)
    for text in parts:
        part = Part(out)
        part.write(text)
        part.close()
        total = total + part.sum
    packed, more = compress_part(b"tail")
    out.write(packed + end(total + more))
    assert gzip.decompress(out.getvalue()) == b"".join(parts) + b"tail"
    assert zlib.decompressobj(31).decompress(out.getvalue()) == b"".join(parts) + b"tail", "one member"
