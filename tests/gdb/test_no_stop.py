"""--no-stop on running ranks: the same cause, and nothing is stopped, traced, or said of threads that run."""

import ctypes
import json
import struct
import subprocess
import sys
import threading

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.snapshot_files.codec import load_snapshot
from tests.conftest import gdbs
from tests.gdb.gdbrun import Target, gdb_batch
from tests.inferiors.demo import DemoJob, state_of
from tests.inferiors.lock_hangs import BY_NAME

pytestmark = pytest.mark.gdb


def filtered(call, action):
    """From here on `action` (seccomp(2)) meets this process, and whatever it starts, when it makes a system call."""
    load, equal, answer, allow = 0x20, 0x15, 0x06, 0x7FFF0000
    rules = [(load, 0, 0, 0), (equal, 0, 1, call), (answer, 0, 0, action), (answer, 0, 0, allow)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *rule) for rule in rules))
    header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, header, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def die_on_ptrace():
    """From here on the process, and whatever it starts, is killed when it calls ptrace(2)."""
    filtered(101, 0x80000000)  # SECCOMP_RET_KILL_PROCESS


def test_the_filter_works():
    call = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)"
    assert subprocess.run([sys.executable, "-c", call], preexec_fn=die_on_ptrace).returncode == -31  # SIGSYS


class Tracers:
    """Watches in a thread of its own whether any of the processes is traced or stopped."""

    def __init__(self, pids):
        self.seen, self._pids, self._done = set(), list(pids), threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self._done.wait(0.0005):
            for pid in self._pids:
                state, tracer = state_of(pid)
                if tracer or state in ("t", "T"):
                    self.seen.add((pid, state, tracer))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


def run(command, pids, *arguments, **options):
    """(exit status, stdout, stderr) of `gdbext COMMAND --no-stop`, during which no rank was traced or stopped."""
    argv = [sys.executable, "-m", "gdbext", command, "--no-stop", *map(str, pids), *arguments]
    with Tracers(pids) as tracers:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, preexec_fn=die_on_ptrace, **options)
    assert tracers.seen == set()
    assert done.returncode >= 0, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def hang():
    with DemoJob("pinned-alloc", wait="poll") as job:
        yield job


def test_the_same_cause_without_a_stop(turn_gdb, hang):
    status, out, err = run("diagnose", hang.pids.values(), "--once", "--json", "--gdb", turn_gdb)
    answer = json.loads(out)
    assert (answer["verdict"]["cause"], answer["verdict"]["culprits"]) == ("implicit-sync-vs-collective", [1]), err
    assert status in (1, 3), err  # 3: a pool thread was awake whenever it was looked at
    assert answer["pause_ms"]["max"] == 0
    assert [process["wait"]["kind"] for process in answer["processes"]] == [
        "stream-sync",
        "pinned-host-alloc",
        "stream-sync",
    ]
    assert "nothing is stopped" in err and "stopped for" not in err
    assert all(hang.alive_progress(pid) for pid in hang.pids.values())


def test_several_looks_are_kept(hang, tmp_path):
    saved = tmp_path / "looks.json"
    looks = ("--samples", "2", "--interval", "0.2", "--once", "--no-witnesses", "--json", "--save", str(saved))
    _, out, err = run("diagnose", hang.pids.values(), *looks, "--gdb", gdbs()[0])
    verdict = json.loads(out)["verdict"]
    assert verdict["cause"] == "implicit-sync-vs-collective", err
    snapshot = load_snapshot(saved.read_text())
    assert len(snapshot.earlier) == 1 and all(one.unstopped for one in snapshot.processes)
    assert judge(snapshot).verdict.summary == verdict["summary"]


def test_text_says_that_nothing_was_stopped(hang):
    _, out, _ = run("diagnose", hang.pids.values(), "-q", "--no-witnesses", "--gdb", gdbs()[1])
    assert "  pause    none: nothing was stopped" in out.splitlines()
    _, out, _ = run("stacks", hang.pids.values(), "-q", "--once", "--gdb", gdbs()[1])
    assert "cudaMallocHost" in out and "main" in out


def test_a_spinning_rank_is_told_as_running():
    with DemoJob("pinned-alloc", wait="spin") as job:
        status, out, err = run("diagnose", job.pids.values(), "--once", "--json", "--gdb", gdbs()[1])
        answer = json.loads(out)
        assert status == 3, err
        assert answer["verdict"]["confidence"] == "low"
        assert answer["verdict"]["culprits"] == [] and answer["verdict"]["victims"] == []
        for process in answer["processes"]:
            assert (process["wait"]["kind"], process["state"]) == ("unknown", "partial")
            assert any("ran: not read without a stop" in problem for problem in process["problems"])
            main = next(thread for thread in process["threads"] if thread["id"] == str(process["pid"]))
            assert main["kind"] == "unknown"


def test_locks_without_a_stop():
    with BY_NAME["two-mutexes"].start() as started:
        _, out, err = run("locks", started.pids, "--once", "--gdb", gdbs()[0])
    assert "Neither can proceed" in out and "join" in out, (
        err
    )  # the owner of a join is known by the descriptors of the threads


def test_inside_gdb(turn_gdb):
    with Target("threads", 2) as one:
        answer = gdb_batch(turn_gdb, f"llm-nccl-diagnose {one.pid} --no-stop --json", f"llm-stacks {one.pid} --no-stop")
        one.assert_free()
    (document,) = answer.documents
    assert document["pause_ms"]["max"] == 0
    assert "ncclAllReduce" in answer.out
    assert "nothing is stopped" in answer.err


def test_ranks_that_gdb_holds_stand_still_already():
    with Target("plain") as one:
        answer = gdb_batch(gdbs()[0], f"attach {one.pid}", "llm-nccl-diagnose --no-stop")
    assert "llm-detach-all" in answer.err
    assert "Traceback" not in answer.err


def test_a_rank_that_another_debugger_holds_is_read_all_the_same():
    with Target("plain") as one:
        gdb = ["gdb", "-nx", "-q", "-batch", "-p", str(one.pid), "-ex", "echo held\\n", "-ex", "shell cat"]
        with subprocess.Popen(
            gdb, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as other:
            while other.stdout.readline() != "held\n":
                assert other.poll() is None
            argv = [sys.executable, "-m", "gdbext", "stacks", "--no-stop", "--once", "-q", str(one.pid)]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=300, preexec_fn=die_on_ptrace)
            other.stdin.close()
            other.wait()
    assert "ncclAllReduce" in done.stdout, done.stderr
