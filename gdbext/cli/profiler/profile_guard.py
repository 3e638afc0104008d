"""A small program beside `gdbext profile run`: it stops the profiler when that was killed before it could.

Reads one line of JSON (url, path, token) and then waits: a second line says that all is well, an end without one that
we are gone. Run as a process of its own, in a session of its own, so that no Ctrl-C and no kill of a group ends it too.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Optional

from gdbext.cli.profiler.profile_http import Http, NoServer
from gdbext.model.profiling import ProfileServer

_PATIENCE = 900.0  # seconds that a server may take to write its traces


class Guard:
    """Use it in a `with`; `released` says that the profiler was stopped."""

    def __init__(self, server: ProfileServer, path: str, token: Optional[str]) -> None:
        about = {
            "engine": server.engine,
            "host": server.host,
            "port": server.port,
            "pid": server.pid,
            "tls": server.tls,
        }
        root = str(Path(__file__).parents[2])
        words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); " + _START]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._say(json.dumps({"server": about, "path": path, "token": token}))

    def release(self) -> None:
        """The profiler is stopped: nothing is left to do."""
        self._say("done")
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        if self._process.stdin is not None:
            try:
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:  # it was killed; then nobody guards
                pass


_START = "from gdbext.cli.profiler.profile_guard import main; main()"


def main() -> None:
    """The program."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    about = json.loads(sys.stdin.readline() or "null")
    if about is None or sys.stdin.readline():
        return
    try:
        Http(about["token"]).post(ProfileServer(**about["server"]), about["path"], None, _PATIENCE)
    except NoServer:
        pass
