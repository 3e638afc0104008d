"""Ranks in containers and out of reach: what can be said is said, and what to add."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.gdb.gdbrun import ROOT
from tests.inferiors.capture_process import CaptureProcess, build, wait_until

pytestmark = [
    pytest.mark.gdb,
    pytest.mark.skipif(os.getuid() != 0, reason="makes namespaces and drops capabilities: needs root, not a package"),
]

NO_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
# A root of its own: the libraries of the host, and a program at a path that the host does not have.
ENTER = """
set -e
mount -t tmpfs container "$1"
cd "$1"
mkdir -p usr lib lib64 proc opt/engine
for name in usr lib lib64; do mount --rbind /$name $name; done
mount -t proc proc proc
cp "$2" opt/engine/rank
shift 2
exec chroot . /opt/engine/rank "$@"
"""
UNDUMPABLE = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); print('ready', flush=True); sys.stdin.read()"


def gdbext(*words, before=()):
    argv = [*before, sys.executable, "-m", "gdbext", *map(str, words)]
    done = subprocess.run(
        argv, cwd="/", env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=900
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def below(pid):
    """The only child of a process: unshare --fork waits for it."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


@pytest.fixture(scope="module")
def contained(tmp_path_factory):
    """A process in its own pid and mount namespace, whose program is at no path of the host."""
    root = tmp_path_factory.mktemp("container")
    script = root.with_name("enter.sh")
    script.write_text(ENTER)
    wrapper = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", str(script), str(root)]
    with CaptureProcess(threads=3, wrapper=wrapper) as process:
        (inner,) = below(process.pid)
        wait_until(lambda: os.readlink(f"/proc/{inner}/exe").endswith("/opt/engine/rank"))
        yield process, inner


def test_from_the_host_into_a_container(contained):
    process, inner = contained
    assert not os.path.exists("/opt/engine/rank")
    done = gdbext("diagnose", inner, "--json", "--once")
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)["processes"][0]
    assert answer["state"] == "ok"
    assert any("container, as pid 1 there" in problem for problem in answer["problems"])
    shown = gdbext("stacks", inner, "--once").stdout
    assert "descend" in shown and "capture_threads.c" in shown, "symbols come from the container's own file"
    process.ask()  # it runs on


def test_in_a_container_without_the_capability_the_flag_is_named():
    """We lack SYS_PTRACE and the rank has more capabilities than we."""
    with CaptureProcess() as process:
        done = gdbext("diagnose", process.pid, before=NO_PTRACE)
        assert done.returncode in (3, 4)
        said = done.stdout + done.stderr
        assert "capabilities that we lack" in said and "SYS_PTRACE" in said
        process.assert_free()


def test_what_is_within_reach_is_read_and_the_rest_is_told():
    """One rank has our capabilities, one has more."""
    with CaptureProcess(wrapper=NO_PTRACE) as mine, CaptureProcess() as other:
        done = gdbext("diagnose", mine.pid, other.pid, "--json", "--once", before=NO_PTRACE)
        assert done.returncode == 3, done.stderr
        states = {process["pid"]: process for process in json.loads(done.stdout)["processes"]}
        assert states[mine.pid]["state"] == "ok" and states[other.pid]["state"] == "lost"
        assert any("capabilities that we lack" in problem for problem in states[other.pid]["problems"])
        mine.assert_free()
        other.assert_free()


def test_a_process_that_is_not_dumpable():
    """Root with all capabilities reads it all the same; without them one line says why not."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", UNDUMPABLE], **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        assert gdbext("diagnose", process.pid, "--json", "--once").returncode in (0, 1)
        done = gdbext("diagnose", process.pid, before=NO_PTRACE)
        assert done.returncode in (3, 4)
        assert done.stderr.splitlines()[-1].startswith("gdbext: ")
        process.stdin.close()
        assert process.wait() == 0


def test_programs_that_are_gone():
    """The file of the program was removed, as after an upgrade of a running server."""
    copy = shutil.copy(build(), f"{build()}-removed-{os.getpid()}")
    with CaptureProcess(threads=2, program=copy) as process:
        os.unlink(copy)
        done = gdbext("stacks", process.pid, "--once")
        assert "descend" in done.stdout, done.stdout + done.stderr
        process.assert_free()
