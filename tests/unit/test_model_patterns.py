"""Expressions compiled late: the same answers as `re`, and no beginning that a match could lack."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gdbext.knowledge.frames import RULES
from gdbext.knowledge.frames.system import code_owners
from gdbext.knowledge.log_lines import LOG_RULES
from gdbext.model.text.patterns import literal_prefixes, regex

KNOWN = sorted(
    {rule.function for rule in RULES}
    | {rule.under for rule in RULES if rule.under}
    | {rule.pattern for rule in LOG_RULES}
    | {text for name, text in vars(code_owners).items() if name.isupper() and isinstance(text, str)}
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p?nccl", ("p", "nccl")),
        ("_*(GI_)?_*read", ("_", "GI_", "_", "read")),
        ("cu(da)?Stream(Query|Synchronize)$", ("cu",)),
        ("(cuda(Malloc|Free)|cuMem)", ("cuda", "cuMem")),
        ("[ab]c|d", ("a", "b", "d")),
        ("ab?c", ("a",)),
        ("ab+c", ("ab",)),
        ("a{0,2}b", ("a", "b")),
        ("(?i:mpi_|x)", ("m", "M", "x", "X")),
        ("a|", ()),
        ("(a?)b|c", ()),
        ("[^a]", ()),
        (r"\w+::f", ()),
        (r"a|\bfoo", ()),
        ("(?!x)y", ()),
        ("", ()),
    ],
)
def test_beginnings(text, expected):
    assert literal_prefixes(text) == expected


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_match_without_a_beginning(data):
    text = data.draw(st.sampled_from(KNOWN))
    starts = literal_prefixes(text)
    example = data.draw(st.from_regex(text)) if starts else ""
    found = re.match(text, example)
    if found and starts:
        assert example.startswith(starts)


def _grow(inner):
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{0,2}", "??"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    )


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.recursive(st.sampled_from("ab_:"), _grow), st.text("ab_:", max_size=6))
def test_made_up_expressions(text, string):
    starts = literal_prefixes(text)
    found = re.match(text, string)
    assert not (found and starts) or string.startswith(starts)
    assert bool(regex(text).match(string)) == bool(found)


def test_it_is_a_pattern():
    late = regex(r"(?P<rank>\d+):", re.IGNORECASE)
    assert late.pattern == r"(?P<rank>\d+):"
    assert late.groups == 1
    match = late.match("12: x", 0)
    assert match is not None
    assert match.group("rank") == "12"
    assert late.sub("-", "12:3:") == "--"
    assert regex("ab").match("ab").span() == (0, 2)
    assert regex("ab").match("xab", 1).span() == (1, 3)
    assert regex("ab").match("ba") is None
    with pytest.raises(re.error):
        regex("a(").search("a")
