"""`--html FILE` of gdb's commands."""

import os

import pytest

from tests.gdb.gdbrun import Target, gdb_batch

pytestmark = pytest.mark.gdb


def test_the_page_of_attached_ranks_has_what_was_asked_before(turn_gdb, tmp_path):
    page = tmp_path / "hang.html"
    with Target("threads", 3) as one:
        answer = gdb_batch(
            turn_gdb,
            f"llm-attach-all {one.pid}",
            "llm-stream list",
            f"llm-nccl-diagnose --html {page}",
            "llm-locks --html -",
            "llm-detach-all",
        )
    assert f"page written to {page}" in answer.err
    assert page.stat().st_mode & 0o777 == 0o600
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and f"pid {one.pid}" in text and "held by this gdb" in text
    assert '<section id="asked"' in text and "<code>llm-stream list</code>" in text
    _, start, shown = answer.out.partition("<!DOCTYPE html>")
    assert start and "</html>" in shown, "the page alone of what has -"
    assert not os.path.exists("-")


def test_a_look_from_outside_and_a_name_that_is_taken(turn_gdb, tmp_path):
    page = tmp_path / "hang.html"
    with Target("threads", 2) as one:
        answer = gdb_batch(turn_gdb, f"llm-stacks {one.pid} --html {page}", f"llm-stacks {one.pid} --html {page}")
    text = page.read_text("utf-8")
    assert text.index('id="stacks"') < text.index('id="ranks"'), "what was asked comes first"
    assert f"{page} exists" in answer.err
