"""Every label can be explained: how it is recognised, why it happens, what to do, where it was reported."""

import inspect
import re

import pytest

from gdbext.analysis.causes import causes_in_logs, watchdog_logs
from gdbext.analysis.communicators import launch_counts
from gdbext.analysis.failures import failed_check
from gdbext.analysis.progress import healthy, pool_tasks
from gdbext.analysis.progress.idle import at_rest, keeps_running, works_inside
from gdbext.analysis.progress.own_hangs import (
    background_collectives,
    blocked_signals,
    dead_children,
    engine_requests,
    engine_start,
    in_debugger,
    kept_gil,
    loop_tasks,
    no_room,
    polls_alone,
    results_elsewhere,
    stops_in_vain,
    taken_further_out,
    unanswered_requests,
)
from gdbext.analysis.stacks.thread_kind import Judged
from gdbext.analysis.waits import changing_hands
from gdbext.analysis.waits.facts_beside_stacks import PATTERNS
from gdbext.cli.main import main
from gdbext.commands.explain import LABELS, explain
from gdbext.knowledge.causes.remedies import REMEDIES
from gdbext.knowledge.causes.signatures import SIGNATURES
from gdbext.knowledge.causes.typical_calls import TYPICAL_CALLS
from gdbext.knowledge.causes.wait_causes import CAUSES as ROWS
from gdbext.knowledge.labels import CAUSES, WAIT_KINDS
from gdbext.knowledge.log_lines import LOG_RULES
from gdbext.model.errors import USAGE, UsageError
from gdbext.model.stack import ThreadStack
from gdbext.model.waits import STATES, shown_kind
from gdbext.traces import late_verdict
from tests.unit.stacks import frame

# Issues of the table of hang signatures: each is the source of some row.
REPORTED = (
    "nccl#48", "nccl#750", "nccl#857", "nccl#1766", "nccl#1260", "nccl#829", "vllm#46097", "vllm#8410", "vllm#27313",
    "vllm#46509", "torchcomms PR#2334", "Fuser#3055", "syv-ai#107", "home-ops#13342", "pytorch#880",
)  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_complete(label):
    one = explain(label)
    assert one.meaning and one.sources and all(sign.text and sign.source for sign in one.signs)
    if one.sort == "cause":
        assert one.signs and one.remedies
        assert all(sign.reason for sign in one.signs)


def test_every_wait_with_a_rule_says_which_frames():
    for kind in set(WAIT_KINDS) - {"unknown"}:
        assert explain(kind).signs, kind
    assert "cudaMallocHost, cudaHostAlloc" in explain("pinned-host-alloc").signs[0].text
    assert all(sign.text.strip("* ") for label in WAIT_KINDS for sign in explain(label).signs)


def test_typical_calls_are_of_their_wait():
    """A thread that has nothing but this call on its stack."""
    assert set(TYPICAL_CALLS) == set(WAIT_KINDS) - {"unknown", "sigbus"}
    for kind, calls in TYPICAL_CALLS.items():
        for call in calls:
            file, _, name = call.rpartition(".py: ")
            one = frame(f"{name}@/lib/{file}.py:3") if file else frame(call)
            assert Judged().of(ThreadStack("1", (one,)), None, ()).kind == kind, call


def test_conditions_stand_before_the_advice():
    first, *others = (one.action for one in explain("shm-too-small").remedies)
    assert first.startswith("Check how full /dev/shm is (df -h /dev/shm)")
    assert all(one.startswith("If /dev/shm is not full: check ") for one in others)
    told = [one.action for one in explain("unknown").remedies]
    assert told[0].startswith(
        "If you pasted stacks and cuda-gdb printed the stack of a GPU kernel: look for a rank that has not started"
    )
    assert told[2].startswith(
        "If you pasted stacks, the wait is mutex and the thread waits in the Linux kernel: look in dmesg -T for other "
        "blocked tasks at the same time"
    )
    assert told[5].startswith("If the process has ended (exited-or-crashed) and the stack is a Python traceback: in ")
    assert any(one.startswith("If you pasted stacks and the wait is not exited-or-crashed, sigbus or ") for one in told)
    assert any(
        one.startswith("If you pasted stacks and helper threads alone were read: dump all threads") for one in told
    )


def test_labels_of_the_contract():
    assert set(LABELS) == {*CAUSES, *WAIT_KINDS, *map(shown_kind, WAIT_KINDS), *STATES}
    assert {one.cause for one in SIGNATURES} == set(CAUSES)
    assert {one.cause for one in REMEDIES} == set(CAUSES)


_ROOMS = (
    at_rest,
    keeps_running,
    background_collectives,
    blocked_signals,
    dead_children,
    no_room,
    polls_alone,
    results_elsewhere,
    stops_in_vain,
    engine_requests,
    engine_start,
    unanswered_requests,
    in_debugger,
    kept_gil,
    taken_further_out,
    loop_tasks,
    pool_tasks,
    works_inside,
    failed_check,
    healthy,
    launch_counts,
    late_verdict,
    changing_hands,
    causes_in_logs,
    watchdog_logs,
)


def test_signatures_name_the_rows_and_patterns_that_look_for_them():
    named = {name for one in SIGNATURES for name in one.found_by}
    rows = {row.id for row in ROWS}
    mine = {name for room in _ROOMS for name, _ in inspect.getmembers(room, inspect.isfunction)}
    assert named <= mine | rows
    ours = {one.__name__ for one in PATTERNS if one.__module__ in {room.__name__ for room in _ROOMS}}
    assert ours | rows <= named


def test_a_row_speaks_of_its_cause():
    for row in ROWS:
        own = {name for one in SIGNATURES if one.cause == row.cause for name in one.found_by}
        assert row.id in own, row.id
        assert row.cause in CAUSES and row.source


@pytest.mark.parametrize("issue", REPORTED)
def test_reported_signatures_have_a_row(issue):
    sources = " ; ".join(source for label in LABELS for source in explain(label).sources)
    project, _, number = issue.partition("#")
    assert re.search(rf"{re.escape(project)}\S*[^;]*(#|, #){number}\b|{re.escape(issue)}", sources), issue


@pytest.mark.parametrize("rule", LOG_RULES, ids=lambda rule: rule.id)
def test_log_rules(rule):
    re.compile(rule.pattern)
    assert rule.source and rule.means
    assert not rule.cause or rule.cause in CAUSES
    assert rule.confidence in ("low", "medium", "high")


def test_a_wait_names_the_deadlock_that_it_is_the_sign_of():
    """The advice holds whatever the culprit waits in, so that its rows name no waits."""
    gil = explain("gil")
    assert gil.related[0] == "gil-deadlock"
    assert "find the thread that holds the GIL" in gil.remedies[0].action
    assert "release the GIL around the native call" in gil.remedies[1].action
    assert {"lock-order-deadlock", "gil-deadlock"} <= set(explain("mutex").related)
    assert {"gil", "mutex"} <= set(explain("gil-deadlock").related)


def test_an_unknown_label_names_near_ones():
    with pytest.raises(UsageError, match="Did you mean 'gil-deadlock'"):
        explain("gil-dead")


def test_the_command_line(capsys):
    assert main(["explain", "shm-too-small"]) == 0
    printed = capsys.readouterr().out
    for heading in ("How it is recognised", "Why it happens", "What to do", "Sources"):
        assert heading in printed
    assert main(["explain"]) == 0
    printed = capsys.readouterr().out
    assert all(label in printed for label in LABELS)
    assert main(["explain", "nonsense"]) == USAGE
    assert main(["explain", "gil", "--json"]) == 0
    assert '"sort": "wait"' in capsys.readouterr().out


def test_patterns_are_shown_as_names_without_their_marks():
    texts = [sign.text for label in WAIT_KINDS for sign in explain(label).signs]
    assert not [text for text in texts if set(text) & set("?[]\\^$|\0\1\2") or "**" in text]
    assert any(text.startswith("drop_gil, PyEval_HandlePending") for text in texts)


def test_a_label_may_be_typed_as_people_write_it():
    assert explain("GIL") == explain("gil")
    assert explain("Lock_Order_Deadlock").label == "lock-order-deadlock"
