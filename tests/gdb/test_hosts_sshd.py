"""`--hosts` through ssh: eight hosts with an sshd each, one gloo job over their network, one rank late on the fifth."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import ssh_hosts
from tests.polling import wait_until

pytestmark = [pytest.mark.gdb, pytest.mark.skipif(bool(ssh_hosts.MISSING), reason=ssh_hosts.MISSING)]

ROOT = Path(__file__).parents[2]
RANKS = ROOT / "tests" / "inferiors" / "host_ranks.py"
COUNT, LATE = 8, 4
WITHOUT_GDB = "h3"
LOGIN = "ssh -T -o BatchMode=yes %h"


@pytest.fixture(scope="module")
def hosts():
    """The hosts with their job."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", prefix="hosts-")))
        hosts = running.enter_context(ssh_hosts.Hosts(folder, COUNT, [WITHOUT_GDB]))
        words = [RANKS, "tcp://10.77.0.1:29500", LATE, folder, *(hosts.first(name) for name in hosts.names)]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "RANK": "0", "WORLD_SIZE": str(COUNT)}
        environ.update(LOCAL_RANK="0", GLOO_SOCKET_IFNAME="eth0")
        job = subprocess.Popen([sys.executable, *map(str, words)], env=environ)
        running.callback(job.wait)  # every rank ends with its host
        running.enter_context(hosts)
        wait_until(lambda: len(list(folder.glob("ready.*"))) == COUNT, "all ranks are there")
        yield hosts


def gdbext(hosts, *words, names="h[1-8]"):
    argv = [*hosts.caller, sys.executable, "-m", "gdbext", *words, "--hosts", names, "--name", "host_ranks.py"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    left = {name: [one.name for one in hosts.tmp(name).glob("gdbext*")] for name in hosts.names}
    assert not any(left.values()), left
    return done


def test_the_late_rank_is_named_and_nothing_stays(hosts):
    for _ in range(3):  # on a busy machine a rank may be woken between the copies: that look is undecided
        done = gdbext(hosts, "diagnose", "--json")
        if done.returncode != 3:
            break
    answer = json.loads(done.stdout)
    verdict = answer["verdict"]
    assert done.returncode == 1 and verdict["cause"] == "missing-rank" and verdict["culprits"] == [LATE], verdict
    assert [(one["rank"], one["host"]) for one in answer["processes"]] == list(enumerate(hosts.names))
    assert all(one["read"] for one in answer["hosts"]), answer["hosts"]
    assert [one["name"] for one in answer["hosts"] if not one["gdb"]] == [WITHOUT_GDB]
    said = next(problem for problem in answer["problems"] if problem.startswith(WITHOUT_GDB))
    assert "gdb was not used; gdb would add the C and C++ calls" in said
    without = next(one for one in answer["processes"] if one["host"] == WITHOUT_GDB)
    assert without["state"] == "partial" and "all_reduce" in json.dumps(without["wait"]), without["wait"]


def test_what_runs_there_and_what_stands_in_the_way(hosts):
    done = gdbext(hosts, "ranks", "--json", names="h[2-3]")
    jobs = json.loads(done.stdout)["jobs"]
    assert done.returncode == 0, done.stderr
    assert [(one["rank"], one["host"]) for job in jobs for one in job["ranks"]] == [(1, "h2"), (2, "h3")], jobs
    done = gdbext(hosts, "doctor", "--json", names="h[2-3]")
    points = json.loads(done.stdout)["points"]
    assert done.returncode == 1, done.stderr
    assert [one["text"][:16] for one in points if one["state"] == "hindrance"] == ["h3: no gdb found"], points


def test_a_command_that_leads_there_and_an_account_that_may_not_look(hosts):
    """Ranks of root, looked at by `ranks`: said, and nobody is called absent."""
    done = gdbext(hosts, "diagnose", "--json", "--once", "--via", LOGIN.replace("%h", "ranks@%h"), names="h[1-2]")
    answer = json.loads(done.stdout)
    assert done.returncode == 3 and not answer["verdict"]["culprits"], answer["verdict"]
    assert [one["host"] for one in answer["processes"]] == ["h1", "h2"]
    assert all(one["problems"] and one["state"] == "partial" for one in answer["processes"]), answer["processes"]
