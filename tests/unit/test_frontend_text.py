"""Texts given to `gdbext diagnose`: bad ones are one line, of the others everything readable is judged."""

import pytest

from gdbext.frontend import given_files
from gdbext.frontend.cli import main
from gdbext.model.errors import FINDING, NOTHING


def test_what_was_not_read_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(given_files, "HEAD", 1 << 20)
    monkeypatch.setattr(given_files, "TAIL", 1 << 20)
    path = tmp_path / "long.txt"
    stack = b"#0  poll () from libc.so.6\n#1  main () at a.c:3\n"
    path.write_bytes((b"." * 1023 + b"\n") * (3 << 10) + b"step 7\n" * (1 << 10) + stack)
    monkeypatch.chdir(tmp_path)  # a long path would be shortened
    assert main(["diagnose", "long.txt"]) == FINDING
    printed = capsys.readouterr().out
    assert "long.txt: 2 MiB in the middle were not read" in " ".join(printed.split())
    assert "Read from the text: 1 process, 1 thread, 2 frames." in printed


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
        (b"#4 fix the leak (see below)\n#5 from now on, call at 10:30\n", NOTHING, "no stack found"),
        (MIXED.decode().encode("utf-16"), FINDING, "cudaStreamSynchronize"),
        (MIXED + "caf\xe9\n".encode("latin-1"), FINDING, "cudaStreamSynchronize"),
        (MIXED[: len(MIXED) // 2], FINDING, "Read from the text: 1 process, 1 thread"),
    ],
    ids=["empty", "binary", "elf", "looks-like-stacks", "utf-16", "latin-1", "truncated"],
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
    assert "Read from the text: 2 processes, 2 threads, 6 frames." in capsys.readouterr().out


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
    main(["diagnose", str(path)])
    assert "pinned-host-alloc" in capsys.readouterr().out
