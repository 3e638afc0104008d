"""`--hosts` on real ranks: each host a PID namespace with processes, numbers and a /proc of its own."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.polling import wait_until

HERE = Path(__file__).parents[1] / "inferiors"
HOSTS = ("h1", "h2", "h3")
LATE = 1


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A folder with the first process of each host, and one rank on each; rank 1 of h2 never comes."""
    folder = tmp_path_factory.mktemp("hosts")
    enter = ["unshare", "--pid", "--mount-proc", "--kill-child", "--fork"]
    with ExitStack() as running:
        for rank, host in enumerate(HOSTS):
            words = [sys.executable, HERE / "host_rank.py", f"file://{folder}/store", rank, len(HOSTS), LATE, folder]
            environ = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(HOSTS)), "LOCAL_RANK": "0"}
            first = running.enter_context(subprocess.Popen([*enter, *map(str, words)], env=environ))
            running.callback(first.kill)
            children = Path(f"/proc/{first.pid}/task/{first.pid}/children")
            inside = wait_until(lambda: children.read_text().split(), "the host has its first process")
            (folder / host).write_text(inside[0])
        wait_until(lambda: len(list(folder.glob("ready.*"))) == len(HOSTS), "all ranks are there")
        yield folder


def left():
    return set(Path(tempfile.gettempdir()).glob("gdbext-host-*"))


def diagnosed(job, *words):
    via = f'nsenter --target "$(cat {job}/%h)" --pid --mount --'
    argv = [
        sys.executable,
        "-m",
        "gdbext",
        "diagnose",
        "--hosts",
        "h[1-3]",
        "--via",
        via,
        "--json",
        "-q",
        "--name",
        "host_rank.py",
        *words,
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def test_the_late_rank_of_another_host_is_named_and_nothing_stays_there(job):
    before = left()
    status, answer = diagnosed(job)
    assert status == 1, answer
    verdict = answer["verdict"]
    assert verdict["cause"] == "missing-rank" and verdict["culprits"] == [LATE], verdict["summary"]
    assert [(one["rank"], one["host"]) for one in answer["processes"]] == list(enumerate(HOSTS))
    assert len({one["pid"] for one in answer["processes"]}) == 1, "each is the first process of its host"
    assert all(one["read"] and one["gdb"] for one in answer["hosts"])
    wait_until(lambda: left() <= before, "what was sent to the hosts is gone")


def test_a_host_that_does_not_answer_leaves_the_rest(job):
    (job / "h9").write_text("999999999")
    via = f'nsenter --target "$(cat {job}/%h)" --pid --mount --'
    argv = [
        sys.executable,
        "-m",
        "gdbext",
        "diagnose",
        "--hosts",
        "h[1,3,9]",
        "--via",
        via,
        "-q",
        "--brief",
        "--name",
        "host_rank.py",
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 3 and "1 host not read" in done.stdout, done.stdout + done.stderr
    assert "no process" not in done.stdout and "high confidence" not in done.stdout, "rank 1 may be on h9"
