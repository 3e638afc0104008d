"""Pasted stacks as the field has them: the wait, the thread that explains it, and never a wrong cause said surely."""

import json
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

FIELD = Path(__file__).parents[1] / "data" / "field"
LABELS = json.loads((FIELD / "labels.json").read_text())


@pytest.fixture(scope="module")
def answers():
    return {name: judge(parse_files([(f"{name}.txt", (FIELD / f"{name}.txt").read_bytes())])) for name in LABELS}


@pytest.mark.parametrize("name", LABELS)
def test_wait_and_decisive_thread(name, answers):
    truth, answer = LABELS[name], answers[name]
    index = truth["process"]
    threads = zip(answer.snapshot.processes[index].threads, answer.processes[index].threads)
    kinds = [one.kind for thread, one in threads if thread.id.lower() == truth["thread"].lower()]
    assert kinds and kinds[0] in truth["wait"]
    verdict = answer.verdict
    assert (verdict.decisive_process, verdict.decisive_thread) == (truth["process"], truth["thread"])


@pytest.mark.parametrize("name", LABELS)
def test_the_cause_is_right_or_left_open(name, answers):
    truth, verdict = LABELS[name], answers[name].verdict
    assert verdict.cause in (*truth["cause"], "unknown"), verdict.summary
    if verdict.confidence == "high":
        assert verdict.cause in truth["cause"]


def test_most_sure_causes_are_found(answers):
    sure = [name for name, truth in LABELS.items() if truth["sure"]]
    found = [name for name in sure if answers[name].verdict.cause in LABELS[name]["cause"]]
    assert len(sure) >= 15 and len(found) >= 0.9 * len(sure)


def test_every_file_has_a_label():
    assert {path.stem for path in FIELD.glob("*.txt")} == set(LABELS)
