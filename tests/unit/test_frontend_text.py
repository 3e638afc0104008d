"""Texts given to `gdbext diagnose`: bad ones are one line, of the others everything readable is judged."""

import argparse
import io
import os
import random
import threading

import pytest

from gdbext.cli.inputs import given_files, reading
from gdbext.cli.main import main
from gdbext.model.errors import FINDING, NOTHING


def test_what_was_not_read_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reading, "HEAD", 1 << 20)
    monkeypatch.setattr(reading, "TAIL", 1 << 20)
    path = tmp_path / "long.txt"
    stack = b"#0  poll () from libc.so.6\n#1  main () at a.c:3\n"
    path.write_bytes((b"." * 1023 + b"\n") * (3 << 10) + b"step 7\n" * (1 << 10) + stack)
    monkeypatch.chdir(tmp_path)  # a long path would be shortened
    assert main(["diagnose", "-v", "long.txt"]) == FINDING
    printed = capsys.readouterr().out
    assert "long.txt: 1 MiB in the middle were not read" in " ".join(printed.split())
    assert "  read     from the text: 1 process, 1 thread, 2 frames" in printed


def test_log_lines_alone_are_a_finding(tmp_path, capsys):
    path = tmp_path / "log.txt"
    path.write_text(
        "w3:55:901 [3] net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.14<4> with status=12\n"
    )
    assert main(["diagnose", str(path)]) == FINDING
    assert "network-transport (medium confidence)" in capsys.readouterr().out


MIXED = b"#0  clock_gettime ()\n#1  ?? () from libcuda.so.1\n#2  cudaStreamSynchronize () from libcudart.so.12\n"


@pytest.mark.parametrize(
    "content, status, says",
    [
        (b"", NOTHING, "empty"),
        (b"\x00\x01\x02" * 4000, NOTHING, "binary data, not text"),
        (b"\x7fELF" + b"\x00" * 600, NOTHING, ""),
        (b"| `Watchdog caught collective` | what to do |\n\nmissing-rank (low confidence): Rank 3 is late.\n",
         NOTHING, "found no stack"),
        (b"#4 fix the leak (see below)\n#5 from now on, call at 10:30\n", NOTHING, "found no stack"),
        (MIXED.decode().encode("utf-16"), FINDING, "cudaStreamSynchronize"),
        (MIXED + "caf\xe9\n".encode("latin-1"), FINDING, "cudaStreamSynchronize"),
        (MIXED[: len(MIXED) // 2], FINDING, "  read     from the text: 1 process, 1 thread"),
    ],
    ids=["empty", "binary", "elf", "a-page", "looks-like-stacks", "utf-16", "latin-1", "truncated"],
)  # fmt: skip
def test_bad_input_is_one_line_or_what_was_readable(content, status, says, tmp_path, capsys):
    path = tmp_path / "input.txt"
    path.write_bytes(content)
    assert main(["diagnose", str(path)]) == status
    streams = capsys.readouterr()
    assert says in (streams.err if status == NOTHING else streams.out)
    if status == NOTHING:
        assert streams.err.count("\n") == 1


def test_two_jobs_in_one_log_are_kept_apart(tmp_path, capsys):
    """Equal rank numbers of two writers are two processes, and neither hides the other."""
    path = tmp_path / "mixed.log"
    lines = MIXED.decode().splitlines()
    path.write_text("".join(f"(job-a pid=11) {line}\n(job-b pid=22) {line}\n" for line in lines))
    assert main(["diagnose", str(path)]) == FINDING
    assert "  read     from the text: 2 processes, 2 threads, 6 frames" in capsys.readouterr().out


@pytest.mark.parametrize(
    "lie",
    [
        "cuEGLApiInit () from libcuda.so.1",
        "cudbgReportDriverInternalError () from libcuda.so.1",
        "__nss_database_lookup () from libc.so.6",
        "__nss_database_lookup ()",
    ],
)
def test_lying_symbols_decide_nothing(lie, tmp_path, capsys):
    path = tmp_path / "lie.txt"
    path.write_text(
        f"#0  clock_gettime ()\n#1  {lie}\n#2  cudaFreeHost () from libcudart.so.8.0\n#3  main () at a.c:3\n"
    )
    main(["diagnose", "-v", str(path)])
    assert "pinned-host-alloc" in capsys.readouterr().out


# --- the standard input, pipes, and what is no text ---


class _Input:
    """Stands for sys.stdin."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def test_an_empty_standard_input_is_called_so(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", _Input(b" \n"))
    assert main(["diagnose", "-"]) == NOTHING
    error = capsys.readouterr().err
    assert error.startswith("gdbext: the standard input is empty")
    assert error.count("\n") == 1


@pytest.mark.parametrize("size", [200, 5_000, 300_000])
def test_binary_data_are_not_quoted(size, monkeypatch, capsys):
    noise = random.Random(size).getrandbits(8 * size).to_bytes(size, "little")
    monkeypatch.setattr("sys.stdin", _Input(noise))
    assert main(["diagnose", "-"]) == NOTHING
    error = capsys.readouterr().err
    assert "binary data, not text" in error
    assert error.isascii()


def test_a_line_with_wrong_bytes_is_counted_and_not_quoted(monkeypatch, capsys):
    text = b"a log\n" * 2000 + b"#1 \xff\xfe\x90 in libx.so 0x12345678\n"
    monkeypatch.setattr("sys.stdin", _Input(text))
    assert main(["diagnose", "-"]) == NOTHING
    error = capsys.readouterr().err
    assert "1 line that may belong to a stack could not be parsed; give it a Python traceback" in error
    assert error.isascii()


def test_colours_and_progress_bars_are_no_binary_data(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", _Input(b"\x1b[1m\x1b[31mE\x1b[0m 3%\b\b\b4%\r5%\n" * 20 + MIXED))
    assert main(["diagnose", "-"]) == FINDING


def test_a_pipe_of_the_shell_is_read_from_its_first_byte(capsys):
    """`gdbext diagnose <(command)`: to look whether it is a core file would take bytes out of it."""
    reading, writing = os.pipe()
    try:
        os.write(writing, MIXED)
        os.close(writing)
        assert main(["diagnose", f"/dev/fd/{reading}"]) == FINDING
    finally:
        os.close(reading)
    assert "1 process, 1 thread, 3 frames" in capsys.readouterr().out


class _WritesWhenTold:
    """A progress that brings the writer which the pipe waits for."""

    def __init__(self, path):
        self.path = path
        self.said = []

    def say(self, text):
        self.said.append(text)
        if len(self.said) == 1:
            threading.Thread(target=self.path.write_bytes, args=(MIXED,)).start()


def test_a_pipe_without_a_writer_says_what_it_waits_for(tmp_path, monkeypatch):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(reading, "_SILENT_SECONDS", 0.0)
    progress = _WritesWhenTold(path)
    release = threading.Timer(20, path.write_bytes, (MIXED,))  # if nobody says anything the test must end as well
    release.daemon = True
    release.start()
    try:
        snapshot, origin = given_files.snapshot_of([str(path)], argparse.Namespace(), progress)
    finally:
        release.cancel()
    assert len(snapshot.processes[0].threads[0].frames) == 3
    assert progress.said[0] == f"waiting for data from {path} (Ctrl-C stops waiting)"
    assert origin is None


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        (b"Thread A: Shims.<clinit> waits for Rules\n", "(jstack -l PID > dump.txt)"),
        (b"it stops somewhere in org.apache.spark, at Rules.scala:12\n", "(jstack -l PID > dump.txt)"),
        (b"it stops somewhere\n", "(py-spy dump --native --pid PID > dump.txt; without Python: gdb"),
    ],
)
def test_a_text_without_a_stack_asks_for_one_by_the_tool_of_its_language(text, tool, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", _Input(text))
    assert main(["diagnose", "-"]) == NOTHING
    assert tool in capsys.readouterr().err
