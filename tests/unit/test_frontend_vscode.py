"""launch.json for the ranks of a job: ours are replaced, everything else stays."""

import json
import os
import sys

import pytest

from gdbext.cli.vscode import write, written
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import GdbextError
from gdbext.model.job import Job, RankProcess

JOB = Job("key", "vllm", (RankProcess(os.getpid(), "rank", rank=3), RankProcess(1 << 23, "rank")))
THEIRS = {"name": "app", "type": "cppdbg"}


def of_job(path):
    return written(path, JOB, "/usr/bin/gdb", ProcFS())


def test_one_for_each_rank_and_all_together(tmp_path):
    path = tmp_path / ".vscode" / "launch.json"
    write(path, of_job(path))
    found = json.loads(path.read_text())
    native, python, gone = found["configurations"]
    assert native["processId"] == str(os.getpid())
    assert native["program"] == os.path.realpath(sys.executable)
    assert native["setupCommands"][1]["text"].endswith("init.py")
    assert (python["type"], python["processId"]) == ("debugpy", os.getpid())
    assert gone["program"] == f"/proc/{1 << 23}/exe"
    assert found["compounds"][0]["configurations"] == [native["name"], gone["name"]]
    assert os.listdir(path.parent) == ["launch.json"]


def test_what_is_not_ours_stays(tmp_path):
    path = tmp_path / "launch.json"
    path.write_text(json.dumps({"version": "0.2.0", "configurations": [THEIRS], "inputs": [1]}))
    for _ in range(2):
        write(path, of_job(path))
    found = json.loads(path.read_text())
    assert found["inputs"] == [1]
    assert found["configurations"][0] == THEIRS
    assert (len(found["configurations"]), len(found["compounds"])) == (4, 1)


@pytest.mark.parametrize("text", ["// comment\n{}", "[]", '{"configurations": {}}'])
def test_a_file_that_we_do_not_understand_is_left_alone(tmp_path, text):
    path = tmp_path / "launch.json"
    path.write_text(text)
    with pytest.raises(GdbextError, match="--print"):
        of_job(path)
    assert path.read_text() == text
