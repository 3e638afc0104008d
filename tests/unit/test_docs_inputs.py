"""The answers in docs/inputs.md and in the README are what gdbext prints today."""

import re
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files
from gdbext.render import Style, render

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"```\n\$ gdbext diagnose -q (\S+)\n(.*?)```", (ROOT / "docs" / "inputs.md").read_text(), re.DOTALL
)

README = (ROOT / "README.md").read_text()
SHORT = re.findall(
    r"\n\n```\n((?:(?!```|\$ gdbext).*\n)+)\$ gdbext diagnose -q (\S+) \| grep '\^  c'\n((?:  c.*\n)+)```", README
)


def printed(path):
    lines = render(judge(parse_files([(path, (ROOT / path).read_bytes())])), Style(width=110))
    return lines[: lines.index("")]


@pytest.mark.parametrize("path, answer", EXAMPLES, ids=[Path(path).stem for path, _ in EXAMPLES])
def test_an_example_is_what_is_printed(path, answer):
    assert printed(path) == answer.splitlines()


def test_the_readme_shows_lines_of_a_file_and_its_answer():
    for shown, path, answer in SHORT:
        lines = iter((ROOT / path).read_text().splitlines())
        for line in shown.splitlines():
            wanted = line[: -len("...")] if line.endswith("...") else line
            assert any(one.startswith(wanted) for one in lines), f"{wanted} is not in {path}, or not in this order"
        assert [line for line in printed(path) if line.startswith("  c")] == answer.splitlines(), path


def test_every_kind_of_text_has_one():
    assert len(EXAMPLES) >= 7
    assert len(SHORT) >= 12 or "One example of each kind" not in README
