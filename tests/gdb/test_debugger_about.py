"""llm-doctor: what of this gdb stands in the way."""

import pytest

from tests.conftest import can_call
from tests.gdb.gdbrun import gdb_batch

pytestmark = pytest.mark.gdb


def test_a_gdb_that_can_call_nothing_on_this_processor_is_named(any_gdb):
    (document,) = gdb_batch(any_gdb, "llm-doctor --gdb --json").documents
    named = [point for point in document["points"] if point["name"] == "calls"]
    assert bool(named) != can_call(any_gdb) and all("AMX" in point["text"] for point in named)


def test_settings_that_do_harm_are_named_with_the_way_out(any_gdb):
    answer = gdb_batch(
        any_gdb, "llm-doctor --gdb --json", "set non-stop on", "llm-doctor --gdb --json", "llm-doctor --gdb"
    )
    before, after = answer.documents
    assert all(point["state"] == "ok" for point in before["points"] if point["name"] != "calls")
    (harm,) = (point for point in after["points"] if point["state"] == "warning" and point["name"] != "calls")
    assert "non-stop is on" in harm["text"] and harm["remedy"] == "set non-stop off"
    assert "> set non-stop off" in answer.out and ("Nothing stands in the way" in answer.out or not can_call(any_gdb))
