"""The answers in docs/inputs.md and in the README are what gdbext prints today.

GDBEXT_REWRITE_DOCS=1 writes them anew, for review.
"""

import os
import re
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.typed import BRIEF, Typed
from gdbext.parsers import parse_files
from gdbext.render import Style, render

ROOT = Path(__file__).parents[2]
INPUTS, README = ROOT / "docs" / "inputs.md", ROOT / "README.md"
_ANSWER = re.compile(r"^\$ gdbext diagnose -q --brief (tests/\S+)\n((?:.+\n)*?)(?=```)", re.MULTILINE)
_SHOWN = re.compile(r"```\n((?:(?!```|\$ ).*\n)+)\$ gdbext diagnose -q --brief (tests/\S+)\n")


def printed(path):
    style = Style(width=110, typed=Typed(BRIEF, "gdbext diagnose", "gdbext stacks", path))
    return render(judge(parse_files([(path, (ROOT / path).read_bytes())])), style)


def examples(page):
    return _ANSWER.findall(page.read_text("utf-8"))


@pytest.fixture(scope="module", autouse=True)
def rewritten():
    if os.environ.get("GDBEXT_REWRITE_DOCS"):
        for page in (INPUTS, README):
            text = page.read_text("utf-8")
            for path, answer in examples(page):
                command = f"$ gdbext diagnose -q --brief {path}\n"
                text = text.replace(command + answer, command + "\n".join(printed(path)) + "\n")
            page.write_text(text, "utf-8")


@pytest.mark.parametrize("page", [INPUTS, README], ids=["inputs", "readme"])
def test_an_example_is_what_is_printed(page):
    for path, answer in examples(page):
        assert printed(path) == answer.splitlines(), path


def test_the_readme_shows_lines_of_a_file_before_its_answer():
    for shown, path in _SHOWN.findall(README.read_text("utf-8")):
        lines = iter((ROOT / path).read_text().splitlines())
        for line in shown.splitlines():
            wanted = line[: -len("...")] if line.endswith("...") else line
            assert any(one.startswith(wanted) for one in lines), f"{wanted} is not in {path}, or not in this order"


def test_every_kind_of_text_has_one():
    assert len(examples(INPUTS)) >= 7
    assert len(examples(README)) >= 12 or "One example of each kind" not in README.read_text("utf-8")
