"""The benchmark's own arithmetic and pictures: a wrong ratio in the docs would be a wrong promise."""

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.bench import bystander, diagnose, frames, matrix
from tests.bench.bystander import Bystander, Standstill
from tests.bench.picture import chart
from tests.bench.tools import Tool
from tests.inferiors.torch_job import Heartbeat, build_library
from tests.polling import wait_until


def tool(name, walls=(), pauses=(), failed="", raw=None):
    stops = {"pauses": list(pauses), "sums": list(pauses), "raw_pauses": list(raw or pauses)}
    return Tool(name, ["x"], walls=list(walls), cpus=list(walls), failed=failed, **stops)


def rows(cold=2.0, warm=1.0, together=7.5):
    return [
        tool("gdb", [20, 30, 28], [3000, 4000, 9000]),
        tool("py-spy", [0.2], [10.0]),
        tool("eu-stack", [1.5], [0.6]),
        tool("gdbext, cold", [cold], [2.0]),
        tool("gdbext", [warm, warm], [3.0, 5.0], raw=[13.0, 5.0]),
        tool("gdbext --together", [warm], [together]),
        tool("pystack", failed="printed nothing: no such file"),
    ]


def test_the_table_of_one_job():
    lines = diagnose.table(rows()).splitlines()
    warm = next(line for line in lines if line.startswith("| gdbext  ") or line.startswith("| gdbext |"))
    cells = [cell.strip() for cell in warm.split("|")[1:-1]]
    assert cells[:8] == ["gdbext", "1.00", "1/28.0", "1.00", "4.0", "9.0", "", "1/1000"]
    assert any("printed nothing" in line for line in lines)


def test_the_row_of_nothing_says_what_was_the_worst():
    noise = tool("nothing", [4.0] * 3, [0.0, 0.0, 0.9], raw=[2.0, 33.0, 5.0])
    line = next(line for line in diagnose.table([*rows(), noise]).splitlines() if line.startswith("| nothing"))
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[4:6] == ["0.0", "5.0"]
    assert cells[-1] == "at worst 0.9 ms, with the machine's gaps 33.0 ms"
    assert cells[7] == "1/4000", "what is not told from nothing is taken for a millisecond"


def test_what_was_promised_and_what_was_not_kept():
    assert [line.partition(":")[0] for line in diagnose.targets(rows())] == ["met"] * 6
    missed = diagnose.targets(rows(cold=2.9, warm=1.6, together=10.5))
    assert [line.partition(":")[0] for line in missed] == ["MISSED", "MISSED", "met", "met", "MISSED", "MISSED"]
    assert diagnose.targets(rows()[:2]) == [], "what was not measured is neither"


def cell(ranks, threads, **walls):
    found = [vars(tool(name, values, [1.0])) for name, values in walls.items()]
    return {"ranks": ranks, "threads": threads, "counted": threads + 1, "rows": found}


CELLS = [cell(1, 100, gdb=[4.0, 2.0], gdbext=[0.5]), cell(8, 100, gdb=[30.0], gdbext=[]), cell(8, 300, gdb=[90.0])]


def test_the_tables_of_many_jobs():
    lines = matrix.table(CELLS, "walls", 2).splitlines()
    assert "1 x 101" in lines[0] and "8 x 301" in lines[0]
    assert [part.strip() for part in lines[2].split("|")[1:-1]] == ["gdb", "3.00", "30.00", "90.00"]
    assert [part.strip() for part in lines[3].split("|")[1:-1]] == ["gdbext", "0.50", "", ""]


def test_the_picture_is_an_svg_with_a_line_for_each_tool():
    root = xml.fromstring(matrix.picture(CELLS, 100))
    space = {"s": "http://www.w3.org/2000/svg"}
    lines = root.findall("s:polyline", space)
    assert len(lines) == 4, "two tools in two panels"
    points = [tuple(map(float, point.split(","))) for point in lines[0].get("points").split()]
    assert len(points) == 2 and points[0][1] > points[1][1], "eight ranks take longer and stand higher"
    width, height = map(float, root.get("viewBox").split()[2:])
    assert all(0 < x < width and 0 < y < height for x, y in points)


def test_names_in_a_picture_are_text():
    root = xml.fromstring(chart("<b>", "a&b", [("x<y", {"<script>": [(1, 2.0)]}), ("empty", {})]))
    assert "<script>" in "".join(root.itertext())


def test_equal_frames_are_counted_from_the_outer_end():
    theirs = [(1, "leaf"), (2, "middle"), (3, "main")]
    assert frames.equal_frames(theirs, theirs) == 3
    assert frames.equal_frames([(1, "leaf"), (9, "other"), (3, "main")], theirs) == 1
    assert frames.equal_frames([(2, "middle"), (3, "main")], theirs) == 2
    assert frames.equal_frames([], theirs) == 0


MS = 1_000_000
AT = 5_000 * MS  # when


def late(*pairs):
    """Missed beats, in ms after AT."""
    return [(AT + int(a * MS), AT + int(b * MS)) for a, b in pairs]


@pytest.mark.parametrize(
    ("rank", "machine", "lengths"),
    [
        ([(0, 50)], [], [50]),
        ([(0, 50)], [(-20, -1), (51, 60)], [50]),
        ([(0, 50)], [(10, 30)], [30]),  # a FIFO spinner has the CPU in the middle of a stop
        ([(0, 50)], [(-5, 5), (10, 11), (40, 70)], [34]),
        ([(0, 9)], [(0, 9.02)], []),
        ([(0, 9)], [(0, 8.5)], []),  # a remainder that the heartbeat would not have noted
        ([(0, 9)], [(0, 8.3)], [0.7]),
        ([(0, 9), (20, 22), (30, 40)], [(0, 9), (35, 41)], [2, 5]),
    ],
)
def test_what_the_machine_missed_is_no_stop(rank, machine, lengths):
    assert [length / MS for length in bystander.left(late(*rank), late(*machine))] == lengths


def test_the_worst_rank_with_and_without_the_machine():
    quiet = ([], late((0, 3)))
    mostly_machine = (late((0, 30), (40, 42)), late((0, 30)))
    stopped = (late((0, 9), (40, 45), (50, 52)), late((0, 4)))
    found = bystander.worst([quiet, mostly_machine, stopped])
    assert found == Standstill(5.5, 5 + 5 + 2 + 1.5, 30.5, 33.0)
    assert bystander.worst([quiet]) == Standstill(0.0, 0.0, 0.0, 0.0)


def heart(cpu, priority):
    return SimpleNamespace(cpu=cpu, priority=priority)


@pytest.mark.parametrize(
    ("ranks", "beside", "why"),
    [
        ([heart(0, 3), heart(1, 3)], {0: heart(0, 2), 1: heart(1, 2)}, ""),
        ([heart(0, 3), heart(-1, 3)], {0: heart(0, 2)}, "CPU of its own"),
        ([heart(0, 3)], {0: heart(-1, 2)}, "CPU of its own"),
        ([heart(0, 0)], {0: heart(0, 0)}, "priority"),
        ([heart(0, 3)], {0: heart(0, 0)}, "priority"),
        ([heart(0, 2)], {0: heart(0, 2)}, "priority"),
        ([heart(0, 3)] * 17, {0: heart(0, 2)}, "too many"),
    ],
)
def test_when_the_machine_cannot_be_told_apart(ranks, beside, why):
    found = bystander.why_raw(ranks, beside)
    assert why in found and bool(why) == bool(found)
    assert not found or found in bystander.raw_note(found)


VICTIM = """
import ctypes, sys
if ctypes.CDLL(sys.argv[1]).start_heartbeat(sys.argv[2].encode(), int(sys.argv[3]), 3) == 0:
    print("beats", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def victim(tmp_path):
    """A process with a heartbeat, as TorchJob has it for each rank."""
    path = tmp_path / "heartbeat.0"
    argv = [sys.executable, "-c", VICTIM, build_library(), path, str(max(os.sched_getaffinity(0)))]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"beats\n"
            yield SimpleNamespace(pid=process.pid, hearts=[Heartbeat(path)], folder=tmp_path)
        finally:
            process.kill()


def stands(pid):
    stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


@pytest.mark.process
def test_a_stop_is_seen_whatever_the_machine_does(victim):
    """It lasts while the bystander beats 50 times on the same CPU: so many periods the machine was not away."""
    with Bystander(victim) as beside:
        (other,) = (Heartbeat(path) for path in victim.folder.glob("bystander.*"))
        assert other.cpu == victim.hearts[0].cpu and other.goes_on()
        since = time.monotonic()
        os.kill(victim.pid, signal.SIGSTOP)
        wait_until(lambda: stands(victim.pid))
        begun = other.beats
        wait_until(lambda: other.beats >= begun + 51)
        assert beside.standstill(since, time.monotonic(), patience=0.02) is None, "it does not go on"
        os.kill(victim.pid, signal.SIGCONT)
        found = beside.standstill(since, time.monotonic())
        most = (time.monotonic() - since) * 1000 + 1
        short = len(other.missed(since, time.monotonic()))  # the period after a late beat is shorter
    assert 48 - short <= found.longest <= found.raw_longest <= most
