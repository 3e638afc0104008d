"""`gdbext dump ls`: what lies in the folder of a dump."""

import json
import os

import pytest

from gdbext.cli import main
from gdbext.cli.dump import listing, read_name
from gdbext.knowledge.dumps.dump_layouts import LAYOUTS
from gdbext.model.errors import GdbextError, NothingFound

MS = "rank_{}/net/0/{}/{}.{}.{}.1623124369613540.{}.DefaultFormat.float16.npy"
NAMES = {
    MS.format(3, 7, "Conv2D.Conv2D-op12", 0, 0, "output.0"): (
        "mindspore",
        "tensor",
        3,
        7,
        "Conv2D.Conv2D-op12.output.0",
    ),
    MS.format(0, 0, "Add.Default_Add-op1", 15, 21, "input.1.0"): (
        "mindspore",
        "tensor",
        0,
        0,
        "Add.Default_Add-op1.input.1",
    ),
    "rank_1/net/0/2/Add.op.1.2.33.input.0.NCHW.npy": ("mindspore", "tensor", 1, 2, "Add.op.input.0"),
    "m/rank_1/net/0/2/statistic.csv": ("mindspore", "statistics", 1, 2, ""),
    "rank_0/net/0/constants/Parameter.data-4.0.0.99.output.0.DefaultFormat.npy": (
        *("mindspore", "constant", 0, None, "Parameter.data-4.output.0"),
    ),
    "rank_0/graphs/ms_output_trace_code_graph_0.ir": ("mindspore", "graph", 0, None, "ms_output_trace_code_graph_0"),
    "rank_0/execution_order/ms_execution_order_graph_0.csv": (
        *("mindspore", "order", 0, None, "ms_execution_order_graph_0"),
    ),
    "rank_2/hwopt_d_end_graph_0.ir": ("mindspore", "graph", 2, None, "hwopt_d_end_graph_0"),
    "sglang/TP1_PP0_Rank1_pid4711/Pass00003.pt": ("sglang", "tensor", 1, 3, ""),
    "dumper/dump_1/step=4___rank=2___dump_index=7___name=logits.pt": ("sglang", "tensor", 2, 4, "logits"),
    "tllm_debug/PP_1/TP_2/iteration_9/position_ids.npy": ("tensorrt-llm", "tensor", None, 9, "position_ids"),
    "vllm/rank_1_dp_0/BEFORE_SPLIT.0.py": ("vllm", "graph", 1, None, "BEFORE_SPLIT.0.py"),
    "torch_compile_debug/run_2026_11_22_20_56_32_062044-pid_15446/torchinductor/model__0.0/output_code.py": (
        *("torch", "graph", None, None, "torchinductor/model__0.0/output_code.py"),
    ),
    "torch_trace/dedicated_log_torch_trace_rank_3_ab12.log": ("torch", "log", 3, None, ""),
}


@pytest.mark.parametrize(("path", "expected"), NAMES.items(), ids=range(len(NAMES)))
def test_names(path, expected):
    found = read_name(path, 1)
    assert (found.engine, found.what, found.rank, found.step, found.name) == expected


def test_each_layout_has_a_name_that_shows_it():
    seen = {(read_name(path, 1).engine, read_name(path, 1).what) for path in NAMES}
    assert {(row.engine, row.what) for row in LAYOUTS if (row.engine, row.what) != ("mindspore", "log")} <= seen
    assert read_name("notes.txt", 1) is None


def write(folder, path, data=b"x" * 100):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


@pytest.fixture
def dump(tmp_path):
    """Four ranks, three steps; rank 2 did not write one tensor of step 1, and rank 3 nothing after step 1."""
    for rank in range(4):
        for step in range(3):
            for name in ("MatMul.op1", "Add.op2"):
                if (rank, step, name) != (2, 1, "Add.op2") and not (rank == 3 and step == 2):
                    write(tmp_path, MS.format(rank, step, name, 1, rank, "output.0"))
    write(tmp_path, "data_dump.json")
    return tmp_path


def test_by_rank_and_step(dump, capsys):
    assert main.main(["dump", "ls", str(dump), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["groups"][0] == {
        "of": "rank 0",
        "step": 0,
        "what": "tensor",
        "engine": "mindspore",
        "files": 2,
        "bytes": 200,
    }
    assert len(document["groups"]) == 11
    assert document["other_files"] == 1
    assert document["uneven"] == [
        "step 1: rank 2 did not write 1 of 2 tensors that others wrote, for example Add.op2.output.0",
        "step 2: rank 3 did not write 2 of 2 tensors that others wrote, for example Add.op2.output.0",
    ]
    left, right = document["compare"]
    assert "rank_0/net/0/0/Add" in left and "rank_1/net/0/0/Add" in right


def test_of_one_rank_step_and_name(dump, capsys):
    assert main.main(["dump", "ls", str(dump), "--rank", "2", "--step", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count(".npy") >= 1 and "MatMul.op1.output.0" in out
    assert main.main(["dump", "ls", str(dump), "--name", "Add", "--step", "0", "--json"]) == 0
    assert [one["rank"] for one in json.loads(capsys.readouterr().out)["files"]] == [0, 1, 2, 3]
    assert main.main(["dump", "ls", str(dump), "--rank", "9"]) == 4
    assert "has no such file" in capsys.readouterr().err


def test_ranks_that_shared_a_folder_are_said(tmp_path):
    write(tmp_path, "tllm_debug/PP_1/TP_2/iteration_0/x.npy")
    assert "overwrote each other's files" in listing(str(tmp_path)).notes[0]


def test_folders_that_hold_none(tmp_path):
    with pytest.raises(NothingFound, match=r"has no dump \(empty\)"):
        listing(str(tmp_path))
    write(tmp_path, "notes.txt")
    with pytest.raises(NothingFound, match="1 file, not in a known dump format"):
        listing(str(tmp_path))
    with pytest.raises(GdbextError, match="is not a folder"):
        listing(str(tmp_path / "notes.txt"))


def test_links_and_fifos_are_left_out(tmp_path):
    write(tmp_path, "vllm/rank_0/a.py")
    os.symlink("/etc/passwd", tmp_path / "vllm/rank_0/b.py")
    os.mkfifo(tmp_path / "vllm/rank_0/c.py")
    assert [one.files for one in listing(str(tmp_path)).groups] == [1]
