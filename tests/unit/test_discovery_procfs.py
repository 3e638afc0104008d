"""Reading /proc: what is there, what is gone, what may not be read."""

import os

import pytest
from discovery_tree import OVERWRITTEN, Tree
from hypothesis import given
from hypothesis import strategies as st

from gdbext.discovery.proc.procfs import DENIED, GONE, ProcFS, parse_environ, parse_stat
from gdbext.discovery.proc.procfs import OVERWRITTEN as REASON


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_title_is_read_whole_and_without_padding(tree, tmp_path):
    tree.add(5, 1, ["x"])
    (tmp_path / "5/cmdline").write_bytes(b"VLLM::Worker_DP0_PP1_TP12\0\0\0\0\0")
    assert ProcFS(str(tmp_path)).cmdline(5) == ("VLLM::Worker_DP0_PP1_TP12",)


def test_overwritten_environment_says_why(tree, tmp_path):
    tree.add(5, 1, "x", environ=OVERWRITTEN)
    assert ProcFS(str(tmp_path)).environ(5) == REASON


def test_environment_keeps_equal_signs_in_values():
    assert parse_environ(b"A=1=2\0B=\0junk\0=x\0") == {"A": "1=2", "B": ""}


def test_empty_environment_is_not_missing():
    assert parse_environ(b"") == {}


def test_gone_process_is_missing_everywhere(tmp_path):
    proc = ProcFS(str(tmp_path))
    reads = (proc.cmdline, proc.environ, proc.status, proc.stat, proc.comm, proc.mapped_files, proc.exe)
    assert [read(9) for read in (*reads, proc.open_files, proc.owner)] == [GONE] * 9
    assert proc.tasks(9) == ()
    assert not proc.exists(9)
    assert proc.may_attach(9) is None


def test_root_that_is_not_there_has_no_processes(tmp_path):
    assert ProcFS(str(tmp_path / "nothing")).pids() == []


def test_refused_read_says_so(tree, tmp_path, monkeypatch):
    tree.add(5, 1, "x")
    refused = PermissionError(13, "Permission denied")

    def refuse(path, *_, **__):
        raise refused

    monkeypatch.setattr("builtins.open", refuse)
    assert ProcFS(str(tmp_path)).environ(5) == DENIED


def test_name_with_blanks_and_parentheses_in_stat():
    stat = parse_stat(b"7 (a) b (c) R 3 2 1 0 -1 4194304 " + b"0 " * 10 + b"12 0 99 0\n")
    assert (stat.comm, stat.state, stat.parent, stat.group, stat.threads, stat.start_time) == (
        "a) b (c",
        "R",
        3,
        2,
        12,
        99,
    )
    assert not stat.kernel_thread


@given(st.binary(max_size=80))
def test_any_stat_line_is_read_or_missing(data):
    parse_stat(data)


def test_mapped_files(tree, tmp_path):
    tree.add(5, 1, "x", files=("/lib/a b.so", "/lib/c.so", "/lib/c.so"))
    proc = ProcFS(str(tmp_path))
    assert proc.mapped_files(5) == ("/lib/a b.so", "/lib/c.so")


def test_our_own_process_in_the_real_proc():
    proc = ProcFS()
    pid = os.getpid()
    assert proc.self_pid() == pid
    assert pid in proc.pids()
    assert proc.stat(pid).parent == os.getppid()
    assert proc.may_attach(pid) is True
    assert pid in proc.tasks(pid)
    assert proc.namespace(pid, "pid").startswith("pid:[")
    assert any("libc" in path for path in proc.mapped_files(pid))
