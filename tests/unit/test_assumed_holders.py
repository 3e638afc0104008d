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


AGAIN = """#0  0x00007f01 in __lll_lock_wait () from /lib/libpthread.so.0
#1  0x00007f02 in pthread_mutex_lock () from /lib/libpthread.so.0
#2  0x00007f03 in table_init () at /src/table.c:40
#3  0x00007f04 in {0} (sig={1}, info=0x7ffd10) at /src/handler.c:9
#4  <signal handler called>
#5  0x00007f05 in memset () from /lib/libc.so.6
#6  0x00007f06 in table_init () at /src/table.c:51
#7  0x00007f07 in main () at /src/main.c:3
"""


@pytest.mark.parametrize(
    ("handler", "number", "told", "advised"),
    [
        ("perf_event_handler", "38", "Signal 38 interrupted it", "Run without the profiler"),
        ("on_fault_handler", "11", "Signal 11 (SIGSEGV) interrupted it", "Do not allocate memory"),
        ("on_fault_handler", "<optimized out>", "A signal interrupted it", "Do not allocate memory"),
    ],
)
def test_a_lock_taken_again_in_a_handler_is_told_with_the_signal_and_what_it_interrupted(
    handler, number, told, advised
):
    verdict = judge(_read(AGAIN.format(handler, number))).verdict
    assert verdict.cause == "lock-order-deadlock"
    assert f"{told} in table_init (table.c:51); its handler, {handler} (handler.c:9), asked for" in verdict.summary
    assert verdict.remedies[0].action.startswith(advised)
