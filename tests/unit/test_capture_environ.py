"""The environment from memory, where /proc shows zeros or the past."""

import os
import subprocess
import sys

import pytest

from gdbext.capture.symbols.environ import read_environ
from gdbext.model.missing import Missing

CHILD = """
import os, sys, setproctitle
os.environ["LATER"] = "set by the program"
setproctitle.setproctitle("rtp_llm_rank-1")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child():
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={"WORLD_RANK": "3", "LONG": "x" * 9000},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.process
def test_variables_that_a_title_overwrote_and_that_were_set_later(child):
    with open(f"/proc/{child.pid}/environ", "rb") as file:
        assert b"WORLD_RANK" not in file.read()
    environ = read_environ(child.pid)
    assert environ["WORLD_RANK"] == "3"
    assert environ["LATER"] == "set by the program"


@pytest.mark.process
def test_a_long_value_is_cut(child):
    assert 4000 < len(read_environ(child.pid)["LONG"]) < 4096


@pytest.mark.process
def test_a_program_without_python_too():
    with subprocess.Popen(["cat"], env={"RANK": "7"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"x\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"x\n"  # it has started
        assert read_environ(process.pid) == {"RANK": "7"}


@pytest.mark.process
def test_a_dead_process_is_a_reason():
    process = subprocess.Popen(["true"])
    process.wait()
    found = read_environ(process.pid)
    assert isinstance(found, Missing)
    assert "No such file" in found.reason


def test_our_own_environment():
    assert read_environ(os.getpid())["PATH"] == os.environ["PATH"]
