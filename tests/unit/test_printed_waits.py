"""Waits that a text tells in words: lock files, circles of locks that a runtime prints, GPUs that do not go on, ends of
programs, stacks of the kernel's GPU drivers. Each law beside texts that look alike and prove nothing."""

import re
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

TEXTS = Path(__file__).resolve().parents[1] / "data" / "printed-waits.txt"


def _cases():
    for block in re.split(r"^@@ ", TEXTS.read_text(), flags=re.MULTILINE)[1:]:
        head, text = block.split("\n", 1)
        name, answer = head.split(" | cause=")
        yield pytest.param(text, answer, id=name)


@pytest.mark.parametrize("text, answer", list(_cases()))
def test_the_cause_is_told_as_surely_as_the_text_shows_it(text, answer):
    """`none`: nothing in it tells of anything."""
    snapshot = parse_files([("pasted.txt", text.encode())])
    verdict = judge(snapshot).verdict
    if answer == "none":
        assert not snapshot.processes
        assert verdict.cause == "unknown"
    else:
        assert f"{verdict.cause}, {verdict.confidence}" == answer


def test_whoever_waits_for_a_lock_file_is_told_how_to_find_its_holder():
    for case in _cases():
        text, answer = case.values
        if case.id.startswith("lockfile") and answer.startswith("other"):
            verdict = judge(parse_files([("pasted.txt", text.encode())])).verdict
            assert any("gdbext locks" in one.action or "fuser -v" in one.action for one in verdict.remedies), case.id
