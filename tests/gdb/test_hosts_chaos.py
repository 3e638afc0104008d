"""The campaign of `--hosts` in short: a host dies, one lies, one's clock is off, the caller is killed."""

import re
import subprocess
import sys

import pytest

from tests import ssh_hosts
from tests.gdb.gdbrun import ROOT

pytestmark = [pytest.mark.gdb, pytest.mark.skipif(bool(ssh_hosts.MISSING), reason=ssh_hosts.MISSING)]
ROUNDS = (16, 32, 37)


def test_some_rounds_harm_nobody():
    words = [sys.executable, "-m", "tests.chaos.hosts_campaign", "--seed", "7", "--only", *map(str, ROUNDS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = dict.fromkeys(("hostile", "clock", "dies", "caller KILL"), "1")
    assert re.search(rf"^{len(ROUNDS)} rounds, 3 hosts, 0 rounds failed$", done.stdout, re.M)
    assert found == dict(re.findall(r"(hostile|clock|dies|caller KILL) (\d+)", done.stdout.rpartition("faults:")[2]))
