"""Short texts in the ways of many tools and engines: what an engineer sees in them is what is answered."""

import re
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

FOLDER = Path(__file__).parents[1] / "data" / "dialects"


def cases():
    for path in sorted(FOLDER.glob("*.txt")):
        for block in re.split(r"^@@ ", path.read_text(), flags=re.MULTILINE)[1:]:
            head, text = block.split("\n", 1)
            name, *expected = (part.strip() for part in head.split("|"))
            yield pytest.param(text, dict(one.split("=", 1) for one in expected), id=name)


@pytest.mark.parametrize(("text", "expected"), list(cases()))
def test_a_dialect(text, expected):
    answer = judge(parse_files([("dialect.txt", text.encode())]))
    verdict = answer.verdict
    index = verdict.decisive_process
    threads = answer.snapshot.processes[index].threads if index is not None else ()
    judged = answer.processes[index].threads if index is not None else ()
    kind = next((one.kind for thread, one in zip(threads, judged) if thread.id == verdict.decisive_thread), None)
    assert str(kind) in expected["wait"].split(",")
    assert verdict.cause in expected["cause"].split(","), verdict.summary
    assert verdict.confidence in expected.get("conf", "high,medium,low").split(",")
