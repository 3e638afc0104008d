"""A rank whose threads are seized while one of them calls exec()."""

import os
import subprocess
import sys

import pytest

from tests.gdb.gdbrun import build
from tests.polling import wait_until

pytestmark = pytest.mark.process

COPY = """
import sys
from gdbext.capture.stop.copy_of_process import copy_process
for _ in range(int(sys.argv[2])):
    copy_process(int(sys.argv[1]))
print("done")
"""


def test_a_look_and_an_exec_do_not_wait_for_each_other(tmp_path):
    """exec() waits for the tracer to notice the end of the other threads, while no thread can be seized: some of some
    dozens of copies fell into that."""
    state = tmp_path / "state"
    state.write_bytes(bytes(4096))
    with subprocess.Popen([build("chaos_rank.c", "-g", "-O1"), str(state), "0", "40", "execs"]) as rank:
        try:
            wait_until(lambda: any(state.read_bytes()))
            words = [sys.executable, "-c", COPY, str(rank.pid), "40"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=300)
            assert done.stdout == "done\n", done.stderr
            starts = int.from_bytes(state.read_bytes()[8:16], "little")
            wait_until(
                lambda: int.from_bytes(state.read_bytes()[8:16], "little") > starts
            )  # it goes on starting itself
            assert os.path.exists(f"/proc/{rank.pid}")
        finally:
            rank.kill()
