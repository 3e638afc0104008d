"""How a look is taken and what it leaves: several looks, all ranks together, saved looks, and death in the middle."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from tests.front_end import gdbext
from tests.inferiors.demo import DemoJob, state_of
from tests.polling import wait_until

pytestmark = pytest.mark.gdb


def start(*arguments):
    argv = [sys.executable, "-m", "gdbext", "diagnose", *map(str, arguments)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def diagnose(*arguments):
    done = gdbext("diagnose", *arguments)
    return done.returncode, done.stdout, done.stderr


def assert_untouched(job):
    for pid in job.pids.values():
        assert state_of(pid)[1] == 0
        assert job.alive_progress(pid)


def test_several_looks_are_kept_and_judged_together(tmp_path):
    saved = tmp_path / "looks.json"
    with DemoJob("healthy-slow", wait="poll") as job:
        pids = job.pids.values()
        status, out, err = diagnose(*pids, "--samples", 3, "--interval", 0.4, "--once", "--save", saved, "--json")
        assert json.loads(out)["verdict"]["cause"] == "not-a-hang"
        assert status == 0, err
        assert err.count("gdbext: sample ") == 2, "one line after each sample but the last"
        assert_untouched(job)
    snapshot = json.loads(saved.read_text())["snapshot"]
    assert len(snapshot["earlier"]) == 2
    assert [look["taken_at"] for look in snapshot["earlier"]] < [snapshot["taken_at"]]
    again = diagnose(saved, "--json")
    assert json.loads(again[1])["verdict"] == json.loads(out)["verdict"]


def test_all_ranks_together_read_by_two_gdbs(turn_gdb):
    with DemoJob("pinned-alloc", ranks=4, wait="poll") as job:
        status, out, err = diagnose(*job.pids.values(), "--together", "--jobs", 2, "--json", "--gdb", turn_gdb)
        answer = json.loads(out)
        assert (answer["verdict"]["cause"], answer["verdict"]["culprits"]) == ("implicit-sync-vs-collective", [1])
        assert status == 1, err
        assert all(pause > 0 for pause in answer["pause_ms"]["per_rank"].values())
        assert answer["pause_ms"]["max"] == max(answer["pause_ms"]["per_rank"].values())
        assert_untouched(job)


def test_a_rank_that_is_stopped_stays_stopped():
    with DemoJob("pinned-alloc", wait="poll") as job:
        os.kill(job.pids[2], signal.SIGSTOP)
        os.waitid(os.P_PID, job.pids[2], os.WSTOPPED | os.WNOWAIT)
        _, out, _ = diagnose(*job.pids.values(), "--json")
        assert state_of(job.pids[2]) == ("T", 0)
        assert json.loads(out)["verdict"]["cause"] == "missing-rank"
        os.kill(job.pids[2], signal.SIGCONT)
        assert_untouched(job)


def test_a_rank_that_another_debugger_holds_is_not_called_dead():
    with DemoJob("pinned-alloc", wait="poll") as job:
        gdb = ["gdb", "-nx", "-q", "-batch", "-p", str(job.pids[1]), "-ex", "echo held\\n", "-ex", "shell cat"]
        with subprocess.Popen(
            gdb, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as other:
            while other.stdout.readline() != "held\n":
                assert other.poll() is None
            status, out, _ = diagnose(*job.pids.values(), "--json")
            other.stdin.close()
            other.wait()
        answer = json.loads(out)
        assert status == 3
        assert answer["processes"][1]["state"] == "lost"
        assert "gdb" in " ".join(answer["processes"][1]["problems"])
        assert answer["verdict"]["cause"] == "unknown"
        assert "dead" not in answer["verdict"]["summary"]
        assert_untouched(job)


@pytest.mark.parametrize("victim", ["gdb", "every gdb", "front end"])
def test_kill_in_the_middle(victim):
    """Whoever dies, the ranks run on. One dead gdb is replaced; when all of them die, one clear line says so."""
    with DemoJob("pinned-alloc", wait="poll") as job, start(*job.pids.values(), "--json") as process:
        while "reading symbols" not in process.stderr.readline():
            assert process.poll() is None
        if victim == "front end":
            process.kill()
        elif victim == "gdb":
            wait_until(lambda: kill_gdbs_of(process.pid))
        else:
            while process.poll() is None:
                kill_gdbs_of(process.pid)
        _, err = process.communicate(timeout=300)
        if victim == "gdb":
            assert process.returncode == 1, err
        elif victim == "every gdb":
            assert process.returncode == 4
            assert err.splitlines()[-1].startswith("gdbext:")
            assert "gave no result" in err
        assert_untouched(job)


def kill_gdbs_of(pid):
    """How many there were."""
    children = subprocess.run(["pgrep", "-P", str(pid), "-x", "gdb"], capture_output=True, text=True).stdout.split()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
    return len(children)


def test_two_at_once_on_one_job():
    """The second may find a rank held for a moment by the first; both answer, and nothing stays behind."""
    with DemoJob("pinned-alloc", wait="poll") as job:
        both = [start(*job.pids.values(), "--json") for _ in range(2)]
        for process in both:
            out, err = process.communicate(timeout=300)
            assert process.returncode in (1, 3), err
            assert json.loads(out)["schema"] == 1
        assert_untouched(job)


def test_without_a_gdb_that_works_python_frames_are_a_partial_answer(tmp_path):
    broken = tmp_path / "gdb"
    broken.write_text('#!/bin/sh\ncase "$*" in *--version*) echo "GNU gdb (GDB) 13.1"; exit 0;; esac\nexit 9\n')
    broken.chmod(0o755)
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as rank:
        rank.stdout.readline()
        status, out, err = diagnose(rank.pid, "--json", "--once", "--gdb", broken)
        rank.stdin.close()
    answer = json.loads(out)
    assert (status, answer["processes"][0]["state"]) == (3, "partial"), err
    assert any("no native frames" in problem for problem in answer["problems"])
