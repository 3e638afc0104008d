"""Holders that frames give away, and faults of a process's own: texts of software that no row knows, each beside others
that look alike and prove nothing. Most were written before the rules, and all before these were run on them."""

import re
from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.codes import Given
from gdbext.parsers import parse_files

TEXTS = Path(__file__).resolve().parents[1] / "data" / "assumed-holders.txt"


def _cases():
    for block in re.split(r"^@@ ", TEXTS.read_text(), flags=re.MULTILINE)[1:]:
        head, text = block.split("\n", 1)
        name, answer = head.split(" | cause=")
        yield pytest.param(text, tuple(answer.split(", ")), id=name)


@pytest.mark.parametrize("text, answer", list(_cases()))
def test_the_cause_is_told_as_surely_as_the_text_shows_it(text, answer):
    snapshot = parse_files([("pasted.txt", text.encode())])
    assert snapshot.processes and snapshot.processes[0].given is Given.TEXT
    verdict = judge(snapshot).verdict
    assert (verdict.cause, verdict.confidence) == answer


def _chain(name):
    text = next(case.values[0] for case in _cases() if case.id == name)
    return [(edge.kind, edge.target.kind, edge.strength) for edge in judge(_read(text)).verdict.chain]


def _read(text):
    return parse_files([("pasted.txt", text.encode())])


def test_a_join_leads_to_the_thread_that_wants_the_lock_of_the_one_that_joins():
    assert _chain("join-1") == [
        ("mutex", "lock", "named"),
        ("holds", "thread", "assumed"),
        ("condvar-idle", "rank", "assumed"),
    ]


def test_a_lock_that_is_asked_for_again_leads_back_to_its_owner():
    assert _chain("recur-1") == [("mutex", "lock", "named"), ("holds", "rank", "assumed")]


def test_whoever_keeps_the_gil_need_not_be_in_the_text():
    assert _chain("gil-3") == [("gil", "lock", "named"), ("kept", "thread", "assumed")]


def test_locks_that_a_runtime_prints_are_edges_of_their_own():
    kinds = _chain("java-3")
    assert [kind for kind, _, _ in kinds] == ["mutex", "holds"] * 3
    assert {strength for _, _, strength in kinds} == {"named"}
