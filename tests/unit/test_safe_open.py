"""The opener: what is no regular file is refused at once, no link leads out of a root, no dead server keeps us."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from gdbext.safe_open import files, mounts, path_lookup, regular_files, slow_mounts
from gdbext.safe_open.kept_open_files import Opened, Shelf
from gdbext.safe_open.regular_files import Refused
from tests.inferiors.capture_process import HERE

SILENT = HERE / "silent_files.py"
SOON = 60.0  # seconds: what must not wait takes microseconds, what waits does so for ever


@pytest.fixture(params=["openat2", "by hand"])
def way(request, monkeypatch):
    """With the kernel's own call, and as on a kernel before 5.6."""
    if request.param == "by hand":
        monkeypatch.setattr(path_lookup, "_OPENAT2", 9999)
    return request.param


def refusal(path, **named):
    begun = time.monotonic()
    with pytest.raises(Refused) as caught:
        files.descriptor(str(path), **named)
    assert time.monotonic() - begun < SOON
    return caught.value.strerror


def test_what_is_no_regular_file_is_refused_by_its_kind(tmp_path, way):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert refusal(tmp_path / "socket") == "it is a socket, not a regular file"
    for name in ("fifo", "link"):
        assert refusal(tmp_path / name) == "it is a FIFO, not a regular file"
    assert refusal(tmp_path) == "it is a folder, not a regular file"
    for device in ("/dev/zero", "/dev/tty", "/dev/ptmx"):
        assert refusal(device) == "it is a device, not a regular file"
    for path in ("/proc/kmsg", "/proc/self/mem", f"/proc/{os.getpid()}/environ"):
        assert refusal(path) == "it is a file of proc, not a regular file"


def test_a_place_is_looked_up_and_not_opened(tmp_path, monkeypatch):
    """To open a FIFO wakes up its writer, and a watchdog begins to count."""
    os.mkfifo(tmp_path / "fifo")
    opened = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, flags, *rest, **named: opened.append(flags) or real(path, flags, *rest, **named)
    )
    refusal(tmp_path / "fifo")
    assert all(flags & os.O_PATH for flags in opened)


def test_a_file_without_a_measure_is_refused(tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 42)
    assert "more than the" in refusal(tmp_path / "sparse")
    (tmp_path / "small").write_bytes(b"x" * 100)
    assert refusal(tmp_path / "small", most=99) == "it has 100 bytes, more than the limit of 99"


def test_no_link_leads_out_of_a_root(tmp_path, way):
    (tmp_path / "secret").write_text("of the host")
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "inside").write_text("of the container")
    links = {
        "absolute": str(tmp_path / "secret"),
        "upwards": "../secret",
        "folder/far": "../../../../../../../.." + str(tmp_path / "secret"),
        "kernel": "/proc/self/root" + str(tmp_path / "secret"),
        "circle": "circle",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
        with pytest.raises(OSError) as caught:
            files.descriptor(name, str(root))
        assert caught.value.errno in (errno.ENOENT, errno.ELOOP), name
    for name, target in (("a", "/inside"), ("folder/b", "../../../inside"), ("c", "/folder/../inside")):
        (root / name).symlink_to(target)
        with files.stream(name, str(root)) as stream:
            assert stream.read() == b"of the container"


def test_the_root_of_a_process_is_one(tmp_path, way):
    own = f"/proc/{os.getpid()}/root"
    (tmp_path / "file").write_text("text")
    assert files.read_beginning(f"{own}{tmp_path}/../{tmp_path.name}/file", 99) == b"text"


def test_links_of_the_kernel_are_followed_only_where_we_name_them(tmp_path):
    with open(tmp_path / "file", "w") as file:
        name = f"/proc/self/fd/{file.fileno()}"
        os.close(files.descriptor(name))
        (tmp_path / "link").symlink_to(name)
        with pytest.raises(OSError) as caught:
            files.descriptor(str(tmp_path / "link"))
    assert caught.value.errno == errno.ELOOP


def test_what_was_opened_stays_what_it_was(tmp_path):
    path = tmp_path / "library"
    path.write_bytes(b"first")
    opened = Shelf().open(str(path))
    path.unlink()
    os.mkfifo(path)
    with open(opened.link, "rb") as again, opened.stream() as stream:
        assert again.read() == stream.read() == opened.read(0, 99) == bytes(opened.mapped()) == b"first"


def test_a_shelf_opens_a_file_once_whatever_it_is_called(tmp_path):
    (tmp_path / "one").write_text("1")
    os.link(tmp_path / "one", tmp_path / "two")
    shelf = Shelf()
    first = shelf.open(str(tmp_path / "one"))
    assert shelf.open(str(tmp_path / "two")) is first
    assert shelf.open(f"/proc/{os.getpid()}/root{tmp_path}/two", same=first.identity) is first
    (tmp_path / "three").write_text("3")
    with pytest.raises(Refused, match="another file has replaced it"):
        shelf.open(str(tmp_path / "three"), same=first.identity)


def test_files_are_closed_with_the_last_who_has_them(tmp_path):
    (tmp_path / "file").write_text("text")
    before = len(os.listdir("/proc/self/fd"))
    opened = Opened(str(tmp_path / "file"), files.descriptor(str(tmp_path / "file")))
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del opened
    assert len(os.listdir("/proc/self/fd")) == before


# --- file systems that do not answer ---


@pytest.fixture
def silent(tmp_path):
    """A mount of one file, and how to make it silent."""
    (tmp_path / "mount").mkdir()
    argv = [sys.executable, SILENT, tmp_path / "mount", "/bin/true"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        if server.stdout.readline() != "ready\n":
            pytest.skip(f"FUSE is not to be had here (a container without it): {server.stderr.read()}")

        def fall_silent():
            server.send_signal(signal.SIGUSR1)
            assert server.stdout.readline() == "silent\n"

        mounts._known.clear()
        yield tmp_path / "mount", fall_silent
        server.stdin.close()
        server.wait()
    files._slow.end()
    mounts._known.clear()


def timed(path):
    begun = time.monotonic()
    try:
        return files.read_beginning(str(path), 4), time.monotonic() - begun
    except OSError as error:
        return error, time.monotonic() - begun


@pytest.mark.process
def test_nobody_waits_for_a_file_system_that_does_not_answer(silent, tmp_path, monkeypatch):
    monkeypatch.setattr(slow_mounts, "SECONDS", 4.0)
    folder, fall_silent = silent
    assert timed(folder / "file")[0] == b"\x7fELF"
    (tmp_path / "link").symlink_to(folder / "none")
    fall_silent()
    found, took = timed(folder / "none")
    assert isinstance(found, TimeoutError) and "did not answer within 4 s" in found.strerror
    assert 4.0 <= took < SOON
    found, took = timed(folder / "other")
    assert isinstance(found, TimeoutError) and took < 4.0, "it is not asked again for every file"
    assert str(folder) in found.strerror and "fuse.silent" in found.strerror
    assert isinstance(timed(tmp_path / "link")[0], TimeoutError), "a link leads there, too"
    assert timed("/usr/bin/env")[0] == b"\x7fELF", "what lies elsewhere is read"


def test_the_table_of_mounts_tells_which_may_not_answer(tmp_path):
    table = tmp_path / "mountinfo"
    lines = (
        "22 1 0:21 / / rw - overlay overlay rw",
        r"23 22 0:30 /x /mnt/a\040b rw,a shared:1 - nfs4 server:/x rw",
        "24 22 0:31 / /home rw - fuse.sshfs me@host: rw",
        "25 22 0:32 / /scratch rw - lustre l rw",
        "an odd line",
    )
    table.write_text("\n".join(lines))
    assert [(one.point, one.kind) for one in mounts._read(str(table))] == [
        ("/mnt/a b", "nfs4"),
        ("/home", "fuse.sshfs"),
        ("/scratch", "lustre"),
    ]


def test_files_that_are_looked_at_are_not_changed(tmp_path):
    (tmp_path / "file").write_text("text")
    before = os.stat(tmp_path / "file")
    files.status(str(tmp_path / "file"))
    assert os.stat(tmp_path / "file") == before and stat.S_ISREG(before.st_mode)
    assert regular_files.identity_of(before) == regular_files.identity_of(files.status(str(tmp_path / "file")))
