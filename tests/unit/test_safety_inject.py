"""`gdbext pdb --inject`, run by root on a rank of another user, or while others listen: who gets what, and as whom."""

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gdbext.cli.pdb import inject, remote_exec
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.rankpdb.wire import Wire
from tests.gdb.gdbrun import build
from tests.polling import wait_until

NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: needs root, not a package")


@pytest.fixture
def rank(tmp_path):
    """A process of another user in a root folder of that user's own making; `rank.tmp` is the /tmp that it has."""
    home = tmp_path / "root"
    (home / "tmp").mkdir(parents=True)
    program = home / "rank"
    program.write_bytes(Path(build("remote_rank.c", "-static")).read_bytes())
    program.chmod(0o755)
    for path in (home, home / "tmp"):
        os.chown(path, NOBODY, NOBODY)
    words = ["chroot", f"--userspec={NOBODY}:{NOBODY}", "--groups=", str(home), "/rank"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield SimpleNamespace(pid=process.pid, tmp=home / "tmp", home=home)
        process.kill()


@pytest.mark.process
@root
def test_the_program_of_another_user_runs_with_that_user_s_rights(rank):
    """It is asked to hand the text over, and does what its owner wants: not as root, nor on root's terminal."""
    said = remote_exec.send_script(rank.pid, "text")
    user, effective, leads_its_session, file = said.split()
    assert (user, effective, leads_its_session) == (str(NOBODY), str(NOBODY), "1")
    assert file.startswith("/tmp/gdbext-")
    assert not any(rank.tmp.iterdir())
    assert (os.geteuid(), os.getegid()) == (0, 0)


@pytest.mark.process
@root
def test_the_file_is_made_with_that_user_s_rights(rank, monkeypatch):
    seen = []

    def call(pid, path, owner):
        (file,) = rank.tmp.iterdir()
        seen.append((file.stat().st_uid, file.stat().st_mode & 0o777, file.read_text()))

    monkeypatch.setattr(remote_exec, "_call", call)
    assert remote_exec.send_script(rank.pid, "text") is None
    assert seen == [(NOBODY, 0o600, "text")]
    remote_exec.clear(rank.pid)
    assert not any(rank.tmp.iterdir())


@pytest.mark.process
@root
def test_a_link_where_its_tmp_should_be_leads_into_no_folder_of_root(rank, tmp_path):
    """An absolute link in that root folder leads out of it, for the process that follows it."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    rank.tmp.rmdir()
    rank.tmp.symlink_to(closed)
    assert (
        remote_exec.send_script(rank.pid, "text")
        == "cannot create a file in its /tmp: Too many levels of symbolic links"
    )
    assert not any(closed.iterdir())


@pytest.mark.process
@root
def test_a_file_that_is_swapped_for_a_link_costs_root_nothing(rank, tmp_path, monkeypatch):
    """Between its making and its use, in a /tmp that is the rank's own."""
    secret = tmp_path / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)

    def swap(pid, path, owner):
        (file,) = rank.tmp.iterdir()
        file.unlink()
        file.symlink_to(secret)
        return "no"

    monkeypatch.setattr(remote_exec, "_call", swap)
    remote_exec.send_script(rank.pid, "text")
    assert (secret.stat().st_uid, secret.read_text()) == (0, "of root")


SAYS = """
import json, socket, sys
wire = socket.socket(socket.AF_UNIX)
wire.connect("\\0" + sys.argv[1])
wire.sendall(json.dumps({"placed": "step"}).encode() + b"\\n")
sys.stdin.read()
"""


@pytest.fixture
def listener():
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"\0gdbext-test-{os.getpid()}")
        made.listen(4)
        yield made


@pytest.mark.process
def test_only_the_rank_itself_is_heard(listener):
    """The name of the socket is in /proc/net/unix for everybody."""
    name = listener.getsockname()[1:].decode()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect("\0" + name)
        stranger.sendall(b'{"error": "of a stranger"}\n')
        words = [sys.executable, "-c", SAYS, name]
        with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
            asked = inject.Asked(SimpleNamespace(pid=process.pid, rank=0), listener, "")
            inject._collect([asked], time.monotonic() + 60)
            assert asked.answer == {"placed": "step"} and asked.problem is None
            assert asked.wire.peer() == (process.pid, os.geteuid())
            assert select.select([stranger], [], [], 300)[0]
            with contextlib.suppress(ConnectionResetError):  # sent away, with a word of its own unread
                assert stranger.recv(1) == b""
            asked.close()
            process.stdin.close()


@pytest.mark.process
def test_a_pid_that_became_another_process_is_not_asked(listener, monkeypatch):
    handed = []
    monkeypatch.setattr(inject, "interpreter_of", lambda pid: SimpleNamespace(version=(3, 14)))
    monkeypatch.setattr(remote_exec, "send_script", lambda pid, text: handed.append(pid))
    quiet = SimpleNamespace(say=lambda text: None)
    with subprocess.Popen(["sleep", "1000"]) as process:
        wait_until(lambda: os.path.exists(f"/proc/{process.pid}/stat"))
        start = ProcFS().stat(process.pid).start_time
        for known, problem in ((start, None), (start - 1, "it has ended")):
            asked = inject.Asked(SimpleNamespace(pid=process.pid, rank=0, start_time=known), listener, "")
            inject._hand_out([asked], SimpleNamespace(gdb=None), quiet)
            assert asked.problem == problem
        process.kill()
    assert handed == [process.pid]


def test_a_rank_hears_its_own_user_and_root_alone(monkeypatch):
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        for user, heard in ((0, True), (os.geteuid(), True), (os.geteuid() + 1, False)):
            monkeypatch.setattr(Wire, "peer", lambda self, user=user: (1, user))
            assert Wire(ours).is_ours() is heard
