"""A folder with the logs of one job: whose each file is, and the rank whose log tells nothing."""

import json

import pytest

from gdbext.cli.inputs.log_folder import files_in
from gdbext.cli.main import main
from gdbext.model.errors import GdbextError
from gdbext.parsers import parse_files
from gdbext.parsers.assemble.file_owners import owner_of

TIMED_OUT = (
    "[E1122 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=118, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600001 ms\n"
)


@pytest.mark.parametrize(
    ("name", "rank", "host"),
    [
        ("logs/rank_3.log", 3, ""),
        ("logs/stack.rank12.txt", 12, ""),
        ("logs/worker-1.out", 1, ""),
        ("none_x/attempt_0/3/stderr.log", 3, ""),
        ("run/slurm-4711_5.out", 5, ""),
        ("run/1/rank.2/stdout", 2, ""),
        ("run/stderr_7.log", 7, ""),
        ("run/7/stderr", 7, ""),
        ("run/4.log", 4, ""),
        ("run/host2/stderr", None, "host2"),
        ("run/node-12.log", None, "node-12"),
        ("run/train.log", None, ""),
        ("run/2026-11-22.log", None, ""),
    ],
)
def test_whose_a_file_is(name, rank, host):
    whose = owner_of(name)
    assert (whose.rank, whose.source) == (rank, host)


def job(folder, silent=2):
    for rank in range(4):
        place = folder / "attempt_1" / str(rank)
        place.mkdir(parents=True)
        (place / "stdout.log").write_text("step 1\nloading shard 7 of 9\n")
        (place / "stderr.log").write_text("" if rank == silent else TIMED_OUT.format(rank))
    old = folder / "attempt_0" / "0"
    old.mkdir(parents=True)
    (old / "stderr.log").write_text(TIMED_OUT.format(0))


def test_the_rank_whose_log_tells_nothing(tmp_path, capsys):
    job(tmp_path)
    main(["diagnose", "-q", str(tmp_path), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [process["rank"] for process in found["processes"]] == [0, 1, 2, 3]
    assert (found["verdict"]["cause"], found["verdict"]["confidence"], found["verdict"]["culprits"]) == (
        "missing-rank",
        "medium",
        [2],
    )
    assert "loading shard 7 of 9" in found["verdict"]["summary"]
    assert any("earlier attempts" in problem for problem in found["problems"])


def test_what_a_rank_writes_into_two_files_is_of_one_process(tmp_path):
    texts = [
        ("job/3/stdout.log", b"[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered\n"),
        ("job/3/stderr.log", b"terminate called after throwing an instance of 'c10::Error'\n"),
        ("job/4/stderr.log", b"step 7\n"),
    ]
    assert [process.rank for process in parse_files(texts).processes] == [3, 4]


def test_a_rank_that_another_log_blames_is_there_once():
    texts = [
        ("job/rank_0.log", b"W horovod/operations.cc:588] Broadcast_0 [missing ranks: 1]\n"),
        ("job/rank_1.log", b"RuntimeError: Connection closed by peer [10.0.0.1]:50\n"),
    ]
    assert [process.rank for process in parse_files(texts).processes] == [0, 1]


def test_what_is_no_log_is_left_out(tmp_path):
    for name in ("config.json", ".hidden.log", "empty.log"):
        (tmp_path / name).write_text("" if name == "empty.log" else "x")
    with pytest.raises(GdbextError, match="without logs"):
        files_in(str(tmp_path))
    (tmp_path / "a.log").write_text("x")
    assert [path.rpartition("/")[2] for path in files_in(str(tmp_path))[0]] == ["a.log"]


def test_a_folder_that_all_files_share_names_no_rank():
    texts = [(f"run/rank_0/{name}.txt", b"RuntimeError: x\n") for name in ("a", "b")]
    assert [process.rank for process in parse_files(texts).processes] == [None, None]
