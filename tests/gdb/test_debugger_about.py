"""llm-doctor: what of this gdb stands in the way."""

import pytest

from tests.conftest import can_call
from tests.gdb.gdbrun import gdb_batch

pytestmark = pytest.mark.gdb

OF_THE_MACHINE = ("calls", "GPU memory")
"""Warnings that no setting removes: the processor, and a gdb that is no cuda-gdb."""


def test_a_gdb_that_can_call_nothing_on_this_processor_is_named(any_gdb):
    (document,) = gdb_batch(any_gdb, "llm-doctor --gdb --json").documents
    named = [point for point in document["points"] if point["name"] == "calls"]
    assert bool(named) != can_call(any_gdb) and all("AMX" in point["text"] for point in named)


def test_the_way_to_gpu_memory_is_one_that_works(any_gdb):
    """Calls are no way out of a gdb that can call nothing here, and nothing is left to do once they are allowed."""
    before, after = (
        next(point for point in document["points"] if point["name"] == "GPU memory")
        for document in gdb_batch(
            any_gdb, "llm-doctor --gdb --json", "set llm allow-calls on", "llm-doctor --gdb --json"
        ).documents
    )
    assert before["state"] == "warning" and "--gpu-core FILE" in before["remedy"]
    assert ("allow-calls" in before["remedy"]) == can_call(any_gdb)
    assert (after["state"] == "ok") == can_call(any_gdb), after


def test_settings_that_do_harm_are_named_with_the_way_out(any_gdb):
    answer = gdb_batch(
        any_gdb, "llm-doctor --gdb --json", "set non-stop on", "llm-doctor --gdb --json", "llm-doctor --gdb"
    )
    before, after = (
        [point for point in document["points"] if point["state"] != "ok" and point["name"] not in OF_THE_MACHINE]
        for document in answer.documents
    )
    assert before == []
    (harm,) = after
    assert harm["state"] == "warning"
    assert "non-stop is on" in harm["text"] and harm["remedy"] == "set non-stop off"
    assert "> set non-stop off" in answer.out and "Ready: no problems found" in answer.out


def test_a_build_and_how_to_build_it_are_told_without_a_process(turn_gdb):
    answer = gdb_batch(turn_gdb, "llm-doctor --build /bin/true --json", "llm-doctor --how vllm", "llm-doctor --build /")
    (document,) = answer.documents
    assert document["files"][0]["path"] == "/bin/true" and document["files"][0]["symbols"] in (
        "exported",
        "none",
        "all",
    )
    assert "NVCC_APPEND_FLAGS=-lineinfo" in answer.out and "it is a folder" in answer.out + answer.err
