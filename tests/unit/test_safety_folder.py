"""The folder with the copies of a look: private, and gone whatever ends us."""

import os
import signal
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gdbext.capture import private_folder
from gdbext.capture.private_folder import private_copies
from gdbext.cli import main
from gdbext.model.errors import GdbextError
from tests.polling import wait_until

HOLD = """
import sys
from gdbext.capture.private_folder import private_copies
with private_copies() as folder:
    (folder / "core.0").write_text("secret")
    print(folder, flush=True)
    sys.stdin.read()
"""


def janitors(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        found += [pid] if b"gdbext-clean-up" in words and str(folder).encode() in words else []
    return found


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_it_goes_away_with_us_whatever_ends_us(number, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD], env=environment, **pipes) as process:
        folder = process.stdout.readline().strip()
        assert os.path.dirname(folder) == str(tmp_path)
        janitor = wait_until(lambda: janitors(folder))[0]  # in the midst of its exec() it has no arguments yet
        os.killpg(os.getpgid(int(janitor)), signal.SIGTERM)  # as a service manager that ends the group
        process.send_signal(number)
        process.wait()
    wait_until(lambda: not os.path.exists(folder) and not janitors(folder))


@pytest.mark.process
def test_nobody_else_can_look_into_it_and_nothing_is_left():
    with private_copies() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists() and not janitors(folder)


def test_it_is_not_made_where_there_is_no_room(monkeypatch, tmp_path):
    room = {str(tmp_path): 1000, "/dev/shm": 2 << 30}
    monkeypatch.setattr(private_folder.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(private_folder.tempfile, "mkdtemp", lambda prefix, dir: os.path.join(dir, prefix))
    monkeypatch.setattr(private_folder, "Outliving", lambda *words, **how: SimpleNamespace(tell=str, end=str))
    monkeypatch.setattr(
        private_folder.os, "statvfs", lambda path: SimpleNamespace(f_bavail=room.get(path, 0), f_frsize=1)
    )
    for shared, expected in ((2 << 30, "/dev/shm"), (100 << 20, str(tmp_path))):  # ranks may live on a small one
        room["/dev/shm"] = shared
        with private_copies() as folder:
            assert str(folder.parent) == expected


def test_no_place_at_all_is_one_line(monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(private_folder.tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(private_folder, "_room", lambda folder: 0)
    with pytest.raises(
        GdbextError, match=r"no folder for temporary files .*; set TMPDIR to a writable folder: TMPDIR="
    ), private_copies():
        pass


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(24, "Too many open files", "x.py"), "system error: Too many open files (x.py); raise the limit"),
        (MemoryError(), "out of memory; raise the limit"),
        (KeyError("nothing"), "internal error: KeyError: 'nothing' at test_safety_folder.py:"),
    ],
)
def test_what_nobody_expected_is_one_line(error, said, monkeypatch, capsys):
    def run(options):
        raise error

    monkeypatch.setattr(main.importlib, "import_module", lambda name: SimpleNamespace(run=run))
    assert main.main(["gdbinit"]) == 4
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
