"""`gdbext watch` on running jobs: a hang becomes a bundle, an idle server does not, a new job is followed."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gdbrun import DEADLINE

from tests.inferiors.demo import DemoJob, state_of
from tests.inferiors.slow_hangs import BY_NAME as SLOW_HANGS

pytestmark = pytest.mark.gdb


FEW = 5
"""Ranks that no job of another test has: the watch takes the next job of as many for the successor of its own, and
would stop ranks of a test beside this one."""


@contextlib.contextmanager
def watching(pids, into, *options):
    argv = [sys.executable, "-m", "gdbext", "watch", *map(str, pids), "--still", "0.6", "--every", "0.15"]
    argv += ["--into", str(into), "--json", *options]
    # Without a buffer: a line that lies in ours would not be seen by `select`.
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        try:
            yield process
        finally:
            process.kill()


def event(process, kind):
    """The next event of that kind; others on the way are passed over."""
    seen, end = [], time.monotonic() + DEADLINE
    while True:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        assert ready and time.monotonic() < end, f"no {kind}, but {seen}"
        line = process.stdout.readline()
        assert line, f"it has ended; no {kind}, but {seen}"
        seen.append(json.loads(line))
        if seen[-1]["event"] == kind:
            return seen[-1]


def texts(*folder):
    """Name -> content of the files of a folder."""
    return {path.name: path.read_text() for path in Path(*folder).iterdir() if path.is_file()}


def end(process):
    """By Ctrl-C. (exit status, what it printed after the last event read)"""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    assert b"every process keeps running" in err
    return process.returncode, [json.loads(line)["event"] for line in out.splitlines()]


def test_a_hang_becomes_a_bundle_and_the_next_job_is_followed(tmp_path):
    with contextlib.ExitStack() as stack:
        with DemoJob("pinned-alloc", ranks=FEW, wait="poll") as job:
            process = stack.enter_context(watching(job.pids.values(), tmp_path / "kept"))
            hang = event(process, "hang")
            assert hang["cause"] not in ("unknown", "not-a-hang")
            assert os.listdir(tmp_path / "kept") == [os.path.basename(hang["bundle"])]
            maps = [text for _, text in sorted(texts(hang["bundle"], "maps").items())]
            assert len(maps) == FEW
            assert all("libcudart" in text and "[stack]" in text for text in maps)
            assert "kernel: Linux" in texts(hang["bundle"])["versions.txt"]
            assert all(state_of(pid)[1] == 0 and job.alive_progress(pid) for pid in job.pids.values())
        assert event(process, "gone")
        with DemoJob("pinned-alloc", ranks=FEW, wait="poll") as job:
            # A job of a test beside this one may come first. When it has ended, ours is found.
            text = ""
            while not all(str(pid) in text for pid in job.pids.values()):
                text = event(process, "watching")["text"]
            status, _ = end(process)
            assert all(job.alive_progress(pid) for pid in job.pids.values())
    assert status == 1
    again = subprocess.run(
        [sys.executable, "-m", "gdbext", "diagnose", hang["bundle"], "--json"], capture_output=True, text=True
    )
    assert json.loads(again.stdout)["verdict"]["cause"] == hang["cause"]


@pytest.mark.torch
def test_a_rank_that_spins_while_the_others_wait_becomes_a_bundle(tmp_path):
    with SLOW_HANGS["spinning"].start() as job, watching(
        job.pids.values(), tmp_path / "kept", "--spinning-after", "1"
    ) as process:
        assert "spin (" in event(process, "undecided")["text"]
        hang = event(process, "hang")
        assert (hang["cause"], hang["confidence"], hang["culprits"]) == ("missing-rank", "low", [1])
        assert end(process)[0] == 1
    assert os.listdir(tmp_path / "kept") == [os.path.basename(hang["bundle"])]


def test_an_idle_server_is_looked_at_and_left_alone(tmp_path):
    with DemoJob("healthy-idle", ranks=2, wait="poll") as job, watching(
        job.pids.values(), tmp_path / "kept"
    ) as process:
        assert "this is not a hang" in event(process, "no-hang")["text"]
        status, later = end(process)
        assert (status, later) == (0, [])
        assert os.listdir(tmp_path / "kept") == []
