"""Every open labelled text is answered as it was: `scripts/bench judges --pin` writes what is expected."""

import json

import pytest

from tests.bench.judges import PINNED, answer, cases

CASES = {f"{case.set}/{case.name}": case for case in cases()}
EXPECTED = json.loads(PINNED.read_text())


def test_every_case_is_pinned_once():
    assert set(CASES) == set(EXPECTED)
    assert len(CASES) == sum(1 for _ in cases()) > 300


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_answer_is_as_it_was(name):
    """Cause, confidence, deciding process and thread, culprits."""
    assert json.loads(json.dumps(answer(CASES[name]))) == EXPECTED[name]
