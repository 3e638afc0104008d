"""Values of the target as plain data."""

import pytest

from tests.gdb.gdbrun import Target, gdb_batch

pytestmark = pytest.mark.gdb

WANTED = {
    "negative": -5,
    "large": (1 << 64) - 1,
    "yes": 1,
    "letter": 65,
    "ratio": "2.5",
    "words": "hello",
    "nothing": 0,
    "buffer": "in place",
    "text": "given",
    "moved": 9,
    "longer": "x" * 256 + "…",
    "mode": "Decode",
    "strange": 77,
    "comm->rank": 6,
    "comm->name": "outer",
    "comm->next->rank": 7,
    "comm->next->next": 0,
    "plain.rank": 1,
    "plain.next->name": "outer",
    "null_comm": 0,
    "bad_pointer": 16,
    "at_edge": "eee",
    "no_end": "e" * 256 + "…",
}
MISSING = {
    "plain": "not a plain value",
    "null_comm->rank": "unreadable: Cannot access memory",
    "bad_text": "unreadable: Cannot access memory",
    "runs_out": "unreadable: Cannot access memory",
    "absent": "no variable absent here",
    "comm->absent": "no member",
}


def test_every_kind(any_gdb):
    names = [*WANTED, *MISSING]
    with Target(source="debugger_values.cpp") as target:
        answer = gdb_batch(
            any_gdb,
            f"attach {target.pid}",
            "python import json; from gdbext.inside_gdb.base.values import read_variable as read",
            "python from gdbext.model.snapshot_files.codec import encode",
            "frame function look",
            "python frame = gdb.selected_frame()",
            f"python print(json.dumps({{name: encode(read(frame, name)) for name in {names!r}}}))",
        )
        assert target.status("TracerPid") == "0"
    (found,) = answer.documents
    assert {name: found[name] for name in WANTED} == WANTED
    for name, reason in MISSING.items():
        assert reason in found[name]["missing"], (name, found[name])
        assert "\n" not in found[name]["missing"]
