"""Opens files of file systems that may not answer, in a process of its own: who waits for a dead server cannot be
interrupted, but can be left behind.

The other process opens the file, reads its first and its last page to see that the data comes too, and hands the
descriptor over. It is started when it is needed first; after the time is up it is killed and not waited for.
"""

from __future__ import annotations

import array
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from gdbext.safe_open.regular_files import Refused

SECONDS = 2.0
"""That one file may take."""
AGAIN_AFTER = 30.0
"""Seconds until a file system that did not answer is asked again."""
_START = 10.0
_LONGEST = 64 << 10  # bytes of a message
_PARENT = str(Path(__file__).resolve().parents[2])
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from gdbext.safe_open.slow_mounts_child import main; main()"


class NoHelper(Exception):
    """The process cannot be started, or has ended."""


class Patient:
    """One such process at a time, for all threads of ours."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._line: Optional[socket.socket] = None
        self._silent: Dict[str, float] = {}  # when it may be asked again

    def open(self, path: str, root: Optional[str], most: int, folder: bool, where: str) -> int:
        """The descriptor. `where` names the file system. Raises `OSError`: TimeoutError when it does not answer."""
        with self._lock:
            if time.monotonic() < self._silent.get(where, 0.0):
                raise TimeoutError(errno.ETIMEDOUT, f"{where} does not answer", path)
            try:
                return self._ask(path, root, most, folder)
            except socket.timeout:
                self._silent[where] = time.monotonic() + AGAIN_AFTER
                self._leave()
                text = f"{where} did not answer within {SECONDS:g} s"
                raise TimeoutError(errno.ETIMEDOUT, text, path) from None
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.filename == path:
                    raise
                self._leave()
                raise NoHelper from error

    def _ask(self, path: str, root: Optional[str], most: int, folder: bool) -> int:
        line = self._line or self._start()
        line.settimeout(SECONDS)
        line.sendall(json.dumps([os.fsencode(path).hex(), root, most, folder]).encode())
        answer, descriptor = receive(line)
        if descriptor is not None:
            return descriptor
        number, text = answer
        raise (Refused if number == errno.EINVAL else OSError)(number, text, path)

    def _start(self) -> socket.socket:
        python = sys.executable if "python" in os.path.basename(sys.executable or "") else shutil.which("python3")
        if python is None:
            raise NoHelper
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = subprocess.Popen(
                [python, "-I", "-S", "-c", _PROGRAM, _PARENT],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        ours.settimeout(_START)
        self._line = ours
        receive(ours)  # it is ready
        return ours

    def _leave(self) -> None:
        """Kill it. One that waits in the kernel ends when the file system lets it: nobody waits for that."""
        child, line, self._child, self._line = self._child, self._line, None, None
        if line is not None:
            line.close()
        if child is not None:
            child.send_signal(signal.SIGKILL)
            _left.append(child)
        _left[:] = [one for one in _left if one.poll() is None]

    def end(self) -> None:
        """Let it go: nothing is left to open."""
        with self._lock:
            self._leave()


_left: List[subprocess.Popen[bytes]] = []


def receive(line: socket.socket) -> Tuple[Tuple[int, str], Optional[int]]:
    """((errno, text), the descriptor that came with it)."""
    room = array.array("i", [-1])
    data, found, _, _ = line.recvmsg(_LONGEST, socket.CMSG_SPACE(room.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in found:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            room = array.array("i")
            room.frombytes(content[: len(content) // room.itemsize * room.itemsize])
            return (0, ""), room[0]
    number, text = json.loads(data)  # nothing came: ValueError
    return (int(number), str(text)), None
