"""The benchmark's own arithmetic and pictures: a wrong ratio in the docs would be a wrong promise."""

import xml.etree.ElementTree as xml

from tests.bench import diagnose, frames, matrix
from tests.bench.picture import chart
from tests.bench.tools import Tool


def tool(name, walls=(), pauses=(), failed=""):
    return Tool(name, ["x"], walls=list(walls), cpus=list(walls), pauses=list(pauses), sums=list(pauses), failed=failed)


def rows(cold=2.0, warm=1.0, together=7.5):
    return [
        tool("gdb", [20, 30, 28], [3000, 4000, 9000]),
        tool("py-spy", [0.2], [10.0]),
        tool("eu-stack", [1.5], [0.6]),
        tool("gdbext, cold", [cold], [2.0]),
        tool("gdbext", [warm, warm], [3.0, 5.0]),
        tool("gdbext --together", [warm], [together]),
        tool("pystack", failed="printed nothing: no such file"),
    ]


def test_the_table_of_one_job():
    lines = diagnose.table(rows()).splitlines()
    warm = next(line for line in lines if line.startswith("| gdbext  ") or line.startswith("| gdbext |"))
    cells = [cell.strip() for cell in warm.split("|")[1:-1]]
    assert cells[:7] == ["gdbext", "1.00", "1/28.0", "1.00", "4.0", "", "1/1000"]
    assert any("printed nothing" in line for line in lines)


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
