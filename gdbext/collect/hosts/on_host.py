"""What runs on another host, by any Python 3.8 or newer: it takes gdbext as one file, runs it, and sends what it wrote.

Its text goes through the pipe (ssh, srun, kubectl exec, ...) to `sh`, so that nothing needs to be installed there. It
imports the standard library alone. It says lines, each `gdbext1 ["WORD", {...}]`, and takes one JSON object a line;
everything else on the pipe (a message of the day) is nobody's. When the pipe closes, whatever the reason, the look is
interrupted as by Ctrl-C, which lets every rank run on, and the folder goes away.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import importlib.util
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from typing import Any, Dict

MARK = "gdbext1 "
_PIECE = 48 << 10  # bytes of a line of data, before base64
_MOST_FILE, _MOST_LOOK = 64 << 20, 256 << 20
_MOST_ERROR_CHARACTERS = 4000  # characters of what it says
_PR_SET_PDEATHSIG = 1  # sys/prctl.h
_CLEAN_UP = 'read -r line; sleep 1; rm -rf -- "$1"'  # outlives us: also kill -9 leaves nothing behind


def send_message(word: str, **what: Any) -> None:
    """One line of ours. A caller that is gone is noticed by its other pipe."""
    with contextlib.suppress(OSError):
        sys.stdout.write(MARK + json.dumps([word, what]) + "\n")
        sys.stdout.flush()


class Asked:
    """The caller's side of the pipe, unbuffered: what follows a line is a file, and a look is ended when it closes."""

    def __init__(self) -> None:
        self.rest = b""

    def line(self) -> Dict[str, Any]:
        while b"\n" not in self.rest:
            piece = os.read(0, 1 << 16)
            if not piece:
                raise EOFError
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        found: Dict[str, Any] = json.loads(line.decode())
        return found

    def file(self, size: int, digest: str, target: str) -> None:
        """The next `size` bytes into a new file. Raises ValueError when they are not those that were sent."""
        found = hashlib.sha256()
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            while size:
                piece = self.rest or os.read(0, 1 << 16)
                if not piece:
                    raise EOFError
                piece, self.rest = piece[:size], piece[size:]
                size -= len(piece)
                found.update(piece)
                stream.write(piece)
        if found.hexdigest() != digest:
            raise ValueError("the file that came is not the one that was sent")


def main() -> None:
    magic = importlib.util.MAGIC_NUMBER.hex()  # of what this Python compiles
    send_message(
        "hello", time=time.time(), python=sys.version.split()[0], magic=magic, gdb=shutil.which("gdb"), uid=os.geteuid()
    )
    folder = tempfile.mkdtemp(prefix="gdbext-host-")  # 0700
    try:
        words, quiet = ["/bin/sh", "-c", _CLEAN_UP, "gdbext-clean-up", folder], subprocess.DEVNULL
        guard = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)
        serve_caller(Asked(), folder)
        if guard.stdin is not None:
            guard.stdin.close()
    except EOFError:
        pass
    except (OSError, ValueError, KeyError) as error:
        send_message("problem", text=str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve_caller(asked: Asked, folder: str) -> None:
    """Do what is asked until the caller ends it. Raises EOFError when it has gone."""
    program = os.path.join(folder, "gdbext.pyz")
    while True:
        request = asked.line()
        if request["do"] == "clock":
            send_message("clock", time=time.time())
        elif request["do"] == "file" and request["size"] <= _MOST_FILE:
            asked.file(request["size"], request["sha256"], program)
            send_message("ready")
        elif request["do"] == "look":
            look(request, folder, program)
        else:
            return


def look(request: Dict[str, Any], folder: str, program: str) -> None:
    """Run it at the agreed time, send what it wrote, or its error."""
    if request["at"] > time.time() and caller_speaks(request["at"] - time.time()):
        return
    kept, environ = os.path.join(folder, "look.json"), dict(os.environ, XDG_CACHE_HOME=folder, TMPDIR=folder)
    words = [sys.executable, program, *(kept if word == "{LOOK}" else word for word in request["words"])]
    said, its_end = os.pipe()
    began, quiet = time.time(), subprocess.DEVNULL
    child = subprocess.Popen(
        words, stdin=quiet, stdout=quiet, stderr=its_end, env=environ, cwd=folder, preexec_fn=end_with_us
    )
    os.close(its_end)
    last = b""
    while True:
        ready = select.select([said, 0], [], [], max(0.0, began + request["deadline"] - time.time()))[0]
        piece = os.read(said, 1 << 16) if said in ready else b""
        if piece:
            last = (last + piece)[-_MOST_ERROR_CHARACTERS:]
        elif said in ready:  # it has ended
            send(kept, child.wait(), its_error(last.decode("utf-8", "replace")))
            return
        else:  # the caller has gone, or the time is up
            end(child)
            if not ready:
                send_message("problem", text="no answer within {:g} s there".format(request["deadline"]))
            return


def its_error(said: str) -> str:
    """From the last line that begins with its name: an error and what goes with it."""
    _, _, error = ("\n" + said).rpartition("\ngdbext: ")
    return " ".join(error.split())


def end_with_us() -> None:
    """When we are killed, the look gets what Ctrl-C sends."""
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)


def caller_speaks(seconds: float) -> bool:
    """Whether it says something, or goes, before the look begins: then there is none."""
    return bool(select.select([0], [], [], seconds)[0])


def end(child: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does, which lets the ranks run on; by force when that does not end it."""
    for sign, seconds in ((signal.SIGINT, 20), (signal.SIGKILL, 5)):
        child.send_signal(sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
            return


def send(kept: str, status: int, last: str) -> None:
    """The look, packed; or why there is none."""
    try:
        size = os.stat(kept).st_size
        if size > _MOST_LOOK:
            raise OSError(f"its snapshot has {size} bytes")
        with open(kept, "rb") as stream:
            packed = zlib.compress(stream.read(), 6)
    except FileNotFoundError:
        send_message("problem", text=last or f"gdbext ended with status {status} there")
        return
    for start in range(0, len(packed), _PIECE):
        send_message("data", text=base64.b64encode(packed[start : start + _PIECE]).decode())
    send_message("end", sha256=hashlib.sha256(packed).hexdigest())


if __name__ == "__main__":
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job of the background, also by the look
    main()
