"""`gdbext watch --before-kill`: a bundle where there is time for one, and never a late restart."""

import json
import os
import subprocess
import sys
import time

import pytest

from gdbext.cli import main
from gdbext.cli.watching import before_kill
from tests.polling import DEADLINE, wait_until

pytestmark = pytest.mark.process

STAND_IN = """
import os, signal, sys
from gdbext.cli import main
from gdbext.cli.watching import before_kill, look_before_kill as last_look
def look(options, into, end):
    os.makedirs(os.path.join(options.into, f".20261123-000000-unknown.{os.getpid()}"))
    print(os.getpid(), file=sys.stderr, flush=True)
    BODY
last_look.run = look
before_kill._age = lambda: 0.0  # a busy machine starts Python slowly
sys.exit(main.main(sys.argv[1:]))
"""


def started(body, into, *options, **more):
    """The command with another look in its child, which says its pid first."""
    argv = [sys.executable, "-c", STAND_IN.replace("BODY", body), "watch", "--before-kill", "--into", str(into)]
    process = subprocess.Popen([*argv, *options], stderr=subprocess.PIPE, text=True, **more)
    return process, int(process.stderr.readline())


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("body", ["signal.pause()", "[os.write(1, bytes(65536)) for _ in range(100)]"])
def test_a_look_that_does_not_end_makes_nobody_late(body, tmp_path):
    """It hangs, or it writes to somebody who does not read."""
    process, child = started(body, tmp_path / "kept", "--deadline", "3", stdout=subprocess.PIPE)
    began = time.monotonic()
    status = process.wait(DEADLINE)
    assert status == 3 and time.monotonic() - began < 60
    assert "no complete bundle within 3 s" in process.stderr.read()
    wait_until(lambda: not is_running(child), "the look has ended")
    assert os.listdir(tmp_path / "kept") == [], "what it had begun to write is gone"
    process.stdout.close()
    process.stderr.close()


def test_nobody_reads_what_we_say_either(tmp_path):
    """Standard error is a pipe that is full: the way out is taken all the same."""
    process, _ = started("os.set_blocking(2, False)\n    try:\n        while True: os.write(2, bytes(4096))\n"
                         "    except BlockingIOError: os.set_blocking(2, True)\n    signal.pause()",
                         tmp_path / "kept", "--deadline", "3")  # fmt: skip
    assert process.wait(DEADLINE) == 3
    process.stderr.close()


def test_the_start_of_python_counts():
    """Whoever asked has waited since then."""
    assert 0 < before_kill._age() < 86400


def test_whoever_kills_the_command_ends_its_look(tmp_path):
    process, child = started("signal.pause()", tmp_path / "kept", "--deadline", "600")
    process.kill()
    process.wait(DEADLINE)
    wait_until(lambda: not is_running(child), "the look has ended")
    process.stderr.close()


@pytest.mark.parametrize(("body", "status"), [("return 1", 1), ("os.kill(os.getpid(), signal.SIGKILL)", 4)])
def test_the_status_is_that_of_the_look(body, status, tmp_path):
    process, _ = started(body, tmp_path / "kept")
    assert process.wait(DEADLINE) == status
    assert ("ended by signal 9" in process.stderr.read()) == (status == 4)
    process.stderr.close()


SMALL_SHARE = """
import sys
from gdbext.cli import main
from gdbext.cli.watching import look_before_kill
look_before_kill._FOR_GDB = 0.08  # the rest is for what we do ourselves: on a busy machine that takes a while
sys.exit(main.main(sys.argv[1:]))
"""


def test_a_bundle_without_native_frames_is_better_than_none(tmp_path):
    """A gdb that hangs gets its share of the time; what was read without it is kept."""
    slow = tmp_path / "gdb"
    slow.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'GNU gdb 13.1' && exit\nexec sleep 1000\n")
    slow.chmod(0o755)
    into = tmp_path / "kept"
    with subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1) as rank:
        rank.stdout.readline()
        argv = [
            sys.executable,
            "-c",
            SMALL_SHARE,
            "watch",
            "--before-kill",
            str(rank.pid),
            "--deadline",
            "90",
            "--json",
        ]
        done = subprocess.run([*argv, "--gdb", str(slow), "--into", str(into)], capture_output=True, text=True)
        rank.communicate(b"\n")
    event = json.loads(done.stdout)
    assert done.returncode in (0, 1, 3), done.stderr
    assert os.path.dirname(event["bundle"]) == str(into) and event["standstill"] is None
    with open(os.path.join(event["bundle"], "snapshot.json")) as file:
        assert "input()" in file.read() or "no native frames" in done.stderr + event["text"]


def test_what_cannot_be_looked_at_is_one_line(tmp_path, capfd):
    assert main.main(["watch", "--before-kill", "--deadline", "1", "--into", str(tmp_path)]) == 2
    assert "--deadline must be from 2 s" in capfd.readouterr().err
    done = subprocess.run(
        [sys.executable, "-m", "gdbext", "watch", "--before-kill", "4194304", "--into", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4 and "no process 4194304 is running" in done.stderr
