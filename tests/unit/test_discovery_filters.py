"""What a real seccomp filter refuses is noticed, and nothing is noticed where there is none."""

import ctypes
import os
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import gdbext
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.discovery.preflight_checks.attach_permission import check
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.proc.seccomp import kills_readers, refuses_ptrace

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the filter names calls by their number on x86-64"
)
PTRACE, PROCESS_VM_READV = 101, 310  # asm/unistd_64.h
REFUSE, KILL = 0x00050001, 0x80000000  # SECCOMP_RET_ERRNO with EPERM, SECCOMP_RET_KILL_PROCESS


def filtered(call, action):
    """From here on the call is refused to this process (seccomp(2))."""
    load, equal, answer = 0x20, 0x15, 0x06  # BPF: load a word, jump if it equals, return
    rules = ((load, 0, 0, 0), (equal, 0, 1, call), (answer, 0, 0, action), (answer, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(program)), 0, 0) == 0


def inside(call, action, question):
    """The answer of a child under such a filter, as an exit status."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            filtered(call, action)
            status = int(question())
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status), "the filter has killed the one who asked"
    return os.WEXITSTATUS(status)


def asked_anew():
    refuses_ptrace.cache_clear()
    return refuses_ptrace()


@pytest.mark.process
def test_without_a_filter():
    assert asked_anew() is False


@pytest.mark.process
@pytest.mark.parametrize("action", [REFUSE, KILL])
def test_a_filter_for_ptrace(action):
    """One that kills is noticed too, and kills but the child that asks."""
    assert inside(PTRACE, action, asked_anew) == 1


@pytest.mark.process
def test_a_filter_for_something_else():
    assert inside(PROCESS_VM_READV, REFUSE, asked_anew) == 0


@pytest.mark.process
@pytest.mark.parametrize(("action", "kills"), [(REFUSE, False), (KILL, True)])
def test_a_filter_that_kills_readers(action, kills):
    """Before an attach, too: gdb would end with all that it holds."""

    def question():
        kills_readers.cache_clear()
        hindered = [problem.text for problem in check(ProcFS(), os.getppid()).problems if problem.blocking]
        return kills_readers() and any("kills any process that reads" in text for text in hindered)

    assert inside(PROCESS_VM_READV, action, question) == kills


@pytest.mark.process
@pytest.mark.parametrize("command", ["diagnose", "stacks", "locks", "comms", "watch", "doctor"])
def test_no_command_ends_without_a_word(command, tmp_path):
    """It would be killed in the middle of its look (status 159 of a shell)."""
    with subprocess.Popen(["sleep", "600"]) as target:
        words = [sys.executable, "-m", "gdbext", command, str(target.pid)]
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(gdbext.__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            preexec_fn=lambda: filtered(PROCESS_VM_READV, KILL),
        )
        target.kill()
    said = " ".join((done.stdout if command == "doctor" else done.stderr).split())
    assert "a seccomp filter kills any process that reads another's memory" in said
    assert "shell that is not filtered" in said or "seccomp" in said.partition("process_vm_readv")[2]
    assert done.returncode == (1 if command == "doctor" else 4)


def test_a_tree_that_is_not_the_kernels_is_not_asked(tmp_path):
    assert ProcFS(str(tmp_path)).ptrace_filtered() is None and not ProcFS(str(tmp_path)).reading_kills()


@pytest.mark.process
def test_memory_is_read_without_the_call():
    """By /proc/PID/mem: the same bytes, and the same answer where there is nothing."""
    here = ctypes.create_string_buffer(b"sixteen bytes ..")
    address = ctypes.addressof(here)

    def question():
        memory = ProcessMemory(os.getpid())
        found = memory.read_many([(address, 7), (16, 8), (address + 8, 5)])
        return (
            found == [b"sixteen", None, b"bytes"]
            and memory.read(address, 16) == here.raw[:16]
            and not memory.read(8, 8)
        )

    assert inside(PROCESS_VM_READV, REFUSE, question) == 1


def test_without_room_for_a_child_nothing_is_claimed(monkeypatch):
    def refuses():
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuses)
    assert refuses_ptrace.__wrapped__() is False
