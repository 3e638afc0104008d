"""What running processes did before a debugger stopped them, by the kernel's counters."""

import os
import subprocess
import sys

import pytest

from gdbext.capture.without_stop import kernel_threads
from gdbext.capture.without_stop.before_stop import LEAST, RunningRanks, unwatched
from tests.polling import comes_true

pytestmark = pytest.mark.process
_DEADLINE = 20.0
_COMPUTES = "print(flush=True)\nwhile True: pass"
_WAITS = "import sys\nprint(flush=True)\nsys.stdin.read()"


@pytest.fixture
def started():
    running = []

    def start(program):
        running.append(subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        running[-1].stdout.readline()
        return running[-1].pid

    yield start
    for one in running:
        one.kill()
        one.communicate()


def test_who_computes_is_told_from_who_waits(started):
    computes, waits = started(_COMPUTES), started(_WAITS)
    assert comes_true(lambda: kernel_threads.look(waits)[waits].state == "S", _DEADLINE)
    running = RunningRanks([computes, waits])
    running.finish()
    busy, idle = running.of(computes), running.of(waits)
    assert busy.seconds >= LEAST and idle.seconds >= LEAST
    assert busy.cpu[computes] > 0.01 > idle.cpu[waits]
    assert idle.switches == {waits: 0}
    assert busy.activity is not None and idle.activity.seconds >= LEAST


def test_of_who_is_stopped_at_once_only_the_present_is_known():
    found = unwatched(os.getpid())
    assert os.getpid() in found.times
    assert (found.seconds, found.cpu, found.switches, found.activity) == (None, {}, {}, None)


def test_a_process_that_has_ended_meanwhile_has_no_threads(started):
    pid = started("print(flush=True)")
    os.waitpid(pid, 0)
    running = RunningRanks([pid])
    running.finish()
    assert running.of(pid).times == {}
