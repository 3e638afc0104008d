"""Ascend's tables: read by the names of their columns, and judged as any other trace."""

import json

import pytest

from gdbext.cli import main
from gdbext.knowledge.ascend_tables import TABLES
from gdbext.traces.ascend import ascend_files as ascend
from gdbext.traces.ascend.ascend_rank import rank_of, read_tables
from gdbext.traces.diagnosis import diagnose
from gdbext.traces.summary import summarise
from gdbext.traces.trace_files import find_trace_files
from gdbext.traces.traces_of_job import read_job

KERNEL_HEAD = (
    "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
)
START = 1774670741777000  # microseconds since 1970, as the profilers write them
GROUP = "90.90.97.96%enp_60000_0_1774670700000000"


def folder_of(tmp_path, rank, time="20261122"):
    folder = tmp_path / f"host_{4000 + rank}_{time}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    folder.mkdir(parents=True)
    (folder.parent / f"profiler_info_{rank}.json").write_text("{}")
    return folder


def write_rank(folder, rank, late=0.0, gap=0.0, steps=30, exchanged=True):
    """A matrix product and an all-reduce a step; this rank's product takes so much longer, or begins so much later."""
    rows, met, at = [KERNEL_HEAD], {}, float(START)
    for step in range(steps):
        own = 300.0 + late + step % 3
        rows.append(f"{rank},0,{step},7,aclnnMatmul_MatMulV2,MatMulV2,dynamic,AI_CORE,{at + gap:.3f}\t,{own:.2f}\t,0")
        arrival, end = at + gap + own, at + 1100.0
        name = f"hcom_allReduce__868_{step}_1,hcom_allReduce_,N/A,COMMUNICATION"
        rows.append(f"{rank},0,{step},9,{name},{arrival:.3f}\t,{end - arrival:.2f},0")
        times = {
            "Start Timestamp(us)": f"{arrival:.3f}",
            "Elapse Time(ms)": (end - arrival) / 1000,
            "Transit Time(ms)": 0.2,
            "Wait Time(ms)": 0.01,
        }
        links = {"HCCS": {"Transit Size(MB)": 4.2 + rank / 1000}, "SDMA": {"Transit Size(MB)": 0}}
        entry = {"Communication Time Info": times, "Communication Bandwidth Info": links}
        met[f"hcom_allReduce__868_{step}_1@{GROUP}"] = entry
        at += 1150.0
    (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    if exchanged:
        total = {"Total Op Info": {"Communication Time Info": {"Elapse Time(ms)": 9}}}
        (folder / "communication.json").write_text(json.dumps({"step": {"p2p": {}, "collective": {**total, **met}}}))


def judged(tmp_path):
    return diagnose(read_job(find_trace_files([str(tmp_path)]), True, lambda line: None, jobs=1))


def job(tmp_path, **late):
    for rank in range(4):
        write_rank(folder_of(tmp_path, rank), rank, **late.get(f"rank{rank}", {}))
    return judged(tmp_path)


def test_a_rank_with_longer_kernels(tmp_path):
    answer = job(tmp_path, rank2={"late": 500.0})
    assert [one.rank for one in answer.files] == [0, 1, 2, 3]
    assert (answer.verdict.cause, answer.verdict.culprits) == ("late-rank", (2,))
    assert next(one.before for one in answer.lateness if one.process == 2) == "kernel"


def test_a_rank_whose_host_is_late(tmp_path):
    answer = job(tmp_path, rank1={"gap": 500.0})
    assert (answer.verdict.cause, answer.verdict.culprits) == ("late-rank", (1,))
    assert next(one.before for one in answer.lateness if one.process == 1) == "idle"


def test_ranks_that_are_even(tmp_path):
    assert job(tmp_path).verdict.cause in ("not-late", "unknown")


def test_the_same_by_kernels_alone(tmp_path):
    """Level0 profiles have no communication.json: collectives are kernels then."""
    for rank in range(4):
        write_rank(folder_of(tmp_path, rank), rank, late=500.0 * (rank == 3), exchanged=False)
    assert judged(tmp_path).verdict.culprits == (3,)


def test_a_collective_is_counted_once(tmp_path):
    folder = folder_of(tmp_path, 0)
    write_rank(folder, 0)
    trace, _ = read_tables(str(folder))
    ((key, calls),) = trace.calls.items()
    assert key == ("all-reduce", GROUP, "")
    assert list(calls.seq) == list(range(30))
    assert set(calls.size) == {4200000}


def test_times_are_not_rounded_to_floats(tmp_path):
    folder = folder_of(tmp_path, 0)
    (folder / "kernel_details.csv").write_text(f"{KERNEL_HEAD}\n0,0,0,7,a,A,x,y,{START}.027\t,10.125,0\n")
    (kernel,) = ascend.kernels(str(folder / "kernel_details.csv"), ascend.Table())
    assert (kernel.start, kernel.duration) == (START * 1000 + 27, 10125)
    assert float(f"{START}.027") * 1000 != START * 1000 + 27


@pytest.mark.parametrize(
    "heading",
    [
        "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num",
        "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us)\t,Duration(us)\t,HF32 Eligible,aic_mac_ratio",
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Something New",
        "\ufeffName,Duration(ms),Start Time(ns),New Column",
    ],
)
def test_columns_of_other_releases(tmp_path, heading):
    names = [cell.strip("\ufeff\t ") for cell in heading.split(",")]
    values = {"Name": "mm", "Op Name": "mm", "Type": "MM", "OP Type": "MM", "Step Id": "3"}
    values.update({"Start Time(us)": "2000.5\t", "Task Start Time(us)": "2000.5", "Start Time(ns)": "2000500"})
    values.update({"Duration(us)": "40\t", "Task Duration(us)": "40", "Duration(ms)": "0.04"})
    path = tmp_path / "kernel_details.csv"
    path.write_text(f"{heading}\n{','.join(values.get(name, 'x') for name in names)}\n")
    table = ascend.Table()
    (kernel,) = ascend.kernels(str(path), table)
    assert (kernel.name, kernel.start, kernel.duration) == ("mm", 2000500, 40000)
    assert kernel.step == (3 if "Step Id" in heading else None)
    assert table.problems == []


@pytest.mark.parametrize(
    ("text", "left", "said"),
    [
        ("", 0, "kernel_details.csv is empty"),
        ("Name,Start Time(us)\nmm,3\n", 0, "kernel_details.csv has no column Duration; it has Name, Start Time(us)"),
        (
            "Name,Start Time(us),Duration(us)\nmm,1,2\nincomplete,,\n",
            1,
            "1 of 2 lines of kernel_details.csv have no number",
        ),
        ("Name,Start Time(us),Duration(us)\nmm,1,2\nmm,nan,inf\nmm,1,-4\n", 1, "2 of 3 lines"),
        ("Name,Start Time(us),Duration(us)\nmm,1,2\nm\0m,1,2\n", 2, None),
        ("Name,Start Time(us),Duration(us)\n\nmm,1,2\n\n", 1, None),
    ],
)
def test_damaged_tables(tmp_path, text, left, said):
    path = tmp_path / "kernel_details.csv"
    path.write_text(text)
    table = ascend.Table()
    assert len(list(ascend.kernels(str(path), table))) == left
    assert (said is None and not table.problems) or said in table.problems[0]


def test_tables_that_are_not_there(tmp_path):
    table = ascend.Table()
    assert list(ascend.kernels(str(tmp_path / "kernel_details.csv"), table)) == []
    assert table.problems == ["kernel_details.csv cannot be read: No such file or directory"]
    folder = folder_of(tmp_path, 0)
    trace, _ = read_tables(str(folder))
    assert trace.lost and "neither kernel_details.csv nor communication.json" in trace.problems[0]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, '{"s": {"collective": {"hcom_x": 3, "y@g": {}}}}', '{"s": 3}']
)
def test_damaged_collectives(tmp_path, text):
    path = tmp_path / "communication.json"
    path.write_text(text)
    table = ascend.Table()
    assert list(ascend.exchanges(str(path), table)) == []
    assert all("communication.json" in problem for problem in table.problems)


STEPS = """Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing
0,1,600.0\t,100.0,50.0,150.0,300.0,1000,0,1
0,2,500,100,0,100,400,1000,0,1
0,3,x,100,0,100,400,1000,0,1
"""


def test_shares_of_steps(tmp_path):
    path = tmp_path / "step_trace_time.csv"
    path.write_text(STEPS)
    table = ascend.Table()
    found = ascend.read_step_shares(str(path), table)
    assert {step: (one.compute, one.exposed, one.hidden, one.idle) for step, one in found.items()} == {
        1: (0.6, 0.1, 0.05, 0.3),
        2: (0.5, 0.1, 0.0, 0.4),
    }
    assert table.problems == ["1 of 3 lines of step_trace_time.csv have no number where one belongs"]


def test_shares_of_a_rank_that_has_nothing_else(tmp_path):
    folder = folder_of(tmp_path, 0)
    (folder / "step_trace_time.csv").write_text(STEPS)
    trace, _ = read_tables(str(folder))
    assert trace.shares.compute == 0.6


OPERATORS = """Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)
0,MatMulV2,AI_CORE,30,{},9,10,12,70
0,Cast,AI_VECTOR_CORE,10,100\t,5,10,20,30
"""


def test_operators_over_ranks(tmp_path):
    """Two ranks by op_statistic.csv, one by its kernels."""
    folders = [folder_of(tmp_path, rank) for rank in range(3)]
    for rank, folder in enumerate(folders):
        write_rank(folder, rank)
        if rank < 2:
            (folder / "op_statistic.csv").write_text(OPERATORS.format(300 + 600 * rank))
    answer = summarise(find_trace_files([str(tmp_path)]), "category", 20, lambda line: None, jobs=1)
    assert [one.rank for one in answer.files] == [0, 1, 2]
    rows = {row.name: row for row in answer.rows}
    product = rows["MatMulV2"]
    assert (product.sort, product.count) == ("AI_CORE", 90)
    assert product.ranks == {0: 300.0, 1: 900.0, 2: pytest.approx(30 * 301.0)}
    assert product.counts == {0: 30, 1: 30, 2: 30}
    assert rows["hcom_allReduce_"].sort == "communication"
    assert sum(row.share for row in answer.rows) == pytest.approx(1)


def test_kernels_by_stream(tmp_path):
    write_rank(folder_of(tmp_path, 0), 0)
    answer = summarise(find_trace_files([str(tmp_path)]), "stream", 20, lambda line: None, jobs=1)
    assert {(row.name, row.sort) for row in answer.rows} == {("MatMulV2", "stream 7"), ("hcom_allReduce_", "stream 9")}


@pytest.mark.process
def test_the_commands(tmp_path, capsys):
    for rank in range(4):
        write_rank(folder_of(tmp_path, rank), rank, late=500.0 * (rank == 2))
    assert main.main(["trace", "diagnose", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"]["cause"] == "late-rank"
    assert main.main(["trace", "summary", str(tmp_path)]) == 0
    assert "MatMulV2" in capsys.readouterr().out


def test_a_timeline_is_read_rather_than_tables(tmp_path):
    folder = folder_of(tmp_path, 0)
    write_rank(folder, 0)
    assert find_trace_files([str(tmp_path)]) == [str(folder)]
    (folder / "trace_view.json").write_text("[]")
    assert find_trace_files([str(tmp_path)]) == [str(folder / "trace_view.json")]


def test_the_rank_of_a_folder(tmp_path):
    assert rank_of(str(folder_of(tmp_path, 3))) == 3
    named = tmp_path / "dp0_pp0_tp5_rank5_123_20261002_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    named.mkdir(parents=True)
    assert rank_of(str(named)) == 5
    assert rank_of(str(tmp_path / "nowhere" / "ASCEND_PROFILER_OUTPUT")) is None


@pytest.mark.parametrize("row", TABLES, ids=lambda row: row.file)
def test_rows(row):
    assert row.source and set(row.needed) <= set(row.columns)
    assert not any("(us)" in name for names in row.columns.values() for name in names), "units are read beside names"
