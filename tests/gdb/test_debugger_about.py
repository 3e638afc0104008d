"""llm-doctor: what of this gdb stands in the way."""

import pytest

from tests.gdb.gdbrun import gdb_batch

pytestmark = pytest.mark.gdb


def test_settings_that_do_harm_are_named_with_the_way_out(any_gdb):
    answer = gdb_batch(
        any_gdb, "llm-doctor --gdb --json", "set non-stop on", "llm-doctor --gdb --json", "llm-doctor --gdb"
    )
    before, after = answer.documents
    assert all(point["state"] == "ok" for point in before["points"])
    (harm,) = (point for point in after["points"] if point["state"] == "warning")
    assert "non-stop is on" in harm["text"] and harm["remedy"] == "set non-stop off"
    assert "> set non-stop off" in answer.out and "Nothing stands in the way" in answer.out
