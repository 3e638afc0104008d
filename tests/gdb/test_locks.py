"""Real processes in real locks and their healthy twins: seen from outside, held by each gdb, and as a core."""

import contextlib
import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.verdict.judge import judge
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files.codec import load_snapshot
from tests.conftest import gdbs
from tests.front_end import gdbext
from tests.gdb.gdbrun import QUIET, gdb_batch
from tests.inferiors.lock_hangs import LOCK_HANGS
from tests.polling import wait_until

INFERIORS = Path(__file__).parents[1] / "inferiors"

pytestmark = pytest.mark.gdb  # one start, one look for all of these tests

# From outside gdb only names frames; held by it, the waits and their memory come from gdb as well.
LOOKS = {"outside": ("outside", 0), "attached-distribution": ("attached", 0), "attached-newest": ("attached", 1)}


@pytest.fixture(scope="module")
def running():
    """Every hang, all at once: {name: pids}."""
    with contextlib.ExitStack() as stack:
        started = {hang.name: stack.enter_context(hang.start()) for hang in LOCK_HANGS}
        # These say ready, and then read, or take the lock of the other one.
        for name, call in (("stopped-peer", 0), ("stopped-pipe-peer", 0), ("dead-peer", 0), ("two-processes", 202)):
            for pid in started[name].pids[-1:] if call == 0 else started[name].pids:
                wait_until(lambda pid=pid, call=call: _call(pid) == call)
        yield {name: one.pids for name, one in started.items()}


def _call(pid):
    first = Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return int(first) if first.isdigit() else None


@pytest.fixture(scope="module", params=LOOKS.values(), ids=LOOKS)
def snapshots(request, running, tmp_path_factory):
    """What one look at all of them saw: {name: snapshot of its processes}."""
    how, number = request.param
    file = tmp_path_factory.mktemp("locks") / "snapshot.json"
    pids = [str(pid) for pids in running.values() for pid in pids]
    if how == "outside":
        done = gdbext("locks", "-q", "--gdb", gdbs()[number], "--save", file, *pids)
        said = done.stdout + done.stderr
    else:
        attach = f"llm-attach-all {' '.join(pids)}"
        said = gdb_batch(gdbs()[number], attach, f"llm-nccl-diagnose --save {file}", "llm-detach-all").text
    assert file.exists(), said
    whole = load_snapshot(file.read_text())
    by_pid = {process.pid: process for process in whole.processes}
    return {
        name: dataclasses.replace(
            whole,
            processes=tuple(dataclasses.replace(by_pid[pid], index=index) for index, pid in enumerate(pids)),
            world_size=None,
        )
        for name, pids in running.items()
    }


@pytest.mark.parametrize("hang", LOCK_HANGS, ids=lambda hang: hang.name)
def test_cause_culprit_and_lock(hang, snapshots):
    snapshot = snapshots[hang.name]
    verdict = judge(snapshot).verdict
    if hang.healthy:
        assert verdict.cause in (hang.cause, "unknown"), verdict.summary
        assert not verdict.culprits
        return
    assert verdict.cause in (hang.cause, *hang.also_causes), verdict.summary
    if verdict.cause != hang.cause:
        return
    assert hang.culprit in verdict.summary
    assert verdict.culprits == hang.culprits
    assert verdict.confidence == hang.confidence or hang.cause == "other"
    if hang.lock:
        assert hang.lock in {wait.kind for wait in snapshot.processes[0].locks}


def test_every_owner_is_a_thread_that_there_is(snapshots):
    owners = 0
    for name, snapshot in snapshots.items():
        for process in snapshot.processes:
            lwps = {thread.lwp for process in snapshot.processes for thread in process.threads}
            for wait in process.locks:
                assert wait.thread in lwps
                assert isinstance(wait.owner, Missing) or wait.gone or wait.owner in lwps, name
                owners += isinstance(wait.owner, int)
    assert owners > 20


def test_the_story_of_a_circle(snapshots):
    made = report(judge(snapshots["three-mutexes"]))
    assert [row.circle for row in made.rows] == [0, 0, 0, None]
    assert made.stories[0].count("waits for mutex ") == made.stories[0].count(" holds") == 3
    assert "waits for the end of thread" in made.stories[1]
    assert made.stories[1].endswith("which is part of the deadlock.")


def test_locks_have_the_names_of_their_variables(snapshots):
    (circle,) = {edge.target.label for edge in judge(snapshots["twice"]).verdict.chain if edge.target.kind == "lock"}
    assert circle == "mutex locks"
    names = {wait.name for wait in snapshots["two-mutexes"].processes[0].locks if wait.kind == "mutex"}
    assert names == {"locks", "locks+0x28"}
    labels = [edge.target.label for edge in judge(snapshots["semaphore"]).verdict.chain]
    assert "semaphore items" in labels


def test_peers_are_found_by_inode_and_port(snapshots, running):
    for name, begin in (("stopped-peer", "tcp 127.0.0.1:"), ("stopped-pipe-peer", "pipe:[")):
        (peer,) = snapshots[name].processes[-1].peers
        assert peer.file.startswith(begin)
        assert peer.processes == running[name][:1]


@pytest.mark.parametrize("how", ["outside", "attached"])
def test_the_holder_of_a_files_lock_need_not_be_a_rank(how, tmp_path):
    words = [sys.executable, "-S", str(INFERIORS / "file_lock.py")]
    path, file = tmp_path / "cache.lock", tmp_path / "snapshot.json"
    with contextlib.ExitStack() as stack:
        pids = {}
        for role in ("hold", "wait"):
            one = stack.enter_context(subprocess.Popen([*words, role, path], stdout=subprocess.PIPE, text=True))
            stack.callback(one.kill)
            assert one.stdout.readline() == "ready\n"
            pids[role] = one.pid
        wait_until(lambda: _call(pids["wait"]) == 73)
        if how == "outside":
            said = gdbext("locks", "-q", "--gdb", gdbs()[0], "--save", file, pids["wait"]).stdout
        else:
            look = (f"llm-attach-all {pids['wait']}", f"llm-locks --save {file}", "llm-detach-all")
            answer = gdb_batch(gdbs()[0], *look)
            said = answer.out + answer.text
    assert f"held by pid {pids['hold']}" in said
    verdict = judge(load_snapshot(file.read_text())).verdict
    assert (verdict.root.kind, verdict.root.pid) == ("process", pids["hold"])
    assert str(path) in verdict.chain[0].target.label
    assert not verdict.culprits


def test_a_core_has_owners_too(running, tmp_path):
    """The kernel's ids stand in the core's threads, the locks in its memory."""
    gdb = gdbs()[0]
    (pid,) = running["rwlock"]
    core, program = tmp_path / "core", os.readlink(f"/proc/{pid}/exe")
    dump = [gdb, *QUIET, "-batch", "-p", str(pid), "-ex", f"gcore {core}"]
    subprocess.run(dump, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
    answer = gdb_batch(gdb, f"file {program}", f"core-file {core}", "llm-locks --json", "llm-locks")
    (document,) = answer.documents
    kinds = {wait["kind"]: wait for wait in document["waits"]}
    assert kinds["rwlock"]["owner"] == kinds["mutex"]["lwp"], answer.text
    assert kinds["mutex"]["owner"] == kinds["rwlock"]["lwp"]
    assert "Deadlock in" in answer.out
