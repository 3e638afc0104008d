"""While gdb itself holds the ranks: signals that come meanwhile, an exec() under way, and who stays stopped."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from gdbext.discovery.proc.procfs import ProcFS
from tests.conftest import NEWEST
from tests.gdb.gdbrun import INIT, Target, Terminal, build, gdb_batch
from tests.inferiors.capture_process import CaptureProcess
from tests.polling import wait_until

pytestmark = pytest.mark.gdb


def test_signals_that_come_while_ranks_are_attached_are_delivered_afterwards(any_gdb):
    """Real-time signals queue: each counts."""
    send = "python import os, signal; [os.kill(%d, signal.SIGRTMIN) for _ in range(100)]"
    with CaptureProcess(mode="signals") as process:
        before = process.ask()
        answer = gdb_batch(any_gdb, f"llm-attach-all {process.pid}", send % process.pid, "llm-stacks", "llm-detach-all")
        assert "All of them are running again." in answer.out
        wait_until(lambda: process.ask() == before + 100)
        process.assert_free()


def test_who_was_stopped_is_not_said_to_run_on():
    with Target("plain") as target:
        target._process.send_signal(signal.SIGSTOP)
        wait_until(lambda: target.status("State") == "T")
        answer = gdb_batch(str(NEWEST), f"llm-attach-all {target.pid}", "llm-detach-all")
        assert "released, stopped by SIGSTOP" in answer.out and "All of them are running again" not in answer.out
        assert (target.status("State"), target.status("TracerPid")) == ("T", "0")
        target._process.send_signal(signal.SIGCONT)
        target.assert_free()


@pytest.mark.parametrize("ending", ["llm-detach-all", "quit"])
def test_an_exec_under_way_does_not_keep_gdb_from_letting_go(any_gdb, ending, tmp_path):
    """The thread that calls execve() waits in it for the others, and they stand still: until the release. It does so
    every 0.15 s; who stands still does not come there, so gdb attaches several times to meet it."""
    state = tmp_path / "state"
    state.write_bytes(bytes(4096))
    words = [build("chaos_rank.c", "-g", "-O1"), str(state)]
    with subprocess.Popen([*words, "0", "3", "execs"]) as changing, subprocess.Popen([*words, "1", "3"]) as quiet:
        try:
            wait_until(lambda: beats(state, 0) and beats(state, 1))
            attach = f"llm-attach-all {changing.pid} {quiet.pid}"
            answer = gdb_batch(any_gdb, *[attach, "llm-detach-all"] * 5, attach, ending)
            assert "Traceback" not in answer.text
            for process, index in ((changing, 0), (quiet, 1)):
                assert "TracerPid:\t0\n" in Path(f"/proc/{process.pid}/status").read_text()
                now = beats(state, index)
                wait_until(lambda index=index, now=now: beats(state, index) > now)
        finally:
            for process in (changing, quiet):
                os.kill(process.pid, signal.SIGKILL)


FORGETS = """python
import ctypes
from pathlib import Path
from gdbext.inside_gdb.ranks.release_guard import Guard
guard = Guard()
guard.hold([{pid}])
{meanwhile}
guard.keep_attached()
print("traced by", *[line.split()[1] for line in Path("/proc/{pid}/status").open() if line.startswith("TracerPid")])
"""
ATTACHED = "ctypes.CDLL(None).ptrace(16, {pid}, None, None)  # PTRACE_ATTACH"
STOPPED = """
import os, signal
from gdbext.discovery.proc.procfs import ProcFS
before = ProcFS().auxv({pid})
while (ProcFS().auxv({pid}) or before) == before: pass  # a Missing is false, too
os.kill({pid}, signal.SIGSTOP)
while ProcFS().stat({pid}).state != "T": pass
"""
GOES = """with open("{state}", "r+b") as file:  # chaos_rank.c: `go`
    file.seek(24)
    file.write(b"\\1")
"""


@pytest.mark.parametrize(
    ("meanwhile", "behaviour"),
    [(ATTACHED, []), (STOPPED, ["execs"]), (STOPPED.replace("while", GOES + "while", 1), ["leaves"])],
    ids=["traced", "stopped", "looked-like-a-zombie"],
)
def test_what_an_exec_leaves_behind_gdbs_back_is_taken_back(turn_gdb, meanwhile, behaviour, tmp_path):
    """As when an exec() crosses an attach of gdb 13.1: gdb says that it has let go, and the process does not run. It is
    traced by gdb, or stopped by the SIGSTOP of the attach. While an exec() waits for the other threads, the process may
    look like a zombie."""
    state, source = tmp_path / "state", tmp_path / "forgets.gdb"
    state.write_bytes(bytes(4096))
    words = [build("chaos_rank.c", "-g", "-O1"), str(state), "0", "3", *behaviour]
    with subprocess.Popen(words) as process:
        try:
            wait_until(lambda: beats(state, 0) and (behaviour != ["leaves"] or state_of(process.pid) == "Z"))
            source.write_text(FORGETS.format(pid=process.pid, meanwhile=meanwhile.format(pid=process.pid, state=state)))
            answer = gdb_batch(turn_gdb, f"source {source}")
            assert answer.out == "traced by 0\n", answer.text
            now = beats(state, 0)
            wait_until(lambda: beats(state, 0) > now)
        finally:
            process.kill()


def state_of(pid):
    """The state of a process as proc_pid_stat(5) has it."""
    return ProcFS().stat(pid).state


def beats(state, index):
    """chaos_rank.c: the counter of a rank."""
    return int.from_bytes(state.read_bytes()[64 * index : 64 * index + 8], "little")


@pytest.mark.parametrize("end", ["killed", "detached"])
def test_a_rank_that_a_killed_gdb_leaves_stopped_is_continued(any_gdb, end):
    """The SIGSTOP of an attach comes through when gdb dies too early; here it comes while gdb holds the rank. After a
    proper release it is somebody's will."""
    with Target("plain") as target, Terminal(any_gdb, f"source {INIT}") as terminal:
        terminal.expect(re.escape(Terminal.PROMPT))
        terminal.command(f"llm-attach-all {target.pid}")
        target._process.send_signal(signal.SIGSTOP)
        if end == "killed":
            terminal.kill()
            target.assert_free()
            return
        terminal.command("llm-detach-all")
        wait_until(lambda: target.status("State") == "T")
        terminal.kill()
        assert target.status("State") == "T"
        target._process.send_signal(signal.SIGCONT)
