"""The files of a profile while they are written: whose each is, and when all are whole."""

import gzip
import os

import pytest

from gdbext.cli.profiler.profile_files import Folder, TraceOwner, count_missing_traces, parse_trace_name
from gdbext.model.profiling import WrittenTrace

NAMES = {
    "1700000000.25-TP-3.trace.json.gz": TraceOwner("TP 3"),
    "mine-1700000000.25-TP-1-DP-0-PP-2-EP-1-DECODE.trace.json.gz": TraceOwner("DP 0, EP 1, PP 2, TP 1", "DECODE"),
    "1700000000-TP-0-prefill.trace.json.gz": TraceOwner("TP 0", "prefill"),
    "dp0_pp0_tp1_dcp0_ep0_rank1.1795382846003072828.pt.trace.json.gz": TraceOwner("rank 1"),
    "mine_dp1_pp0_tp0_rank4.1795382846003072828.pt.trace.json": TraceOwner("rank 4"),
    "8a7f-rank-2.1795382846003.pt.trace.json.gz": TraceOwner("rank 2"),
    "node7_4711.1795382846003072828.pt.trace.json.gz": TraceOwner("pid 4711"),
    "node7_4711.async_llm.1795382846004021313.pt.trace.json.gz": TraceOwner(
        "node7_4711.async_llm.1795382846004021313.pt.trace.json.gz", is_rank=False
    ),
    "trtllm-trace-1795382846-0a1b2c3d-rank-5.json": TraceOwner("rank 5"),
    "trace-rank-0.json": TraceOwner("rank 0"),
    "node7_4711_20261122102345_ascend_pt": TraceOwner("pid 4711", is_folder=True),
    "node7_4711_20261122102345_ascend_ms": TraceOwner("pid 4711", is_folder=True),
    "dp0_pp0_tp5_dcp0_ep0_rank5_123_20261002_ascend_pt": TraceOwner("rank 5", is_folder=True),
    "merged-1700000000.25.trace.json.gz": None,
    "profiler_out_0.txt": None,
    "data_dump.json": None,
    "1700000000.1-TP-0-memory.pickle": None,
}


@pytest.mark.parametrize(("name", "expected"), NAMES.items(), ids=NAMES)
def test_names(name, expected):
    assert parse_trace_name(name) == expected


TRACE = b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}\n'
ZIPPED = gzip.compress(TRACE)
RANK = "x-rank-{}.json.gz"


def states(folder):
    return {one.key: one.state for one in folder.look()}


def test_a_gzip_file_is_whole_when_its_stream_ends(tmp_path):
    folder, path = Folder(str(tmp_path)), tmp_path / RANK.format(0)
    folder.remember()
    assert folder.look() == ()
    for end in (0, 10, len(ZIPPED) - 1):
        path.write_bytes(ZIPPED[:end])
        assert states(folder) == {"rank 0": "growing"}
        assert states(folder) == {"rank 0": "growing"}, "that it stands still does not make it whole"
    path.write_bytes(ZIPPED)
    assert states(folder) == {"rank 0": "whole"}
    (one,) = folder.look()
    assert (one.bytes, one.path) == (len(ZIPPED), str(path))


def test_a_plain_file_is_whole_when_it_stands_still_behind_its_last_bracket(tmp_path):
    folder, path = Folder(str(tmp_path)), tmp_path / "x-rank-0.json"
    path.write_bytes(TRACE[:30])
    assert [states(folder) for _ in range(3)] == [{"rank 0": "growing"}] * 3
    path.write_bytes(TRACE)
    assert [states(folder) for _ in range(2)] == [{"rank 0": "growing"}, {"rank 0": "whole"}]


def test_a_file_that_is_written_anew(tmp_path):
    folder, path = Folder(str(tmp_path)), tmp_path / RANK.format(0)
    path.write_bytes(ZIPPED)
    assert states(folder) == {"rank 0": "whole"}
    other = tmp_path / "other"
    other.write_bytes(ZIPPED[:9])
    os.replace(other, path)
    assert states(folder) == {"rank 0": "growing"}


def test_what_lay_there_before_is_of_another_profile(tmp_path):
    old = tmp_path / RANK.format(0)
    old.write_bytes(ZIPPED)
    folder = Folder(str(tmp_path))
    folder.remember()
    (tmp_path / RANK.format(1)).write_bytes(ZIPPED)
    assert states(folder) == {"rank 1": "whole"}
    old.write_bytes(gzip.compress(TRACE * 2))
    assert set(states(folder)) == {"rank 0", "rank 1"}, "one of the same name that is written over is new"


def test_an_ascend_folder_is_whole_with_its_timeline(tmp_path):
    rank = tmp_path / "node_4711_20261122102345_ascend_pt"
    tables = rank / "ASCEND_PROFILER_OUTPUT"
    tables.mkdir(parents=True)
    folder = Folder(str(tmp_path))
    assert states(folder) == {"pid 4711": "not there yet"}
    (rank / "profiler_info_3.json").write_text("{}")
    (tables / "trace_view.json").write_text("[]")
    assert [states(folder) for _ in range(2)][1] == {"rank 3": "whole"}


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / RANK.format(0))
    (tmp_path / RANK.format(1)).write_bytes(b"no gzip at all")
    (tmp_path / RANK.format(2)).mkdir()
    assert states(Folder(str(tmp_path))) == {"rank 1": "no gzip file"}


def test_room_is_that_of_the_nearest_folder_above(tmp_path):
    assert Folder(str(tmp_path / "not" / "there")).room() > 0


def trace(number, stage="", state="whole", is_rank=True):
    return WrittenTrace("p", f"rank {number}", 1, state, stage, is_rank)


@pytest.mark.parametrize(
    ("files", "ranks", "stages", "left"),
    [
        ([], 4, 1, 4),
        ([trace(0), trace(1)], 2, 1, 0),
        ([trace(0), trace(1, state="growing")], 2, 1, 1),
        ([trace(0), trace(9, is_rank=False)], 2, 1, 1),
        ([trace(0, "EXTEND"), trace(1, "EXTEND")], 2, 1, 0),
        ([trace(0, "EXTEND"), trace(1, "EXTEND")], 2, 2, 2),
        ([trace(0, "EXTEND"), trace(1, "EXTEND"), trace(0, "DECODE")], 2, 1, 1),
        ([trace(0), trace(1), trace(2), trace(3, state="growing")], 2, 1, 1),
        ([], 0, 1, 0),
    ],
)
def test_how_many_are_missing(files, ranks, stages, left):
    assert count_missing_traces(files, ranks, stages) == left
