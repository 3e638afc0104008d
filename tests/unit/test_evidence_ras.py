"""NCCL's status service: the conversation with every kind of listener, and what both forms of its answer say."""

import contextlib
import json
import os
import socket
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.witnesses import ras, ras_json, ras_text
from gdbext.witnesses.question import Asked, Question

KEYS = (
    *("hash", "size", "ranks", "missing_ranks", "rank", "host", "pid", "status", "async_error", "abort_flag"),
    *("considered_dead", "unresponsive", "collective_counts", "AllReduce"),
)


def rank(number, count, pid, **status):
    return {
        "rank": number,
        "host": "127.0.0.1",
        "pid": pid,
        "cuda_dev": number,
        "nvml_dev": number,
        "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "abort_flag": False, **status},
        "collective_counts": {"AllReduce": count, "Broadcast": 1},
    }


def document(*ranks, missing=(), size=None):
    one = {
        "hash": "0xfeed",
        "secondary_hash": "0x1:0x2",
        "size": size or len(ranks) + len(missing),
        "ranks_count": len(ranks),
        "ranks": list(ranks),
        "missing_ranks_count": len(missing),
        "missing_ranks": list(missing),
    }
    return json.dumps({"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [one]})


MISMATCH = """NCCL version 2.26.2 compiled with CUDA 12.2
CUDA runtime version 12020, driver version 12040

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          4            1          4        4

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         4         4         4   RUNNING  MISMATCH

Warnings
========

#0-0 (000000000000feed) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation 42
  Rank 1 has launched up to operation 41 -- GPU 1 managed by process 11 on node 127.0.0.1

"""
SOUND = MISMATCH.partition("Warnings")[0].replace("MISMATCH", "OK")
DEAD = MISMATCH.partition("Warnings")[0] + (
    "Errors\n======\n\nDEAD\n  1 job process considered dead (unreachable via the RAS network)\n"
    "  Process 12 on node 127.0.0.1 managing GPU 2\n\n"
    "#0-0 (000000000000feed) INCOMPLETE\n  Missing communicator data from 1 rank\n"
    "  Rank 2 -- GPU 2 managed by process 12 on node 127.0.0.1\n"
)

BY_PID = {10 + number: Asked(number, 10 + number, number) for number in range(4)}


def said(statements):
    return [(one.says, one.process) for one in statements]


def test_counts_in_json_name_the_rank_that_is_behind():
    about, statements = ras_json.statements(document(rank(0, 42, 10), rank(1, 41, 11)), BY_PID)
    assert about == "NCCL 2.28.9, 1 communicator"
    assert said(statements) == [("behind", 1)]
    assert statements[0].text == "rank 1 of communicator 0xfeed has launched 41 AllReduce, others 42"


def test_equal_counts_are_in_sync_only_when_every_rank_answered():
    both = document(rank(0, 42, 10), rank(1, 42, 11))
    assert said(ras_json.statements(both, BY_PID)[1]) == [("in-sync", None)]
    part = document(rank(0, 42, 10), rank(1, 42, 11), size=3)
    assert said(ras_json.statements(part, BY_PID)[1]) == [("fact", None)]


def test_missing_and_failed_ranks_in_json():
    lost = {**rank(2, 0, 12), "status": {"unresponsive": True, "considered_dead": False}}
    text = document(rank(0, 5, 10), rank(1, 5, 11, async_error=3, abort_flag=True), missing=[lost])
    assert said(ras_json.statements(text, BY_PID)[1])[:3] == [("dead", 2), ("gone-wrong", 1), ("gone-wrong", 1)]


def test_a_rank_of_another_host_is_not_taken_for_ours():
    far = {**rank(1, 41, 11), "host": "203.0.113.7"}
    assert said(ras_json.statements(document(rank(0, 42, 10), far), BY_PID)[1]) == [("behind", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(MISMATCH, [("behind", 1)]), (SOUND, [("in-sync", None)]), (DEAD, [("dead", 2), ("fact", 2)])],
    ids=["mismatch", "sound", "dead"],
)
def test_text(text, expected):
    about, statements = ras_text.statements(text, BY_PID)
    assert about == "NCCL 2.26.2, 1 group of communicators"
    assert said(statements) == expected


@contextlib.contextmanager
def listener(serve):
    """The port of a server that treats one client with `serve(connection)`."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run():
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                serve(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def service(answer, json_known):
    """NCCL's side of the protocol."""

    def serve(connection):
        with connection.makefile("rb") as lines:
            for line in lines:
                word = line.decode().strip().lower()
                if word.startswith("client protocol"):
                    connection.sendall(b"SERVER PROTOCOL 2\n")
                elif word.startswith("timeout"):
                    connection.sendall(b"OK\n")
                elif word.startswith("set format"):
                    connection.sendall(b"OK\n" if json_known else b"ERROR: Unknown command set format json\n")
                else:
                    assert word == "verbose status"
                    connection.sendall(answer.encode())
                    return

    return serve


def asked(port, seconds=60.0, **variables):
    ranks = tuple(
        Asked(
            number,
            os.getpid() if number == 0 else 10 + number,
            number,
            None,
            {
                "NCCL_RAS_ADDR": f"localhost:{port}",
                **variables,
            },
        )
        for number in range(2)
    )
    return ras.ask(Question(ranks, time.monotonic() + seconds))


@pytest.mark.parametrize("json_known", [True, False])
def test_a_service_is_asked_in_the_best_form_it_knows(json_known):
    answer = document(rank(0, 42, os.getpid()), rank(1, 41, 11)) if json_known else MISMATCH
    with listener(service(answer, json_known)) as port:
        witness = asked(port)
    assert witness.state == "present", witness
    assert said(witness.statements) == [("behind", 1)]


def endless(connection):
    service("{" + " " * (1 << 16), True)(connection)
    while True:
        connection.sendall(b" " * (1 << 16))


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "not RAS"),
        (lambda connection: connection.sendall(os.urandom(1 << 16).replace(b"\n", b"")), "not RAS"),
        (lambda connection: connection.recv(1000) and connection.recv(1000), "no answer in time"),
        (lambda connection: connection.recv(1000) and None, "closed in the middle"),
        (service("no document", True), "could not be read"),
        (service("[" * 100_000, True), "could not be read"),
        (service("nothing that looks like it", False), "could not be read"),
        (endless, "does not stop"),
    ],
    ids=["http", "noise", "silence", "close", "no-json", "deep-json", "no-text", "endless"],
)
def test_a_listener_that_is_no_ras_is_one_reason(serve, reason, monkeypatch):
    monkeypatch.setattr(ras, "MOST_BYTES", 1 << 20)
    with listener(serve) as port:
        begun = time.monotonic()
        witness = asked(port, 2.0)
    assert witness.state == "failed"
    assert reason in witness.reason
    assert time.monotonic() - begun < 30


def test_a_closed_port_and_a_switch_are_absent():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert (asked(port).state, asked(port).reason) == ("absent", f"port {port} closed")
    assert asked(port, NCCL_RAS_ENABLE="0").reason == "switched off by NCCL_RAS_ENABLE=0"


@pytest.mark.parametrize("address", ["nonsense", "localhost:0", "localhost:99999", "127.0.0.1:port"])
def test_a_wrong_address_is_one_reason(address):
    witness = ras.ask(Question((Asked(0, os.getpid(), 0, None, {"NCCL_RAS_ADDR": address}),), time.monotonic() + 1))
    assert witness.state == "failed"
    assert "is not an address" in witness.reason


def test_another_machine_is_never_connected_to():
    question = Question((Asked(0, os.getpid(), 0, None, {"NCCL_RAS_ADDR": "203.0.113.7:28028"}),), time.monotonic() + 1)
    assert ras.ask(question).reason == "203.0.113.7:28028 is not this host"


@given(st.data())
def test_any_cut_and_splice_is_read_or_refused(data):
    """Both forms, with pieces of one in the other: nothing but `ValueError` comes out."""
    texts = [MISMATCH, DEAD, SOUND, document(rank(0, 42, 10), rank(1, 41, 11), missing=[rank(2, 0, 12)])]
    pieces = []
    for _ in range(data.draw(st.integers(1, 4))):
        text = data.draw(st.sampled_from(texts))
        start = data.draw(st.integers(0, len(text)))
        pieces.append(text[start : data.draw(st.integers(start, len(text)))])
    for read in (ras_json.statements, ras_text.statements):
        with contextlib.suppress(ValueError):
            about, statements = read("".join(pieces), BY_PID)
            assert about.startswith("NCCL")
            assert len(statements) < 100


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
        max_leaves=30,
    )
)
def test_any_document_is_read_or_refused(value):
    """The right keys with any values."""
    with contextlib.suppress(ValueError):
        ras_json.statements(json.dumps({"communicators": [value, {"ranks": [value, value], "size": value}]}), BY_PID)
