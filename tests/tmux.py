"""A terminal as a person has it: tmux, with a shell in it. Keys go in, and what stands on the screen comes out."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any, List, Mapping

from tests.inferiors.pdb_job import ROOT, ends
from tests.polling import DEADLINE

SHELL = "shell> "
_HISTORY = "10000"  # lines


class Tmux:
    """A window of a tmux server of our own. Nothing of it is left after the `with` block."""

    def __init__(self, environment: Mapping[str, str], columns: int = 160, lines: int = 50) -> None:
        self._folder = tempfile.mkdtemp(prefix="gdbext-tmux-")  # a short path: the server's socket lies in it
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": self._folder,
            "TMUX_TMPDIR": self._folder,
            "INPUTRC": "/dev/null",
            "PS1": SHELL,
            "LC_ALL": "C.UTF-8",
            **environment,
        }
        self._size = ("-x", str(columns), "-y", str(lines))
        self._environment.pop("TMUX", None)  # the one that somebody runs the tests in
        self._read = 0  # characters of the screen and its history that `until` has passed
        self._pipe = self._server = self.shell = -1

    def __enter__(self) -> Tmux:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        self._tmux("start-server", ";", "set-option", "-g", "history-limit", _HISTORY, ";", "new-session", "-d",
                   *self._size, "bash", "--norc", "--noprofile", "-i")  # fmt: skip
        self._server, self.shell = (
            int(word) for word in self._tmux("display-message", "-p", "#{pid} #{pane_pid}").split()
        )
        # What is printed comes here, too, and wakes us: tmux says nothing by itself.
        path = os.path.join(self._folder, "printed")
        os.mkfifo(path, 0o600)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._tmux("pipe-pane", f"exec cat >{path}")
        self.until(SHELL)

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-f", "/dev/null", "-L", "gdbext", *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert not done.returncode, f"tmux {words[0]}: {done.stderr}"
        return done.stdout

    def type(self, text: str) -> None:
        """Characters as they are."""
        self._tmux("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: Up, Left, Enter, C-c, ..."""
        self._tmux("send-keys", *keys)

    def enter(self, line: str) -> None:
        self._tmux("send-keys", "-l", "--", line, ";", "send-keys", "Enter")

    def screen(self) -> str:
        """All that was printed and is not overwritten, wrapped lines joined."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-").rstrip("\n")

    def seen(self) -> List[str]:
        """The lines that stand on the screen now, as a person sees them."""
        return self._tmux("capture-pane", "-p").rstrip("\n").split("\n")

    def until(self, *texts: str) -> str:
        """Wait until the texts have come, one after the other; returns what stands there up to the last one."""
        end, begin = time.monotonic() + DEADLINE, self._read
        for text in texts:
            shown = self.screen()
            while text not in shown[self._read :]:
                left = end - time.monotonic()
                assert left > 0, f"no {text!r} in {shown[self._read :]!r}; before: {shown[: self._read][-2000:]!r}"
                if select.select([self._pipe], [], [], left)[0]:
                    os.read(self._pipe, 1 << 16)
                shown = self.screen()
            self._read = shown.index(text, self._read) + len(text)
        return shown[begin : self._read]

    def answer(self, line: str, prompt: str) -> str:
        """What a line brought, up to the next prompt."""
        self.enter(line)
        return self.until(prompt)

    def close(self) -> None:
        """`tmux kill-server`: the window is gone, and everybody in it gets SIGHUP."""
        if not os.path.isdir(self._folder):
            return
        everybody = [*self.everybody(), *([self._server] if self._server > 0 else [])]
        with contextlib.suppress(AssertionError):  # there is no server when it could not be started
            self._tmux("kill-server")
        stayed = [pid for pid in everybody if not ends(pid)]
        for pid in stayed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._pipe >= 0:
            os.close(self._pipe)
        shutil.rmtree(self._folder)
        assert not stayed, f"these outlived their window, and were killed: {stayed}"

    def everybody(self) -> List[int]:
        """Pids of the shell and of what runs in its session."""
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _session(int(name)) == self.shell]


def _session(pid: int) -> int:
    """0 for a process that has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in b"ZX" else int(fields[3])
