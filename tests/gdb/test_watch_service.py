"""`gdbext watch --service` on a job that hangs: one alert, one look at a time on a host, and nobody stays stopped."""

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys

import pytest
from gdbrun import DEADLINE
from prometheus_client.parser import text_string_to_metric_families

from tests.inferiors.demo import DemoJob, state_of
from tests.polling import wait_until

pytestmark = pytest.mark.gdb


@contextlib.contextmanager
def service(folder, name, **settings):
    """A service of the jobs that this test has started."""
    told = {"every": 0.15, "still": 0.6, "into": str(folder / name), "lock": str(folder / "lock"), **settings}
    file = folder / f"{name}.json"
    file.write_text(json.dumps({**told, "job": [{"name": "chat", "parent": os.getpid()}]}))
    argv = [sys.executable, "-m", "gdbext", "watch", "--service", "--config", str(file)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        try:
            yield process
        finally:
            process.kill()


def event(process, kind, seen=None):
    while True:
        assert select.select([process.stdout], [], [], DEADLINE)[0], f"no {kind}"
        line = process.stdout.readline()
        assert line, f"it has ended; no {kind}"
        found = json.loads(line)
        if seen is not None:
            seen.append(found["event"])
        if found["event"] == kind:
            return found


def lock_is_free(path):
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def numbers_of(textfile):
    families = text_string_to_metric_families(textfile.read_text()) if textfile.exists() else ()
    return {one.name: one.value for family in families for one in family.samples}


def test_a_standstill_is_told_once_after_the_look_of_another_service(tmp_path):
    textfile, told = tmp_path / "gdbext.prom", tmp_path / "told"
    hook = f"cat >>{told}"
    with DemoJob("pinned-alloc", ranks=2, wait="poll") as job, open(tmp_path / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as another service does, which takes a look
        with service(tmp_path, "one", textfile=str(textfile), exec=["sh", "-c", hook]) as process:
            assert event(process, "watching")["job"] == "chat"
            wait_until(lambda: numbers_of(textfile).get("gdbext_standstill_seconds", 0) > 1.5, "it stands still")
            assert "gdbext_looks_total" not in numbers_of(textfile), "the other one is not done"
            fcntl.flock(lock, fcntl.LOCK_UN)
            hang = event(process, "hang")
            assert event(process, "alert")["text"] == "exec sent"
            stood = numbers_of(textfile)["gdbext_standstill_seconds"]
            wait_until(lambda: numbers_of(textfile)["gdbext_standstill_seconds"] > stood + 1, "it stands on")
            numbers = numbers_of(textfile)
            process.send_signal(signal.SIGTERM)
            rest = [json.loads(line)["event"] for line in process.stdout]
            assert process.wait(DEADLINE) == 0 and rest == ["service"], "one look and one alert for one standstill"
        assert all(state_of(pid)[1] == 0 and job.alive_progress(pid) for pid in job.pids.values())
    assert (numbers["gdbext_ranks"], numbers["gdbext_looks_total"], numbers["gdbext_alerts_total"]) == (2, 1, 1)
    assert 0 < numbers["gdbext_longest_pause_seconds"] < 2 and numbers["gdbext_bundle_bytes"] > 0
    assert json.loads(told.read_text()) == hang
    assert hang["bundle"].startswith(str(tmp_path / "one" / "chat")) and hang["steps"] and hang["host"]


def test_a_service_that_is_killed_leaves_nobody_stopped(tmp_path):
    """In the middle of a look, which goes on by itself, keeps the lock of the host until then, and keeps its bundle."""
    (tmp_path / "lock").touch()
    with DemoJob("pinned-alloc", ranks=2, wait="poll") as job:
        with service(tmp_path, "one") as process:
            event(process, "watching")
            # The lock is taken a moment before its look is there.
            wait_until(lambda: children_of(process.pid) and not lock_is_free(tmp_path / "lock"), "a look begins")
            process.kill()
            process.wait(DEADLINE)
        wait_until(lambda: lock_is_free(tmp_path / "lock"), "the look has ended")
        assert all(state_of(pid)[1] == 0 and job.alive_progress(pid) for pid in job.pids.values())
        kept = os.listdir(tmp_path / "one" / "chat")
        assert len(kept) == 1 and re.match(r"\d{8}-\d{6}-", kept[0])
