"""Standard input, pipes, devices and endless input: what is read, how far, and what is said of it."""

import contextlib
import os
import socket
import threading

import pytest

from gdbext.cli import main
from gdbext.cli.inputs import reading, standard_input
from gdbext.model.errors import FINDING, NOTHING

STACK = b"#0  clock_gettime ()\n#1  ?? () from libcuda.so.1\n#2  cudaStreamSynchronize () from libcudart.so.12\n"
READING = "reading standard input; gdbext diagnose </dev/null uses the processes of this host"


class Said(list):
    """A progress that keeps what it is told."""

    def say(self, text):
        self.append(text)

    note = say


@contextlib.contextmanager
def stdin_of(descriptor, monkeypatch):
    with os.fdopen(descriptor, closefd=True) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        yield


@contextlib.contextmanager
def pipe(content, monkeypatch, ended=True):
    receiving, sending = os.pipe()
    os.write(sending, content)
    try:
        if ended:
            os.close(sending)
        with stdin_of(receiving, monkeypatch):
            yield
    finally:
        if not ended:
            os.close(sending)


# --- whether standard input is meant ---


def test_a_pipe_is_read_without_being_named(monkeypatch, capsys):
    """`cat stacks.txt | gdbext diagnose` looked for processes and left the pipe alone."""
    with pipe(STACK, monkeypatch):
        assert main.main(["diagnose"]) == FINDING
    printed = capsys.readouterr()
    assert "1 process, 1 thread, 3 frames" in printed.out
    assert printed.err.startswith(f"gdbext: {READING}\n")


def test_a_file_is_read_without_being_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "stacks").write_bytes(STACK)
    with stdin_of(os.open(tmp_path / "stacks", os.O_RDONLY), monkeypatch):
        assert main.main(["stacks", "-q"]) == FINDING
    assert "cudaStreamSynchronize" in capsys.readouterr().out


@pytest.mark.process
def test_processes_that_are_chosen_are_meant(monkeypatch, capsys):
    with pipe(STACK, monkeypatch):
        assert main.main(["diagnose", "--name", "no such process$"]) == NOTHING
        assert main.main(["comms", "4194304"]) == NOTHING
    assert "reading standard input" not in capsys.readouterr().err


def test_what_holds_no_stack_may_not_have_been_meant(monkeypatch, capsys):
    """The rest of a list in `while read host; do gdbext diagnose; done < hosts`."""
    with pipe(b"node7\nnode8\n", monkeypatch):
        assert main.main(["diagnose", "-q"]) == NOTHING
    error = capsys.readouterr().err
    assert "found no stack that gdbext can read in the standard input" in error
    assert error.endswith("; gdbext diagnose </dev/null uses the processes of this host\n")


@pytest.mark.parametrize(
    ("content", "ended", "given", "said"),
    [
        (b"x", False, True, READING),
        (b"x", True, True, READING),
        (b"", True, False, "standard input is an empty pipe: using the processes of this host"),
        (b"", False, False, "standard input is a silent pipe: using the processes of this host"),
    ],
    ids=["data", "data and an end", "an end", "silence"],
)
def test_a_pipe_that_is_silent_does_not_block(content, ended, given, said, monkeypatch):
    """CI, cron and ssh hand down pipes that nobody writes to."""
    monkeypatch.setattr(standard_input, "_FIRST_BYTE_MILLISECONDS", 10)
    progress = Said()
    with pipe(content, monkeypatch, ended):
        assert standard_input.is_given("diagnose", progress) is given
    assert len(progress) == 1 and progress[0].startswith(said)


def test_what_is_no_pipe_and_no_file_is_not_meant(tmp_path, monkeypatch):
    (tmp_path / "empty").touch()
    for name in ("/dev/null", tmp_path / "empty"):
        with stdin_of(os.open(name, os.O_RDONLY), monkeypatch):
            assert not standard_input.is_given("diagnose", Said())
    monkeypatch.setattr("sys.stdin", None)
    assert not standard_input.is_given("diagnose", Said())


def test_a_socket_is_told_and_not_read(monkeypatch):
    """sshd gives one, into which the list of a loop over hosts runs."""
    progress, (ours, theirs) = Said(), socket.socketpair()
    with theirs:
        theirs.send(b"x")
        with stdin_of(ours.detach(), monkeypatch):
            assert not standard_input.is_given("diagnose", progress)
    assert progress == ["standard input is a socket and is not read; gdbext diagnose - reads it"]


# --- bounds ---


class Endless:
    """Somebody who writes to a pipe until nobody reads it."""

    def __init__(self, path, begin, more):
        os.mkfifo(path)
        self._path, self._begin, self._more = path, begin, more
        self._thread = threading.Thread(target=self._write)

    def _write(self):
        with contextlib.suppress(BrokenPipeError), open(self._path, "wb", buffering=0) as file:
            file.write(self._begin)
            while True:
                file.write(self._more)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._thread.join(30)
        assert not self._thread.is_alive(), "it was read on"


def test_a_snapshot_without_an_end_is_left(tmp_path, monkeypatch, capsys):
    """3 GB of memory in 11 s, before there was a bound."""
    monkeypatch.setattr(reading, "HEAD", 1 << 20)
    monkeypatch.setattr(reading, "SNAPSHOT_MOST", 2 << 20)
    path = tmp_path / "pipe"
    for command in ("diagnose", "comms"):
        with Endless(path, b'{"schema": 1, "snapshot": {"processes": [', b"{}, " * 10_000):
            assert main.main([command, str(path), "-q"]) == NOTHING
        path.unlink()
        says = f"{path} looks like a snapshot but has more than 2 MiB: not read; give a file that --save wrote"
        assert capsys.readouterr() == ("", f"gdbext: {says}\n")


@pytest.mark.parametrize(
    ("bound", "value", "why"),
    [
        ("PIPE_MOST", 8 << 20, "reading was stopped after 8 MiB, and there is more"),
        ("LONGEST", 0.0, "reading was stopped after 0 s, and there is more"),
    ],
)
def test_of_a_pipe_without_an_end_the_ends_are_judged(bound, value, why, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reading, "HEAD", 1 << 20)
    monkeypatch.setattr(reading, "TAIL", 1 << 16)
    monkeypatch.setattr(reading, bound, value)
    path = tmp_path / "pipe"
    with Endless(path, STACK, b"step 7\n" * 10_000):
        given = reading.read(str(path), Said())
    assert given.data.startswith(STACK)
    assert given.problems[-1] == f"{path}: {why}"


def test_how_far_a_slow_pipe_is_read_is_told(monkeypatch):
    monkeypatch.setattr(reading, "_SILENT_SECONDS", 0.0)
    progress = Said()
    with pipe(STACK, monkeypatch):
        assert reading.read("-", progress).data == STACK
    assert "0 MiB read from standard input so far (Ctrl-C stops reading)" in progress


def test_a_long_file_is_not_read_in_the_middle(tmp_path):
    """A sparse file of a terabyte."""
    path = tmp_path / "long"
    path.write_bytes(STACK)
    os.truncate(path, 1 << 40)
    given = reading.read(str(path), Said())
    assert given.data.startswith(STACK) and len(given.data) < 64 << 20
    assert given.problems == (f"{path}: {((1 << 40) >> 20) - 62} MiB in the middle were not read",)


@pytest.mark.parametrize("command", ["diagnose", "stacks", "locks", "comms"])
@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_devices_are_refused_by_name(command, name, capsys):
    assert main.main([command, name]) == NOTHING
    says = f"gdbext: {name} is a device, not a file; give a file, or a pipe: COMMAND | gdbext diagnose -\n"
    assert capsys.readouterr() == ("", says)


def test_a_device_is_refused_before_it_is_opened(monkeypatch):
    """To open a watchdog starts it."""
    opened = []
    monkeypatch.setattr("builtins.open", lambda *words, **more: opened.append(words))
    monkeypatch.setattr(os, "open", lambda *words, **more: opened.append(words))
    assert main.main(["diagnose", "/dev/zero", "-q"]) == NOTHING
    assert not opened


def test_a_device_as_standard_input(monkeypatch, capsys):
    with stdin_of(os.open("/dev/zero", os.O_RDONLY), monkeypatch):
        assert main.main(["diagnose", "-"]) == NOTHING
    assert "standard input (/dev/zero) is a device, not a file" in capsys.readouterr().err
    with stdin_of(os.open("/dev/null", os.O_RDONLY), monkeypatch):
        assert main.main(["diagnose", "-"]) == NOTHING
    assert "the standard input is empty" in capsys.readouterr().err
