"""launch.json for the ranks of a job: ours are replaced, everything else stays."""

import json
import os
import sys

import pytest

from gdbext.cli import vscode
from gdbext.cli.command_line import parser
from gdbext.cli.vscode import TASK, launch_document, write
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import GdbextError
from gdbext.model.job import Job, RankProcess

JOB = Job("key", "vllm", (RankProcess(os.getpid(), "rank", rank=3), RankProcess(1 << 23, "rank")))
THEIRS = {"name": "app", "type": "cppdbg"}


def of_job(path):
    return launch_document(path, JOB, "/usr/bin/gdb", ProcFS())


def test_one_for_each_rank_and_all_together(tmp_path):
    path = tmp_path / ".vscode" / "launch.json"
    write(path, *of_job(path))
    found = json.loads(path.read_text())
    native, gone, python = found["configurations"]
    assert native["processId"] == str(os.getpid())
    assert native["program"] == os.path.realpath(sys.executable)
    assert native["setupCommands"][1]["text"].endswith("init.py")
    assert (native["name"], python["name"]) == ("gdbext: rank 3", "gdbext: rank 3, Python")
    assert (python["type"], python["processId"]) == ("debugpy", os.getpid())
    assert gone["program"] == f"/proc/{1 << 23}/exe"
    both, of_python = found["compounds"]
    assert both["configurations"] == [native["name"], gone["name"]] and of_python["configurations"] == [python["name"]]
    assert {one["preLaunchTask"] for one in (native, gone, python, both, of_python)} == {TASK}
    assert os.listdir(path.parent) == ["launch.json"]


def test_what_is_not_ours_stays(tmp_path):
    path = tmp_path / "launch.json"
    path.write_text(json.dumps({"version": "0.2.0", "configurations": [THEIRS], "inputs": [1]}))
    for _ in range(2):
        write(path, *of_job(path))
    found = json.loads(path.read_text())
    assert found["inputs"] == [1]
    assert found["configurations"][0] == THEIRS
    assert (len(found["configurations"]), len(found["compounds"])) == (4, 2)


@pytest.mark.parametrize("text", ["// comment\n{", "[]", "{" * 5000, '{"a": ]}', '{"configurations": {}}'])
def test_a_file_that_we_do_not_understand_is_left_alone(tmp_path, text):
    path = tmp_path / "launch.json"
    path.write_text(text)
    with pytest.raises(GdbextError, match="--print"):
        of_job(path)
    assert path.read_text() == text


COMMENTED = """// of the team
{
  "version": "0.2.0", /* VS Code's */
  "configurations": [
    {"name": "app", "type": "cppdbg", "program": "http://x//y",},
    {"name": "gdbext: rank 7", "type": "cppdbg"}, // from yesterday
  ],
}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`gdbext vscode WORDS` for `JOB`, or another one."""

    def command(*words, job=JOB):
        monkeypatch.setattr(vscode, "chosen_job", lambda *_: job)
        monkeypatch.setattr(vscode, "find_gdb", lambda _: "/usr/bin/gdb")
        return vscode.run(parser().parse_args(["vscode", "--into", str(tmp_path), *words]))

    return command


def test_comments_and_commas_are_read_and_the_text_is_kept(tmp_path, run, capsys):
    (tmp_path / "launch.json").write_text(COMMENTED)
    assert run() == 0
    found = json.loads((tmp_path / "launch.json").read_text())
    theirs = found["configurations"][0]
    assert theirs == {"name": "app", "type": "cppdbg", "program": "http://x//y"}
    assert "gdbext: rank 7" not in [one["name"] for one in found["configurations"]]
    assert (tmp_path / "launch.json.with-comments").read_text() == COMMENTED
    assert f"they are in {tmp_path}/launch.json.with-comments" in capsys.readouterr().err
    run()
    assert (tmp_path / "launch.json.with-comments").read_text() == COMMENTED, "the second file had none"


def test_the_task_asks_for_the_pids_of_now(tmp_path, run, capsys):
    (tmp_path / "tasks.json").write_text('{"version": "2.0.0", "tasks": [{"label": "build"}, ], }')
    run()
    theirs, task = json.loads((tmp_path / "tasks.json").read_text())["tasks"]
    assert theirs == {"label": "build"} and task["label"] == TASK
    words = task["args"][task["args"].index("vscode") + 1 :]
    assert words == ["--check", "--into", str(tmp_path), "--engine=vllm"]
    assert vars(parser().parse_args(["vscode", *words]))["check"]
    capsys.readouterr()
    assert run("--check") == 0 and capsys.readouterr().err == ""
    again = Job("key", "vllm", (RankProcess(os.getppid(), "rank", rank=3),))
    assert run("--check", job=again) == 1
    assert ", with new pids; start again" in capsys.readouterr().err
    found = json.loads((tmp_path / "launch.json").read_text())["configurations"]
    assert [one["processId"] for one in found if one["type"] == "cppdbg"] == [str(os.getppid())]
    assert run("--check", job=again) == 0
