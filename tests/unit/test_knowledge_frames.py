"""The rows hold together: labels exist, patterns compile, every row says where it comes from."""

import re
from collections import Counter

import pytest

from gdbext.analysis.stacks.thread_kind import rules_matching
from gdbext.knowledge.causes.remedies import REMEDIES
from gdbext.knowledge.frame_precedence import NAMED
from gdbext.knowledge.frames import EMPTY_NAMES, MESSAGES, RULES, THREAD_NAMES
from gdbext.knowledge.labels import CAUSES, WAIT_GROUPS, WAIT_KINDS
from tests.unit.stacks import frame

COLLECTIVES = {
    "all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "all_to_all", "gather", "scatter", "barrier",
    "send", "recv", "send_recv",
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_frame_rule_is_well_formed(rule):
    assert rule.kind in WAIT_KINDS
    assert rule.source
    assert rule.language in ("native", "python")
    assert rule.collective is None or rule.collective in COLLECTIVES
    for pattern in (rule.function, rule.module, rule.file, rule.under, rule.caller):
        re.compile(pattern)
    assert rule.language == "python" or not rule.file or not rule.function  # a library, by its files


def test_every_kind_of_wait_has_a_row():
    assert {rule.kind for rule in (*RULES, *MESSAGES)} >= set(WAIT_KINDS) - {"unknown"}
    assert set(WAIT_GROUPS) == set(WAIT_KINDS)


def test_ids_are_shared_only_by_variants_of_one_call():
    shared = {id for id, count in Counter(rule.id for rule in RULES).items() if count > 1}
    for id in shared:
        rules = [rule for rule in RULES if rule.id == id]
        assert len({(rule.kind, rule.collective) for rule in rules}) == 1, id


def test_other_rows():
    for row in (*EMPTY_NAMES, *THREAD_NAMES, *MESSAGES, *REMEDIES):
        assert row.source
    for rule in REMEDIES:
        assert rule.cause in CAUSES
        assert set(rule.kinds) <= set(WAIT_KINDS)
        assert rule.reason and rule.action


def test_every_cause_that_a_pattern_gives_has_advice():
    without = set(CAUSES) - {rule.cause for rule in REMEDIES}
    assert without <= {"not-a-hang", "other", "network-transport", "p2p-or-topology"}


@pytest.mark.parametrize(
    "name",
    [
        "recv_requests@engine",
        "read_weights@engine",
        "sleep_until_ready@engine",
        "Reader::poll_all@engine",
        "selected@engine",
    ],
)
def test_words_of_the_c_library_inside_names_of_an_engine_mean_little(name):
    assert all(rule.rank <= NAMED for rule in rules_matching(frame(name)))


def test_collectives_of_nccl_ask_for_their_arguments():
    wanted = {name for rule in rules_matching(frame("ncclAllReduce@libnccl.so.2")) for name in rule.captures}
    assert {"comm", "count", "datatype", "comm->commHash"} <= wanted
