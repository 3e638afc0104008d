"""The prompt in the terminal of the rank itself: a signal does there what it does without us."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.inferiors.pdb_job import DEADLINE

pytestmark = pytest.mark.process

# A new session whose terminal is the standard input: so the rank is in its foreground.
RANK = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from gdbext.rankpdb import breakpoint_
breakpoint_()
print("went on")
"""


@contextlib.contextmanager
def at_a_terminal(place):
    """The process, and the other end of its terminal."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "GDBEXT_PDB_DIR": str(place), "RANK": "0", "WORLD_SIZE": "1"}
    with open(ours, "rb", buffering=0):
        argv = [sys.executable, "-c", RANK]
        with subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment
        ) as process:
            os.close(theirs)
            try:
                yield process, ours
            finally:
                process.kill()


def until(ours, text):
    """Read what the terminal shows until `text` is in it."""
    seen, end = "", time.monotonic() + DEADLINE
    while text not in seen:
        ready, _, _ = select.select([ours], [], [], max(0.0, end - time.monotonic()))
        assert ready, seen
        seen += os.read(ours, 1 << 16).decode(errors="replace")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_rank_at_once_and_the_next_start_clears_up(tmp_path, number):
    place = tmp_path / "meet"
    with at_a_terminal(place) as (process, ours):
        until(ours, "(Pdb) ")
        process.send_signal(number)
        assert process.wait(DEADLINE) == -number, "as without us, also in the moment in which the prompt appears"
    left = {path.name for path in place.rglob("*") if path.is_socket()}
    assert left, "if nothing is left, say so in docs/safety.md"
    with at_a_terminal(place) as (process, ours):
        until(ours, "(Pdb) ")
        now = {path.name for path in place.rglob("*") if path.is_socket()}
        assert len(now) == 1 and not now & left
        os.write(ours, b"c\n")
        until(ours, "went on")
        assert process.wait(DEADLINE) == 0
    assert not place.exists() or not any(place.iterdir())
