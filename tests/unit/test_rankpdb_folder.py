"""Where ranks and terminals meet: found by the same rule whatever others have put there, and nothing is left."""

import os
import shutil
import signal
import socket
import stat
import sys

import pytest

from gdbext.rankpdb import folder, rank_server, wire
from gdbext.rankpdb.identity import Identity
from tests.inferiors.capture_process import as_nobody
from tests.inferiors.pdb_job import DEADLINE, HERE, PdbJob, Talker
from tests.polling import wait_until

# Runs a program, or gdbext, where the places of the system are others.
ELSEWHERE = """
import runpy, sys
from gdbext.rankpdb import folder
folder._TEMPORARY, folder._RUNTIME = sys.argv[1:3]
del sys.argv[:3]
if sys.argv[0] == "gdbext":
    runpy.run_module("gdbext", run_name="__main__")
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
NOBODY = 65534


class Host(PdbJob):
    """A job on a host with its own /tmp and /run/user."""

    def __init__(self, top, mode="step", steps=1):
        super().__init__(top / "unused", mode, steps)
        del self._common["GDBEXT_PDB_DIR"]
        self.tmp, self.run = top / "tmp", top / "run"
        self.usual = self.tmp / f"gdbext-{os.geteuid()}"
        self.session = self.run / str(os.geteuid())
        self.tmp.mkdir()
        self.run.mkdir()
        self._there = [sys.executable, "-c", ELSEWHERE, str(self.tmp), str(self.run)]
        self._argv = [*self._there, str(HERE / "pdb_rank.py"), mode, str(steps)]

    def log_in(self):
        self.session.mkdir(mode=0o700)

    def terminal(self, *arguments):
        talker = Talker([*self._there, "gdbext", "pdb", *arguments], self._common)
        self._terminals.append(talker)
        return talker

    def sockets(self):
        return [path for top in (self.tmp, self.run) for path in top.rglob("*") if path.is_socket()]

    def ends(self, terminal):
        terminal.until("(Pdb) ")
        terminal.type("c")
        for talker in self.others():
            assert "done" in talker.rest()
            assert talker.process.returncode == 0
        assert not self.sockets()


@pytest.fixture
def host(tmp_path):
    with Host(tmp_path) as job:
        yield job


def take(path):
    """What another user does who is faster; for one without privileges the folder is merely open."""
    path.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


@pytest.mark.process
def test_the_usual_place(host):
    host.start().all_waiting()
    assert stat.S_IMODE(host.usual.stat().st_mode) == 0o700
    assert {path.parent.parent for path in host.sockets()} == {host.usual}
    host.ends(host.terminal())
    assert not any(host.tmp.iterdir())


@pytest.mark.process
def test_a_login_session_has_a_better_one(host):
    host.log_in()
    host.start().all_waiting()
    assert {path.parent.parent for path in host.sockets()} == {host.session / "gdbext"}
    host.ends(host.terminal())
    assert not any(host.session.iterdir()) and not any(host.tmp.iterdir())


@pytest.mark.process
def test_who_takes_the_name_first_switches_nothing_off(host):
    take(host.usual)
    host.start().all_waiting()
    for talker in host.others():
        assert talker.seen.count(f"gdbext: {host.usual} ") == 1 and "`gdbext pdb` finds them" in talker.seen
    host.ends(host.terminal())
    assert list(host.tmp.iterdir()) == [host.usual] and not any(host.usual.iterdir())


@pytest.mark.process
@pytest.mark.parametrize("trick", ["file", "link"])
def test_neither_a_file_nor_a_link_is_a_folder(host, trick, tmp_path):
    (tmp_path / "private").mkdir(mode=0o700)
    host.usual.touch() if trick == "file" else host.usual.symlink_to(tmp_path / "private")
    host.start().all_waiting()
    assert "is not a folder" in host[1].seen
    host.ends(host.terminal())
    assert not any((tmp_path / "private").iterdir())


@pytest.mark.process
def test_ranks_in_different_places_find_each_other(host):
    host.log_in()
    host.start(0)
    host[0].until("for rank 1")
    host.session.chmod(0o755)  # from here on it is used by nobody new
    host.start(1, 2)
    host[2].until("for rank 1")
    host[1].until("opens its prompt")
    assert {path.parent.parent for path in host.sockets()} == {host.session / "gdbext", host.usual}
    host.ends(host.terminal())


@pytest.mark.process
def test_the_terminal_looks_in_every_folder_of_the_job(host):
    """Rank 0 could not use the usual folder, the others can: the prompt is in the one that is listed first."""
    host.usual.touch()
    host.start(0)
    host[0].until("for rank 1")
    (detour,) = {path.parent.parent for path in host.sockets()}
    host.usual.unlink()
    host.start(1, 2)
    host[2].until("for rank 1")
    host[1].until("opens its prompt")
    assert {path.parent.parent for path in host.sockets()} == {host.usual, detour}
    host.ends(host.terminal())


@pytest.mark.process
def test_the_end_of_the_session_is_not_the_end_of_the_breakpoint(host):
    """The job runs on in the background, and its folder is gone."""
    host.log_in()
    host.start(0, 1)
    host[0].until("for rank 1")
    host[1].until("opens its prompt")
    shutil.rmtree(host.session)
    wait_until(lambda: len(host.sockets()) == 2)
    host.start(2)
    host[2].until("for rank 1")
    host.ends(host.terminal())


def test_a_rank_that_moves_is_not_called_dead(tmp_path, monkeypatch):
    """It is asked at the place that it has lost, and says where it is."""
    monkeypatch.setattr(folder, "_TEMPORARY", str(tmp_path))
    monkeypatch.setattr(folder, "_RUNTIME", str(tmp_path / "run"))
    monkeypatch.delenv(folder.VARIABLE, raising=False)
    one, other = (rank_server.Station(Identity(rank, 2, None, "job")) for rank in (0, 1))
    try:
        wait_until(lambda: 1 in one._peers)
        shutil.rmtree(tmp_path / f"gdbext-{os.geteuid()}")
        found = one.ask(1, {"wait": "here:1", "hit": 1, "rank": 0}, DEADLINE)
        assert isinstance(found, wire.Wire)
        wait_until(lambda: other.waiters(("here:1", 1)) == [0])
        found.close()
    finally:
        one.close()
        other.close()
    assert not any(tmp_path.iterdir())


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_ranks_leaves_nothing(host, number):
    host.start().all_waiting()
    terminal = host.terminal()
    terminal.until("(Pdb) ")
    for rank in (0, 2, 1):  # those that wait first: they would go on when the prompt's rank is gone
        host[rank].signal(number)
    for talker in host.others():
        talker.rest()
        assert talker.process.returncode == -number
    assert not any(host.tmp.iterdir())


@pytest.mark.process
def test_a_signal_to_the_terminal_leaves_nothing(host):
    terminal = host.terminal()
    terminal.until("waiting for a rank")
    terminal.signal(signal.SIGTERM)
    terminal.rest()
    assert not any(host.tmp.iterdir())


@pytest.mark.process
def test_what_the_program_does_on_a_signal_is_its_own(tmp_path):
    script = """
import signal, sys
from gdbext.rankpdb import breakpoint_
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
breakpoint_()
"""
    environment = {"GDBEXT_PDB_DIR": str(tmp_path / "meet"), "RANK": "0", "WORLD_SIZE": "1"}
    talker = Talker([sys.executable, "-c", script], environment)
    try:
        talker.until("opens its prompt")
        talker.signal(signal.SIGTERM)
        talker.rest()
        assert talker.process.returncode == 7
        assert not any((tmp_path / "meet").iterdir())
    finally:
        talker.end()


# --- others ---


@pytest.fixture
def listening(tmp_path, monkeypatch):
    """Our own socket, as a rank has it."""
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path / "meet"))
    server, path = folder.listen("job", 3)
    yield path
    server.close()


def tries(path):
    """What another user gets who connects."""
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(path)
        except OSError as error:
            return type(error).__name__
        return "connected"


@pytest.mark.process
def test_another_user_cannot_connect(listening):
    assert tries(listening) == "connected"
    if os.geteuid() == 0:
        assert as_nobody(lambda: tries(listening)) == "PermissionError"


def test_who_connects_all_the_same_is_not_answered(listening, monkeypatch):
    """By a descriptor that it was given, or a folder that became open: the kernel tells who it is."""
    monkeypatch.setattr(wire.Wire, "peer", lambda self: (1, os.geteuid() + 1))
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert not wire.Wire(ours).is_ours()


def test_a_listener_of_another_user_is_no_rank(listening, monkeypatch):
    found = wire.connect(listening)
    assert found is not None and found.peer() == (os.getpid(), os.geteuid())
    found.close()
    monkeypatch.setattr(wire.Wire, "peer", lambda self: (1, os.geteuid() + 1))
    assert wire.connect(listening) is None


def test_in_the_folder_of_another_user_nothing_is_removed(listening, monkeypatch):
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    folder.remove(listening)
    assert os.path.exists(listening)


def test_a_folder_that_the_variable_names_is_not_replaced(tmp_path, monkeypatch):
    take(tmp_path / "meet")
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path / "meet"))
    with pytest.raises(PermissionError, match="is not a folder of this user alone; remove it, or set GDBEXT_PDB_DIR"):
        folder.listen("job", 0)
    assert folder.folders() == []
