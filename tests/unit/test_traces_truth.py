"""`trace diagnose` against jobs of which we know who is late: the figures of docs/traces.md."""

from pathlib import Path

import pytest

from tests.traces.truth import ALL, GENERATED, answer

PAGE = Path(__file__).parents[2] / "docs" / "traces.md"


def test_there_are_enough():
    assert len(GENERATED) == 40 and len(ALL) == 50


@pytest.mark.parametrize("truth", ALL, ids=lambda truth: truth.name)
def test_the_verdict(truth):
    right, wrong_and_sure, diagnosis = answer(truth)
    assert not wrong_and_sure
    if truth.cause == "not-late":
        assert diagnosis.verdict.cause in ("not-late", *truth.also), "a straggler in an even job"
    assert right, diagnosis.verdict.summary


def test_the_page_has_the_answers():
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    for truth in ALL:
        row = next((row for row in rows if row.split("|")[1].strip() == truth.name), None)
        assert row is not None and row.split("|")[2].strip() == truth.cause, truth.name
