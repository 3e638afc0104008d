"""`gdbext pdb` in a shell on a terminal, as a person types: keys, job control, and the window that is closed."""

import itertools
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from gdbext.cli.pdb import prompt_terminal
from tests.inferiors.pdb_job import DEADLINE, ROOT, PdbJob, ends
from tests.polling import wait_until

UP, LEFT, CONTROL_C, CONTROL_D, CONTROL_Z = "\x1b[A", "\x1b[D", "\x03", "\x04", "\x1a"


class Window:
    """A terminal with a shell in it."""

    def __init__(self, folder):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "GDBEXT_PDB_DIR": str(folder),
            "HOME": str(folder.parent),
            "XDG_STATE_HOME": str(folder.parent / "state"),
            "TERM": "dumb",
            "INPUTRC": "/dev/null",
            "PS1": "shell> ",
            "LC_ALL": "C.UTF-8",
        }
        self.pid, self._ours = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self.seen = ""
        self.until("shell> ")

    def type(self, keys):
        assert select.select([], [self._ours], [], DEADLINE)[1], "nobody reads what is typed"
        os.write(self._ours, keys.encode())

    def until(self, text):
        """What was shown up to and with the text, which is then forgotten."""
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            ready, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self._ours, 1 << 16).decode(errors="replace").replace("\r\n", "\n")
        shown, _, self.seen = self.seen.partition(text)
        return shown + text

    def answer(self, keys, prompt="(Pdb) "):
        self.type(keys + "\n")
        return self.until(prompt)

    def close(self):
        """The window is closed: everybody in it gets SIGHUP. A shell that stays all the same is killed, and said."""
        if self._ours is None:
            return
        os.close(self._ours)
        self._ours = None
        ended = ends(self.pid)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
            assert ends(self.pid), "not even SIGKILL ends the shell"
        os.waitpid(self.pid, os.WNOHANG)
        assert ended, "the shell outlived its window"


@pytest.fixture
def opened(tmp_path):
    (tmp_path / "meet").mkdir(mode=0o700)
    with PdbJob(tmp_path / "meet", ranks=2, steps=2).start() as job:
        job.all_waiting()
        window = Window(tmp_path / "meet")
        try:
            window.type(f"{sys.executable} -m gdbext pdb\n")
            window.until("(Pdb) ")
            yield job, window
        finally:
            window.close()


@pytest.mark.process
def test_keys(opened, tmp_path):
    job, window = opened
    assert "\n100\n" in window.answer("p mine")
    assert "\n100\n" in window.answer(UP)  # what was typed before
    assert "\n100\n" in window.answer("p mne" + LEFT * 2 + "i")
    window.type("p mine + ")  # a line that nobody wants any more
    window.until("p mine + ")  # the kernel drops what was not read when Ctrl-C comes: the reader would miss both
    window.type(CONTROL_C)
    window.until("(Pdb) ")
    window.type("interact\n")
    window.until(">>> ")
    assert "\n1100\n" in window.answer("print(mine + 1000)", ">>> ")
    window.type(CONTROL_D)
    window.until("(Pdb) ")
    window.type(CONTROL_Z)
    window.until("Stopped")
    window.until("shell> ")
    assert "done" not in job[0].drained()
    window.type("fg\n")
    window.until("pdb\n")
    assert "\n100\n" in window.answer("p mine")
    assert "(time 2)" in window.answer("c")
    window.type(CONTROL_D)
    window.until("shell> ")
    for talker in job.others():
        assert "done" in talker.rest()
    assert not job.sockets()
    history = tmp_path / "state" / "gdbext" / "pdb"
    assert "interact" in history.read_text().splitlines()
    assert history.stat().st_mode & 0o777 == 0o600


@pytest.mark.process
def test_control_c_as_soon_as_the_prompt_stands_there(opened):
    """Right before the read begins: it is not lost."""
    _, window = opened
    for _ in range(20):
        window.type(CONTROL_C)
        window.until("(Pdb) ")
    assert "\n100\n" in window.answer("p mine")


@pytest.mark.process
def test_control_c_while_the_rank_computes(opened):
    _, window = opened
    window.type("exec('print(10 ** 6)\\nwhile True: pass')\n")
    window.until("1000000")
    window.type(CONTROL_C)
    window.until("it alone? ")
    assert "Interrupt" in window.answer("s")
    assert "\n100\n" in window.answer("p mine")


def test_history_goes_through_no_link_and_into_no_folder_of_others(tmp_path, monkeypatch):
    path, other = tmp_path / "gdbext" / "pdb", tmp_path / "other"
    prompt_terminal.keep_history(path, ["p mine", "c"])
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("p mine\nc\n", 0o600)
    other.write_text("as it was")
    path.unlink()
    path.symlink_to(other)
    prompt_terminal.keep_history(path, ["p mine"])
    assert path.is_symlink() and other.read_text() == "as it was"
    path.unlink()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    prompt_terminal.keep_history(path, ["p mine"])
    assert not path.exists()


@pytest.mark.process
def test_the_window_is_closed(opened):
    job, window = opened
    window.close()
    for talker in job.others():
        assert "done" in talker.until("done")
    job[1].until("opens its prompt")  # the second time, and nobody is there
    listed = ["pgrep", "-s", str(window.pid)]
    wait_until(lambda: not subprocess.run(listed, stdout=subprocess.PIPE, timeout=DEADLINE).stdout, "the window's end")


def test_control_c_at_any_line_leaves_no_watcher_behind():
    """One that stays would say it again for ten seconds, to whoever waits then. None is lost: one that comes too late
    for this wait ends the next."""
    here, there = socket.socketpair()
    interrupts = prompt_terminal._Interrupts()
    threads, files = threading.active_count(), set(os.listdir("/proc/self/fd"))

    def once(line):
        """Ctrl-C before that line of what runs. False when fewer lines ran."""
        lines = itertools.count()

        def trace(frame, event, _):
            if frame.f_code.co_filename != prompt_terminal.__file__:
                return None
            if event == "line" and next(lines) == line:
                signal.raise_signal(signal.SIGINT)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with prompt_terminal._interrupted_at_hangup(here, interrupts), interrupts.allowed():
                pass
        finally:
            sys.settrace(before)
        return next(lines) > line

    try:
        for line in itertools.count():
            heard = False
            try:
                more = once(line)
            except KeyboardInterrupt:
                more = heard = True
            assert threading.active_count() == threads and set(os.listdir("/proc/self/fd")) == files, line
            if not more:
                break
            if not heard:
                with pytest.raises(KeyboardInterrupt), interrupts.allowed():
                    pass
        assert line > 20
    finally:
        here.close()
        there.close()
        interrupts.close()


def test_control_c_that_another_thread_gets_is_heard_by_the_one_that_reads():
    here, there = socket.socketpair()
    interrupts, end, threads = prompt_terminal._Interrupts(), threading.Event(), threading.active_count()
    other = threading.Thread(target=end.wait)
    other.start()
    ours, theirs = os.pipe()
    try:
        with pytest.raises(KeyboardInterrupt), prompt_terminal._interrupted_at_hangup(
            here, interrupts
        ), interrupts.allowed():
            signal.pthread_kill(other.ident, signal.SIGINT)
            os.read(ours, 1)  # for ever, but for the watcher
        assert threading.active_count() == threads + 1
    finally:
        end.set()
        other.join()
        for one in (here, there, interrupts):
            one.close()
        os.close(ours)
        os.close(theirs)
