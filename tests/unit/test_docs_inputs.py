"""The answers in docs/inputs.md are what gdbext prints today."""

import re
from pathlib import Path

import pytest

from gdbext.analysis.judge import judge
from gdbext.parsers import parse_files
from gdbext.render import Style, render

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"```\n\$ gdbext diagnose -q (\S+)\n(.*?)```", (ROOT / "docs" / "inputs.md").read_text(), re.DOTALL
)


@pytest.mark.parametrize("path, answer", EXAMPLES, ids=[Path(path).stem for path, _ in EXAMPLES])
def test_an_example_is_what_is_printed(path, answer):
    lines = render(judge(parse_files([(path, (ROOT / path).read_bytes())])), Style(width=110))
    assert lines[: lines.index("")] == answer.splitlines()


def test_every_kind_of_text_has_one():
    assert len(EXAMPLES) >= 7
