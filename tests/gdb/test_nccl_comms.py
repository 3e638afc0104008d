"""Communicators in the memory of processes that map a real libnccl, of the demo engine, and of cores."""

import contextlib
import json
import subprocess

import pytest

from gdbext.capture.nccl.dwarf_layout import layout_of
from gdbext.capture.nccl.library import release_of, rows_for
from tests.conftest import gdbs
from tests.front_end import gdbext
from tests.gdb.gdbrun import gdb_batch
from tests.inferiors.demo import DemoJob, state_of
from tests.nccl_holders import HASH, Holder, block, real_library, shape_by_gdb

pytestmark = pytest.mark.gdb

HIDDEN, ONLY_ONE = 0xF00D, 0xBEEF


@pytest.fixture(scope="module")
def library():
    return real_library()


@pytest.fixture(scope="module")
def shape(library):
    return shape_by_gdb(library, gdbs()[0])


@pytest.fixture(scope="module")
def ranks(library, shape):
    """Three ranks. Rank 1 is behind in the first communicator; the second one nothing leads to; rank 2 has a third
    one with an error, and calls ncclAllReduce with a communicator that is torn."""
    with contextlib.ExitStack() as stack:
        held = []
        for rank in range(3):
            here = {"rank": rank, "nRanks": 3, "cudaDev": rank, "localRank": rank}
            blocks = [
                block(shape, "stack", (0, 0, 3, 0, 3 if rank == 1 else 4), **here),
                block(shape, "hidden", (1, 0, 0, 0, 0), **{**here, "commHash": HIDDEN}),
            ]
            if rank == 2:
                failed = {"commHash": ONLY_ONE, "asyncResult": 6, "abortFlag": 1, "initState": 7}
                blocks.append(block(shape, "stack", (), **{**here, **failed}))
                blocks.append(block(shape, "argument", (), **{**here, "endMagic": 0}))
            held.append(stack.enter_context(Holder(rank, 3, library, *blocks)))
        yield held


def by_hash(document):
    return {int(one["hash"], 16): one for one in document["communicators"]}


def asked(*words):
    """(exit status, document, stderr) of a shell command."""
    done = gdbext(*words, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def members(one):
    return [(member["process_rank"], member["rank"], member["device"]) for member in one["members"]]


def test_three_readers_agree(library, shape):
    """Our reader of debug information, gdb's, and the row that was measured once."""
    measured = layout_of(library)
    assert (measured.size, {name: field.offset for name, field in measured.fields.items()}) == shape
    known = [row for row in rows_for(release_of(library, library)) if row.size == measured.size]
    assert [row.fields for row in known] == [measured.fields]


def test_without_a_stop(ranks, shape):
    status, document, errors = asked("comms", *(one.pid for one in ranks))
    found = by_hash(document)
    first = found[HASH]
    assert members(first) == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    assert (first["size"], first["unseen_ranks"], first["in_use"]) == (3, [], False)
    if "seqNumber" in shape[1]:
        assert first["uneven"] == [{"kind": "all_reduce", "counts": {"0": 4, "1": 3, "2": 4}}]
    assert first["members"][0]["bus_id"] == "0000:3b:00.0"
    assert first["members"][0]["layout"] == "DWARF of libnccl.so.2"
    assert int(first["members"][1]["address"], 16) == ranks[1].addresses[0]
    (failed,) = found[ONLY_ONE]["members"]
    assert (failed["async_error"], failed["aborted"], failed["init_state"]) == (
        "ncclRemoteError",
        True,
        "ncclInProgress",
    )
    assert found[ONLY_ONE]["unseen_ranks"] == [0, 1]
    assert status == 1, errors
    for one in ranks:
        one.assert_free()


def test_the_scan_finds_what_nothing_leads_to(ranks):
    _, document, _ = asked("comms", "--scan", *(one.pid for one in ranks))
    hidden = by_hash(document)[HIDDEN]
    assert members(hidden) == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    assert {member["origin"] for member in hidden["members"]} == {"scan of the memory"}
    assert all("MiB scanned" in process["notes"][-1] for process in document["processes"])


def test_inside_gdb(ranks, any_gdb):
    """Attached: frames' arguments too, of which the torn one is named with its reason."""
    attach = "llm-attach-all " + " ".join(str(one.pid) for one in ranks)
    words = ["llm-nccl-comms --json", "llm-nccl-comms 2 --scan --json", "llm-nccl-comms 9"]
    seen = gdb_batch(any_gdb, attach, *words, "llm-detach-all", "llm-nccl-comms 1")
    everything, one_rank = seen.documents
    assert members(by_hash(everything)[HASH]) == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    (torn,) = everything["unreadable"]
    assert int(torn["address"], 16) == ranks[2].addresses[3]
    assert torn["origin"] == "comm of ncclAllReduce"
    assert "endMagic is 0x0" in torn["problem"]
    assert members(by_hash(one_rank)[HIDDEN]) == [(2, 2, 2)]
    assert "no rank 9 is attached" in seen.err
    assert "no rank is attached; llm-attach-all attaches them" in seen.err
    for one in ranks:
        one.assert_free()


@pytest.fixture(scope="module")
def own_library(tmp_path_factory):
    """A library called libnccl without debug information, which says that it is this release."""

    def make(release):
        folder = tmp_path_factory.mktemp(release)
        source, library = folder / "nccl.c", folder / "libnccl.so.2"
        source.write_text(
            f'const char banner[] = "NCCL version {release}+cuda12.9"; int ncclGetVersion(void) {{ return 0; }}'
        )
        subprocess.run(["gcc", "-shared", "-fPIC", "-s", "-o", library, source], check=True)
        return str(library)

    return make


def test_by_the_table_of_releases(own_library, turn_gdb, tmp_path):
    """Of two processes and of their cores, where the scan finds what no frame leads to."""
    row, cores = rows_for("2.27.5")[0], [str(tmp_path / "core.0"), str(tmp_path / "core.1")]
    shape = row.size, {name: field.offset for name, field in row.fields.items()}
    library = own_library("2.27.5")
    with contextlib.ExitStack() as stack:
        pids = []
        for rank in range(2):
            shown = block(shape, "stack", (0, 0, 0, 0, 9), rank=rank, nRanks=2)
            hidden = block(shape, "hidden", rank=rank, nRanks=2, commHash=HIDDEN)
            pids.append(stack.enter_context(Holder(rank, 2, library, shown, hidden)).pid)
        words = [f"llm-rank apply {rank} gcore {core}" for rank, core in enumerate(cores)]
        attach = f"llm-attach-all {pids[0]} {pids[1]}"
        document = gdb_batch(turn_gdb, attach, "llm-nccl-comms --json", *words).documents[0]
    later = gdb_batch(turn_gdb, "llm-attach-all --core " + " ".join(cores), "llm-nccl-comms --scan --json").documents[0]
    for seen in (document, later):
        members = by_hash(seen)[HASH]["members"]
        assert [member["rank"] for member in members] == [0, 1]
        assert {member["layout"] for member in members} == {"offsets of NCCL 2.27.3-2.27.7"}
        assert {member["counts"]["all_reduce"] for member in members} == {9}
    assert len(by_hash(later)[HIDDEN]["members"]) == 2
    assert HIDDEN not in by_hash(document)


def test_a_release_that_nobody_knows_is_one_line(own_library):
    shape = 4096, {"startMagic": 0, "endMagic": 4088, "commHash": 64}
    with Holder(0, 1, own_library("2.99.1"), block(shape, "stack")) as one:
        done = gdbext("comms", one.pid, "--quiet")
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr.count("\n") == 1
        assert (
            "libnccl.so.2 (NCCL 2.99.1) has no debug information, and the offsets of this release are not"
            in done.stderr
        )
        inside = gdb_batch(gdbs()[0], f"llm-attach-all {one.pid}", "llm-nccl-comms")
        assert "(NCCL 2.99.1) has no debug information" in inside.err


def test_a_process_without_nccl():
    with Holder(0, 1, "none") as one:
        done = gdbext("comms", one.pid, "--quiet")
        assert (done.returncode, done.stderr) == (4, "gdbext: no NCCL communicator was found\n")


def test_the_engine_whose_ranks_use_two_communicators_in_different_order():
    with DemoJob("multi-comm-order", wait="poll") as job:
        pids = list(job.pids.values())
        _, document, _ = asked("comms", *pids)
        first, second = sorted(document["communicators"], key=lambda one: one["uneven"][0]["counts"]["1"])
        assert first["uneven"] == [{"kind": "all_reduce", "counts": {"0": 4, "1": 3, "2": 4}}]
        assert second["uneven"] == [{"kind": "all_reduce", "counts": {"0": 3, "1": 4, "2": 3}}]
        table = gdb_batch(gdbs()[1], "set width 150", f"llm-attach-all {pids[0]}", "llm-nccl-comms").out
        for one in (first, second):
            (line,) = [line for line in table.splitlines() if line.startswith(f"{one['hash']} ")]
            assert line.split()[1:3] == ["3", "0-2"]
            assert f"{one['hash']}: " in table
        status, verdict, _ = asked("diagnose", "--gdb", gdbs()[1], *pids)
        assert verdict["verdict"]["cause"] == "multi-comm-ordering"
        assert status == 1
        said = " ".join(one["text"] for one in verdict["verdict"]["evidence"])
        assert first["hash"] in said
        assert all(state_of(pid)[1] == 0 and job.alive_progress(pid) for pid in pids)


def test_counts_find_what_no_stack_shows():
    """All ranks wait for their stream; only the counters tell that one of them launched another collective."""
    with DemoJob("collective-mismatch-async", wait="poll") as job:
        _, document, _ = asked("diagnose", "--gdb", gdbs()[0], *job.pids.values())
        verdict = document["verdict"]
        assert (verdict["cause"], verdict["culprits"]) == ("collective-mismatch", [1]), verdict["summary"]
        assert verdict["confidence"] == "high"
        assert "rank 1 launched all_gather once" in verdict["summary"]
