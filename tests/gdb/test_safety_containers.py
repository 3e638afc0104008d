"""Ranks in containers and out of reach: what can be said is said, and what to add."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from gdbext.capture.memory.maps import read_maps
from tests import front_end, open_place
from tests.gdb.gdbrun import INIT, QUIET, ROOT
from tests.gdb.test_no_stop import filtered
from tests.inferiors.capture_process import CaptureProcess, build
from tests.open_place import USER
from tests.polling import wait_until

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
# The same with a library of its own; what the container has is removed by the test.
WITH_A_LIBRARY = "library=$1; shift\n" + ENTER.replace("exec", 'cp "$library" opt/\nLD_LIBRARY_PATH=/opt exec')
NO_WAY_TO_FILES = "--bounding-set=-sys_admin,-checkpoint_restore", "--inh-caps=-sys_admin,-checkpoint_restore"
UNDUMPABLE = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); print('ready', flush=True); sys.stdin.read()"


def gdbext(*words, before=()):
    """In this process where nothing is asked of another one's."""
    if not before:
        return front_end.gdbext(*words)
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


def test_a_gdb_that_may_not_enter_the_container_says_so(contained, turn_gdb):
    """Without CAP_SYS_ADMIN it attaches and finds no file; nothing that gdb prints tells why."""
    _, inner = contained
    commands = ("-ex", f"source {INIT}", "-ex", f"llm-attach-all {inner}", "-ex", "llm-detach-all")
    words = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", turn_gdb, *QUIET, "-batch", *commands]
    done = subprocess.run(words, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    said = " ".join((done.stdout + done.stderr).split())
    assert f"frames have no names (PID {inner})" in said and "`gdbext diagnose` reads them anyway" in said
    done = subprocess.run(words[3:], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    assert "no names" not in done.stdout + done.stderr, "who has the capability has the names"


def test_in_a_container_without_the_capability_the_flag_is_named():
    """We lack SYS_PTRACE and the rank has more capabilities than we: /proc is all there is, and no cause is guessed."""
    with CaptureProcess() as process:
        done = gdbext("diagnose", process.pid, before=NO_PTRACE)
        assert done.returncode == 3, done.stderr
        assert f"unknown: Pid {process.pid} could not be read" in done.stdout
        said = " ".join(done.stdout.split())
        assert "capabilities that we lack" in said and "--cap-add=SYS_PTRACE" in said
        assert "none: nothing was stopped" in said
        process.assert_free()


def test_without_the_capability_json_has_what_the_kernel_shows():
    """Names, states and processor time of all threads; no stack is claimed, no rank blamed."""
    ranks = {number: {**os.environ, "RANK": str(number), "WORLD_SIZE": "3"} for number in range(2)}
    with CaptureProcess(env=ranks[0]) as one, CaptureProcess(threads=2, env=ranks[1]) as two:
        os.kill(two.pid, signal.SIGSTOP)
        wait_until(lambda: two.state() == "T")
        done = gdbext("diagnose", one.pid, two.pid, "--json", before=NO_PTRACE)
        assert two.state() == "T"
        os.kill(two.pid, signal.SIGCONT)
        assert done.returncode == 3, done.stderr
        answer = json.loads(done.stdout)
        assert answer["pause_ms"]["max"] == 0
        for process, pid, count in zip(answer["processes"], (one.pid, two.pid), (len(one.tids()), len(two.tids()))):
            assert (process["pid"], process["state"], process["after"]) == (pid, "partial", None)
            assert "SYS_PTRACE" in process["problems"][0]
            assert (process["wait"]["kind"], process["wait"]["thread"]) == ("unknown", None)
            assert len(process["threads"]) == count
        seen = {row["id"]: row for row in answer["processes"][0]["threads"]}
        assert seen[str(one.pid)]["state"] == "S" and seen[str(one.pid)]["cpu"] < 0.5
        assert {row["name"] for row in seen.values()} >= {"heartbeat"}
        assert {row["state"] for row in answer["processes"][1]["threads"]} == {"T"}
        verdict = answer["verdict"]
        assert (verdict["cause"], verdict["culprits"]) == ("missing-rank", [1]), "a rank that is stopped is a fact"
        assert verdict["confidence"] == "low", "the heartbeats of the other run"
        assert any("stopped by a signal" in line["text"] for line in verdict["evidence"])
        for process in (one, two):
            process.assert_free()


@pytest.mark.parametrize("command", ["stacks", "locks"])
def test_an_answer_of_stacks_alone_is_none_without_the_right(command):
    with CaptureProcess() as process:
        done = gdbext(command, process.pid, "--once", before=NO_PTRACE)
        assert (done.returncode, done.stdout) == (4, "")
        assert "SYS_PTRACE" in done.stderr.splitlines()[-1]


def no_ptrace_call():
    """From here on ptrace(2) is refused, as under a container's old default profile."""
    filtered(101, 0x00050001)  # SECCOMP_RET_ERRNO, EPERM


def test_a_filter_that_refuses_the_call_is_named():
    """The same user, whom /proc shows everything; but the call itself is forbidden."""
    words = [*USER, open_place.python(), "-m", "gdbext", "diagnose", "--json", "--once"]
    with CaptureProcess(wrapper=USER, program=open_place.program()) as process:
        done = subprocess.run(
            [*words, str(process.pid)],
            cwd="/",
            env=open_place.environment(),
            capture_output=True,
            text=True,
            timeout=900,
            preexec_fn=no_ptrace_call,
        )
        assert done.returncode == 3, done.stderr
        (answer,) = json.loads(done.stdout)["processes"]
        assert answer["state"] == "partial"
        assert any("seccomp" in problem and "--no-stop" in problem for problem in answer["problems"])
        assert len(answer["threads"]) == len(process.tids())
        process.assert_free()


def test_from_a_user_namespace_to_the_outside():
    """Its root has all capabilities, and none of them counts outside."""
    enter = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    with CaptureProcess() as process:
        inside = gdbext("diagnose", process.pid, before=enter)
        assert inside.returncode == 4 and "no process" in inside.stderr, "its /proc does not show who lives outside"
        done = gdbext("diagnose", process.pid, "--once", "--json", before=enter[:3])
        assert done.returncode == 3, done.stderr
        (answer,) = json.loads(done.stdout)["processes"]
        assert answer["state"] == "partial" and answer["threads"]
        (problem,) = (text for text in answer["problems"] if "SYS_PTRACE" in text)
        assert "where our capabilities do not apply" in problem and "on the host with sudo" in problem
        process.assert_free()


def test_what_is_within_reach_is_read_and_the_rest_is_told():
    """One rank has our capabilities, one has more."""
    with CaptureProcess(wrapper=NO_PTRACE) as mine, CaptureProcess() as other:
        done = gdbext("diagnose", mine.pid, other.pid, "--json", "--once", before=NO_PTRACE)
        assert done.returncode == 3, done.stderr
        states = {process["pid"]: process for process in json.loads(done.stdout)["processes"]}
        assert states[mine.pid]["state"] == "ok" and states[other.pid]["state"] == "partial"
        assert {thread["kind"] for thread in states[other.pid]["threads"]} == {"unknown"}
        assert any("capabilities that we lack" in problem for problem in states[other.pid]["problems"])
        mine.assert_free()
        other.assert_free()


def test_a_process_that_is_not_dumpable():
    """Root with all capabilities reads it anyway; without them one line says why not."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", UNDUMPABLE], **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        assert gdbext("diagnose", process.pid, "--json", "--once").returncode in (0, 1)
        done = gdbext("diagnose", process.pid, "--once", before=NO_PTRACE)
        assert done.returncode == 3, done.stderr
        assert "could not be read" in done.stdout and "SYS_PTRACE" in done.stdout
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


def test_files_that_were_removed_in_a_container_are_named(tmp_path, turn_gdb):
    """Without the rights of the host's root a library is out of reach, the program is not; gdb finds neither."""
    script, root = tmp_path / "enter.sh", tmp_path / "root"
    script.write_text(WITH_A_LIBRARY)
    root.mkdir()
    libc = next(one.file for one in read_maps(os.getpid()) if one.file.endswith("/libc.so.6"))
    wrapper = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", str(script), libc, str(root)]
    with CaptureProcess(threads=2, wrapper=wrapper) as process:
        (inner,) = below(process.pid)
        wait_until(lambda: os.readlink(f"/proc/{inner}/exe").endswith("/opt/engine/rank"))
        for name in ("engine/rank", "libc.so.6"):
            os.unlink(f"/proc/{inner}/root/opt/{name}")
        answer = gdbext("diagnose", inner, "--once", "--json", before=("setpriv", *NO_WAY_TO_FILES))
        problems = json.loads(answer.stdout)["processes"][0]["problems"]
        # A stack without names is searched for addresses, and may have one of the loader's.
        removed = [text for text in problems if "/opt/" in text and "was removed" in text]
        assert len(removed) == 1 and "/opt/libc.so.6 was removed" in removed[0] and "root of the host" in removed[0]
        commands = ("-ex", f"source {INIT}", "-ex", f"llm-attach-all {inner}", "-ex", "llm-detach-all")
        words = [turn_gdb, *QUIET, "-batch", *commands]
        done = subprocess.run(words, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
        said = " ".join((done.stdout + done.stderr).split())
        assert f"their frames have no names: rank, libc.so.6 (PID {inner}); `gdbext diagnose`" in said
        assert "descend" in gdbext("stacks", inner, "--once").stdout, "who may, reads them anyway"
