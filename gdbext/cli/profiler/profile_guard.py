"""A small program beside `gdbext profile run`: it stops the profiler when that was killed before it could.

Reads one line of JSON (server, path, token) and then waits: a second line says that all is well, an end without one
that we are gone. It runs in a session of its own, so that no Ctrl-C and no kill of a group ends it too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Optional

from gdbext.cli.profiler.profile_http import Http, NoServer
from gdbext.model.profiling import ProfileServer

_WRITE_SECONDS = 900.0  # seconds that a server may take to write its traces
_START = "from gdbext.cli.profiler.profile_guard import main; main()"


class Guard:
    """It guards from the moment that this returns until `release` or `leave`."""

    def __init__(self, server: ProfileServer, path: str, token: Optional[str]) -> None:
        about = {
            "engine": server.engine,
            "host": server.host,
            "port": server.port,
            "pid": server.pid,
            "tls": server.tls,
        }
        root = str(Path(__file__).parents[2])
        words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {_START}"]
        reader_end, self._tell = os.pipe()
        hear, says = os.pipe()
        moves = [(os.POSIX_SPAWN_DUP2, reader_end, 0), (os.POSIX_SPAWN_DUP2, says, 1)]
        # Not by subprocess: it may outlive us, and nobody waits for it then.
        self._pid = os.posix_spawn(sys.executable, words, os.environ, file_actions=moves)
        os.close(reader_end)
        os.close(says)
        self._say(json.dumps({"server": about, "path": path, "token": token}))
        os.read(hear, 1)
        os.close(hear)

    def release(self) -> None:
        """The profiler is stopped: nothing is left to do."""
        self._say("done")
        os.close(self._tell)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def leave(self) -> None:
        """It is not known to be stopped: let the guard do that, for as long as it takes."""
        os.close(self._tell)

    def _say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # it was killed; then nobody guards
            os.write(self._tell, line.encode() + b"\n")


def main() -> None:
    """The program."""
    with contextlib.suppress(OSError):  # it leads a group already
        os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    line = sys.stdin.readline()
    os.write(1, b"!")
    if not line or sys.stdin.readline():
        return
    about = json.loads(line)
    with contextlib.suppress(NoServer):
        Http(about["token"]).post(ProfileServer(**about["server"]), about["path"], None, _WRITE_SECONDS)
