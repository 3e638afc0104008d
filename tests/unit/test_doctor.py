"""`gdbext doctor`: what hinders a look, in one list, with the way out."""

import json
import os
from types import SimpleNamespace

import pytest
from discovery_tree import Tree

from gdbext.capture import private_folder
from gdbext.capture.private_folder import place_for_copies
from gdbext.cli import doctor, main, ranks
from gdbext.collect.gdb_runs.batch_runs import find_gdb
from gdbext.discovery import checkup
from gdbext.discovery.checkup import host_points
from gdbext.discovery.preflight_checks.attach_permission import attach_problems
from gdbext.discovery.proc.procfs import DENIED, ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.checkup import Checkup, Point
from gdbext.render import Style, render

STYLE = Style(width=70, color=False, unicode=True)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Two ranks of four, of which one is traced; we are process 50, not root."""
    made = Tree(tmp_path)
    made.add(50, 1, "gdb")
    os.symlink("50", tmp_path / "self")
    monkeypatch.setattr(ProcFS, "owner_of_files", lambda self, pid: 1000)
    for rank, tracer in ((0, 0), (1, 9)):
        environ = {
            "RANK": str(rank),
            "WORLD_SIZE": "4",
            "LOCAL_WORLD_SIZE": "4",
            "MASTER_ADDR": "here",
            "MASTER_PORT": "1",
        }
        made.add(60 + rank, 1, "python train.py", environ=environ, group=60, status={"TracerPid": tracer})
    return made


def points_of(tree):
    proc = ProcFS(str(tree.folder))
    return list(host_points(proc, find_jobs(proc, Selector((60, 61))), place_for_copies))


def test_a_job_with_a_traced_rank_and_two_that_are_missing(tree):
    found = points_of(tree)
    assert [point.state for point in found if point.name == "attach"] == ["hindrance"]
    (traced,) = (point for point in found if point.name == "attach")
    assert "traced by process 9" in traced.text and traced.text.startswith("61 is") and "kill 9" in traced.remedy
    assert any("ranks 2-3 have no process" in point.text and point.state == "warning" for point in found)
    assert Checkup(tuple(found)).hindered


def test_without_a_job_it_is_told_who_could_not_be_looked_into(tree, monkeypatch, capsys):
    """Root of a container without SYS_PTRACE, ranks of another user: "no rank runs here" alone would mislead."""
    monkeypatch.setattr(ProcFS, "environ", lambda self, pid: DENIED)
    proc = ProcFS(str(tree.folder))
    points = list(host_points(proc, find_jobs(proc, Selector()), place_for_copies))
    said = [point.text for point in points if point.name == "job"]
    assert "no rank process" in said[0] and "could not be inspected: run as their user" in said[1]
    last = " ".join(render(Checkup(tuple(points)), STYLE)[-2:])
    assert "permission to read ranks could not be checked" in last and "Ready" not in last
    monkeypatch.setattr(ranks, "ProcFS", lambda: proc)
    assert main.main(["ranks"]) == 4 and "could not be inspected: run as their user" in capsys.readouterr().err


def test_little_room_is_told_in_a_unit_that_shows_it(tmp_path, monkeypatch):
    """A container with a /tmp of 2 MiB has not 0.0 GiB free."""
    monkeypatch.setattr(checkup.shutil, "disk_usage", lambda folder: SimpleNamespace(free=2 << 20))
    (point,) = (one for one in host_points(ProcFS(str(tmp_path)), (), place_for_copies) if one.name == "copies")
    assert (point.state, point.text.split(" free")[0]) == ("warning", "2 MiB")


def test_the_same_obstacle_of_many_ranks_is_said_once(tree):
    (tree.folder / "61" / "status").write_text((tree.folder / "60" / "status").read_text().replace("60", "61"))
    (tree.folder / "sys/kernel/yama").mkdir()
    (tree.folder / "sys/kernel/yama/ptrace_scope").write_text("2\n")
    ((problem, pids),) = attach_problems(ProcFS(str(tree.folder)), (60, 61))
    assert pids == (60, 61) and problem.blocking and "ptrace_scope is 2" in problem.text


def test_a_small_pid_is_not_taken_for_other_numbers(tmp_path, monkeypatch):
    """In a container the ranks have such ones."""
    made = Tree(tmp_path)
    os.symlink("50", tmp_path / "self")
    monkeypatch.setattr(ProcFS, "owner_of_files", lambda self, pid: 1001)
    monkeypatch.setattr(ProcFS, "may_attach", lambda self, pid: None)
    made.add(10, 1, "python train.py", status={"Uid": "1010\t1010\t1010\t1010"})
    made.add(50, 1, "gdb", status={"Uid": "1000\t1000\t1000\t1000"})
    texts = [(problem.text, pids) for problem, pids in attach_problems(ProcFS(str(tmp_path)), (10,))]
    assert ("10 runs as user 1010, we are user 1000", (10,)) in texts


def test_no_job_and_no_room(tree, monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(private_folder.tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(private_folder, "_room", lambda folder: 0)
    job, room = host_points(ProcFS(str(tree.folder)), [], place_for_copies)
    assert job.state == "warning" and "gdbext diagnose PID" in job.remedy
    assert (room.name, room.state) == ("copies", "hindrance")
    assert "No usable temporary directory" in room.text and "TMPDIR=" in room.remedy


def test_the_folder_that_a_look_takes_is_the_one_that_is_checked(tree, monkeypatch):
    """Where the usual one is full, copies go to the shared memory."""
    rooms = {"/dev/shm": 2 << 30}
    monkeypatch.setattr(private_folder, "_room", lambda folder: rooms.get(folder, 0))
    room = list(host_points(ProcFS(str(tree.folder)), [], place_for_copies))[-1]
    assert room.name == "copies" and "in /dev/shm, where stacks are copied to" in room.text


def test_lines_say_state_and_remedy_and_nothing_of_a_target_gets_to_the_terminal():
    lines = render(
        Checkup((Point("attach", "hindrance", "evil\x1b[2J " * 20, "do this"), Point("gdb", "ok", "13"))), STYLE
    )
    assert all(len(line) <= 70 and "\x1b" not in line for line in lines)
    assert lines[0].startswith("hindrance  attach") and "> do this" in "\n".join(lines)
    assert not any("Ready:" in line for line in lines)
    assert render(Checkup(()), STYLE) == ["Ready: no problems found."]


def test_that_nothing_stands_in_the_way_is_said_where_a_job_was_tried():
    job, alone = Point("job", "ok", "torch: ranks 0-1"), Point("job", "warning", "no rank process runs here")
    assert render(Checkup((job, alone)), STYLE)[-1] == "Ready: no problems found."
    assert render(Checkup((alone,)), STYLE)[-2].startswith("No problems found, but no rank is running here")


@pytest.mark.process
@pytest.mark.parametrize("program", ["/bin/true", "/nowhere/gdb"])
def test_a_gdb_that_is_none(program, capsys):
    assert main.main(["doctor", "--gdb", program, "--json"]) == 1
    first = json.loads(capsys.readouterr().out)["points"][0]
    assert first["state"] == "hindrance" and "apt-get install gdb" in first["text"] + first["remedy"]


@pytest.mark.process
def test_a_gdb_that_hangs(tmp_path, monkeypatch):
    slow = tmp_path / "gdb"
    slow.write_text("#!/bin/sh\nexec sleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setattr(doctor, "_SECONDS", 0.2)
    assert [point.state for point in doctor._asked(str(slow), "warning")] == ["warning"]


@pytest.mark.process
def test_the_gdb_here_says_what_it_is(capsys):
    main.main(["doctor", "--json"])
    points = json.loads(capsys.readouterr().out)["points"]
    assert points[0]["name"] == "gdb" and find_gdb() in points[0]["text"] and " with Python 3." in points[0]["text"]
    assert [point["state"] for point in points if point["name"] == "packages"] == ["ok"]
