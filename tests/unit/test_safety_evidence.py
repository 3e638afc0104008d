"""Witnesses that lie: what they say has the right form, and costs neither memory nor time nor the screen."""

import json
import pickle
import struct
import subprocess
import sys
import time

import pytest

from gdbext.model import plain_pickle
from gdbext.model.text.ranges import ranges_text
from gdbext.witnesses import bounded_json, flight_recorder, ras_json, ras_text
from gdbext.witnesses.question import Asked, Question

BY_PID = {number: Asked(number, number, number) for number in range(4)}
SOON = 60.0


def document(rows, **more):
    return json.dumps({"nccl_version": "2.28.9", "communicators": [{"hash": "0x1", "size": 2, "ranks": rows}], **more})


def counted(**counts):
    return {"rank": 0, "pid": 1, "host": "127.0.0.1", "collective_counts": counts}


LONG = "a" * (4 << 20)
HOSTILE = {
    "an operation of 4 MB": document([counted(**{LONG: 1}), counted(**{LONG: 2})] * 8),
    "a million operations": document([counted(**{f"o{n}": n for n in range(200_000)}), counted(x=1)]),
    "names that are lists": document([{"rank": [1] * 1000, "status": {"async_error": 3}}]),
    "a million troubles": document([{"rank": 1, "status": {"async_error": 3}}] * 100_000),
    "a rank beyond all numbers": document([{**counted(a=1), "rank": 10**30}, {**counted(a=1), "rank": -5}]),
    "a version of 4 MB": document([], nccl_version=LONG),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_document_of_the_right_form_says_no_more_than_lines(text):
    begun = time.monotonic()
    about, said = ras_json.statements(text, BY_PID)
    assert time.monotonic() - begun < SOON
    assert len(about) < 200 and len(said) <= ras_json._MOST_STATEMENTS
    assert all(len(one.text) < 1000 for one in said)


@pytest.mark.parametrize(
    "text",
    [
        '{"communicators": [{"size": ' + "9" * 1_000_000 + "}]}",
        '{"communicators": [' + "[]," * 2_000_000 + "[]]}",
        '{"communicators": [' + "1," * 4_000_000 + "1]}",
        '{"communicators": ' + "[" * 400_000,
        '{"communicators": [{"ranks": [' + '{"a":' * 100_000,
    ],
    ids=["digits", "lists", "numbers", "depth", "depth of objects"],
)
def test_what_would_cost_too_much_is_not_parsed(text):
    begun = time.monotonic()
    with pytest.raises(ValueError, match=r"number|values|deeply|Expecting|delimiter"):
        ras_json.statements(text, BY_PID)
    assert time.monotonic() - begun < SOON


def test_a_real_size_is_no_trap():
    """1,024 ranks in ten communicators."""
    rows = [{**counted(AllReduce=5, AllGather=7), "rank": number, "pid": number} for number in range(1024)]
    text = json.dumps({"communicators": [{"hash": f"{at}", "size": 1024, "ranks": rows} for at in range(10)]})
    about, said = ras_json.statements(text, {})
    assert about.endswith("10 communicators") and said[0].text.startswith(f"ranks {ranges_text(range(1024))} of")


def test_a_text_of_the_right_form_says_no_more_than_lines():
    lines = ["NCCL version 2.26.2", "#0-0 (feed) MISMATCH", "  Communicator ranks have different counts"]
    lines += ["  3 ranks have launched up to operation " + "9" * 100_000, "  Rank 1 has launched up to operation 41"]
    lines += ["#0-1 (feed) ERROR", "  Rank 7 " + "x" * 1_000_000]
    begun = time.monotonic()
    _, said = ras_text.statements("\n".join(lines), BY_PID)
    assert time.monotonic() - begun < SOON and all(len(one.text) < 1000 for one in said)


def dump_of(value, folder):
    (folder / "9" / "root").mkdir(parents=True)
    (folder / "9" / "root" / "dump_0").write_bytes(value)
    asked = Asked(0, 9, 0, None, {"TORCH_FR_DUMP_TEMP_FILE": "/dump_"})
    return flight_recorder.ask(Question((asked,), time.monotonic() + 60, str(folder)))


def paired(levels):
    """A dump whose every field is a tree of nested pairs, both halves of each the same object: some bytes a level."""
    tree = b"K\x01q\x00" + b"".join(b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(levels))
    text = b"".join(b"X" + struct.pack("<I", len(name)) + name + b"h" + bytes([levels]) for name in FIELDS)
    entries = b"X\x07\x00\x00\x00entries](}(" + text + b"ue"
    status = b"X\x09\x00\x00\x00pg_status}(X\x01\x00\x00\x000}(" + text + b"uu"
    return b"\x80\x02}(X\x04\x00\x00\x00tree" + tree + entries + status + b"u."


FIELDS = (
    *(b"process_group", b"collective_seq_id", b"profiling_name", b"is_p2p", b"last_enqueued_collective"),
    *(b"last_started_collective", b"last_completed_collective"),
)


def test_a_tree_that_doubles_with_every_level_is_never_gone_through(tmp_path):
    """As text it had 2**200 characters."""
    tree = plain_pickle.loads(paired(200))
    assert (
        set(tree) == {"tree", "entries", "pg_status"}
        and tree["entries"][0]["is_p2p"][0] is tree["entries"][0]["is_p2p"][1]
    )
    begun = time.monotonic()
    witness = dump_of(paired(200), tmp_path)
    assert time.monotonic() - begun < SOON
    assert witness.state == "present" and all(len(one.text) < 1000 for one in witness.statements)


MEASURED = """
import sys
from gdbext.witnesses import bounded_json
from gdbext.model import plain_pickle
data = {data}
try:
    {read}(data)
except ValueError as error:
    print("refused", error)
import resource
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) >> 10)
"""
COSTLY = {
    "empty lists": ("b'(' + b']' * (16 << 20)", "plain_pickle.loads"),
    "empty dicts": ("b'(' + b'}' * (16 << 20)", "plain_pickle.loads"),
    "a memo": ("b'N' + bytes([0x94]) * (16 << 20)", "plain_pickle.loads"),
    "lists in JSON": ("b'[' + b'[],' * (5 << 20) + b'1]'", "bounded_json.loads"),
    "objects in JSON": ("b'[' + b'{},' * (5 << 20) + b'1]'", "bounded_json.loads"),
}


@pytest.mark.process
@pytest.mark.parametrize(("data", "read"), COSTLY.values(), ids=COSTLY)
def test_sixteen_megabytes_become_no_gigabyte(data, read):
    argv = [sys.executable, "-c", MEASURED.format(data=data, read=read)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("refused"), done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) < 300, "MiB"


def test_dumps_of_a_real_size_are_read():
    entry = dict.fromkeys(map(str, range(30)), "nccl:all_reduce")
    document = {"entries": [entry] * 2000, "pg_status": {}}
    assert plain_pickle.loads(pickle.dumps(document, protocol=2)) == document
    assert bounded_json.loads(json.dumps(document)) == document
