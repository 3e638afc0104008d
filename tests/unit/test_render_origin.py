"""A look that is read from a file says when and where it was taken."""

import json
import re

import pytest

from gdbext.cli import main
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.render import Style
from gdbext.render.text.verdict.origin import origin_lines

NOVEMBER = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC


def saved(path, host, taken_at=NOVEMBER):
    stack = ThreadStack("1", (Frame("cudaStreamSynchronize", module="libcudart.so.12"), Frame("main", module="engine")))
    ranks = (RankSnapshot(number, (stack,), pid=10 + number, rank=number, host=host) for number in range(2))
    path.write_text(dump_snapshot(JobSnapshot(tuple(ranks), taken_at)))
    return str(path)


@pytest.mark.parametrize("command", ["diagnose", "stacks", "locks"])
def test_a_saved_look_says_when_and_where(command, tmp_path, capsys):
    file = saved(tmp_path / "hang.json", "node17")
    main.main([command, file, "-q"])
    printed = capsys.readouterr().out
    words = r"  taken    2023-11-14 22:13:20 UTC, [0-9,]+ days ago, on node17\n"
    assert re.search(words if command != "stacks" else r"Snapshot taken 2023-.* days ago, on node17\.\n", printed)
    main.main([command, file, "-q", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["read_from"] == {"files": [file], "taken_at": NOVEMBER, "hosts": ["node17"]}


def test_a_bundle_says_it_too_and_a_text_has_nothing_to_say(tmp_path, capsys):
    file = saved(tmp_path / "hang.json", "node17")
    main.main(["diagnose", file, "-q", "--bundle", str(tmp_path / "case")])
    capsys.readouterr()
    main.main(["diagnose", str(tmp_path / "case"), "-q"])
    assert "  taken    2023-11-14 22:13:20 UTC" in capsys.readouterr().out
    (tmp_path / "pasted").write_text("#0  poll () from libc.so.6\n#1  main () at a.c:3\n")
    main.main(["diagnose", str(tmp_path / "pasted"), "-q", "--json"])
    assert "read_from" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (Origin(("a",), NOVEMBER, ("n1", "n2")), "Snapshot taken 2023-11-14 22:13:20 UTC, on n1, n2."),
        (Origin(("a",), NOVEMBER - 7300, ("n1",)), "Snapshot taken 2023-11-14 20:11:40 UTC, 2 hours ago, on n1."),
        (Origin(("a",), None, ()), "Snapshot taken at an unknown time, on an unknown host."),
        (Origin(("a",), 1e300, ("n",)), "Snapshot taken at an invalid time, on n."),
        (
            Origin(("a",), NOVEMBER, tuple("abcdef")),
            "Snapshot taken 2023-11-14 22:13:20 UTC, on a, b, c, d and 2 more hosts.",
        ),
        (
            Origin(("c1", "c2"), NOVEMBER - 90_000, (), cores=True),
            "Core files written 2023-11-13 21:13:20 UTC, 1 day ago, on an unknown host (a core file names none).",
        ),
    ],
)
def test_the_line(origin, text):
    assert origin_lines(origin, Style(width=160), now=NOVEMBER) == [text]
