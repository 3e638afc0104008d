"""Looks by a user without privileges, without a home or a folder of his own: his ranks, those of root, and both."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests import open_place
from tests.conftest import NEWEST
from tests.gdb.gdbrun import INFERIORS
from tests.inferiors.capture_process import CaptureProcess
from tests.inferiors.pdb_job import PdbJob
from tests.open_place import NOBODY, USER
from tests.unit.test_rankpdb_planted import LINE

SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
# What the kernel would say with another setting of Yama, to us alone; whether it refuses is its own decision.
PRETEND = """
mount -t tmpfs none /proc/sys/kernel
mkdir /proc/sys/kernel/yama
echo "$0" >/proc/sys/kernel/yama/ptrace_scope
exec "$@"
"""
UNDUMPABLE = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); print('ready', flush=True); sys.stdin.read()"


pytestmark = [
    pytest.mark.gdb,
    pytest.mark.skipif(os.getuid() != 0, reason="becomes another user: needs root, not a package"),
]


def gdbext(*words, before=USER):
    environment = {**open_place.environment(), "HOME": "/nonexistent"}
    environment.pop("XDG_CACHE_HOME", None)
    argv = [*before, open_place.python(), "-m", "gdbext", *map(str, words)]
    done = subprocess.run(argv, cwd="/", env=environment, capture_output=True, text=True, timeout=900)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def rank(number, **options):
    env = {**os.environ, "RANK": str(number), "WORLD_SIZE": "2"}
    return CaptureProcess(threads=2, env=env, program=open_place.program(), **options)


def may_trace():
    """Whether the kernel's settings let a user look at his own processes that are not his children."""
    return not SCOPE.exists() or SCOPE.read_text().strip() == "0"


def test_his_own_ranks():
    with rank(0, wrapper=USER) as one, rank(1, wrapper=USER) as two:
        done = gdbext("diagnose", one.pid, two.pid, "--json", "--samples", "1")
        answer = json.loads(done.stdout)
        if may_trace():
            assert done.returncode == 3, done.stderr
            assert [(one["state"], one["after"]) for one in answer["processes"]] == [("ok", "runs")] * 2
        else:
            assert done.returncode == 3
            assert "sysctl kernel.yama.ptrace_scope=0" in answer["processes"][0]["problems"][0]
        for process in (one, two):
            process.assert_free()


def test_those_of_root():
    """Refused in one line with the next step; what the kernel shows is told, and no cause is guessed."""
    with rank(0) as process:
        done = gdbext("diagnose", process.pid)
        assert done.returncode == 3, done.stderr
        assert f"could not be read: {process.pid} runs as user 0, we are user {NOBODY}." in " ".join(
            done.stdout.split()
        )
        assert "  do       Run with sudo\n" in done.stdout and "unknown: " in done.stdout
        assert len(done.stderr.splitlines()) < 5
        process.assert_free()


def test_one_of_each():
    with rank(0, wrapper=USER) as mine, rank(1) as other:
        done = gdbext("diagnose", mine.pid, other.pid, "--json", "--once")
        assert done.returncode == 3, done.stderr
        answer = json.loads(done.stdout)
        told = {process["pid"]: process for process in answer["processes"]}
        assert told[other.pid]["state"] == "partial" and len(told[other.pid]["threads"]) == len(other.tids())
        assert told[other.pid]["wait"]["kind"] == "unknown" and "sudo" in told[other.pid]["problems"][0]
        if may_trace():
            assert (told[mine.pid]["state"], told[mine.pid]["wait"]["kind"]) == ("ok", "io")
        assert told[other.pid]["index"] not in answer["verdict"]["culprits"] + answer["verdict"]["victims"]
        for process in (mine, other):
            process.assert_free()


@pytest.fixture
def his_job():
    """Two Python ranks of the user, which meet in a folder of that user in /tmp."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        meet = Path(top) / "meet"
        meet.mkdir(mode=0o700)
        os.chown(meet, NOBODY, NOBODY)
        program = open_place.program(str(INFERIORS / "pdb_loop.py"))
        his = {"wrapper": USER, "python": open_place.python(), **open_place.environment()}
        with PdbJob(meet, program=program, ranks=2, LOCAL_WORLD_SIZE="2", **his) as job:
            for talker in job.start().others():
                talker.until("runs")
            yield job


def test_root_puts_a_breakpoint_into_ranks_of_a_user(his_job):
    """By sudo: the folder is found by the rank's user, whatever root's own is, and the prompt is the rank's."""
    line = f"pdb_loop.py:{LINE}"
    terminal = his_job.terminal(str(his_job[0].pid), "--inject", line, "--rank", "1", "--gdb", str(NEWEST))
    assert f"breakpoint at {line} in step" in terminal.until("(Pdb) ")
    terminal.type("p __import__('os').geteuid()")
    assert str(NOBODY) in terminal.until("(Pdb) ")
    listed = his_job.terminal(str(his_job[1].pid), "--list")
    assert f"prompt  {line}" in " ".join(listed.rest().split("\n"))
    terminal.type("c")
    terminal.rest()
    assert terminal.process.returncode == 0
    for talker in his_job.others():
        talker.type("end")
        talker.rest()
        assert talker.process.returncode == 0
    assert not his_job.sockets()


@pytest.mark.parametrize(("scope", "said"), [("1", "sysctl kernel.yama.ptrace_scope=0"), ("3", "boot with another")])
def test_what_yama_forbids_is_told_with_the_setting(scope, said):
    """The setting is pretended; that the kernel refuses comes from a process that is not dumpable."""
    pretending = ("unshare", "--mount", "sh", "-c", PRETEND, scope)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*USER, open_place.python(), "-c", UNDUMPABLE], **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        done = gdbext("diagnose", process.pid, "--once", "--json", before=(*pretending, *USER))
        process.stdin.close()
    assert done.returncode == 3, done.stderr
    (one,) = json.loads(done.stdout)["processes"]
    assert one["state"] == "partial" and one["threads"]
    (line,) = [problem for problem in one["problems"] if "ptrace_scope" in problem]
    assert f"kernel.yama.ptrace_scope is {scope}" in line and said in line
