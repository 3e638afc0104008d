"""One JSON object a line over a Unix stream socket, between ranks and terminals of one user."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import threading
import time
from typing import Any, Dict, Iterator, Optional, Tuple

LONGEST = 1 << 20
"""Bytes of one message; a peer that sends more is no peer of ours."""

AWAKE = 1.0
"""Seconds that a main thread waits at a stretch. A signal that comes right before a wait begins does not end it, and
its handler runs after it."""

Message = Dict[str, Any]


class Wire:
    """A connection. `receive` is for one thread at a time, `send` for any."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""
        self._sending = threading.Lock()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> bool:
        """False when the other side is gone."""
        data = json.dumps(message).encode() + b"\n"
        try:
            with self._sending:
                self._socket.sendall(data)
        except OSError:
            return False
        return True

    def receive(self, timeout: Optional[float] = None) -> Optional[Message]:
        """The next message; None when the other side is gone or no peer of ours. Raises `socket.timeout`."""
        until = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._rest:
            if len(self._rest) > LONGEST:
                return None
            left = None if until is None else min(max(0.001, until - time.monotonic()), AWAKE)
            try:
                self._socket.settimeout(left)
                data = self._socket.recv(1 << 16)
            except socket.timeout:
                if until is not None and time.monotonic() >= until:
                    raise
                continue
            except OSError:
                return None
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None

    def has_more(self) -> bool:
        """Whether `receive` has something to say at once."""
        if b"\n" in self._rest:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def is_gone(self) -> bool:
        """Whether the other side has closed."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Also for a thread that waits in `receive`: it gets None."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side was first
        self._socket.close()

    def peer(self) -> Tuple[int, int]:
        """Pid and user of the other side (SO_PEERCRED): as it was when it connected, or began to listen."""
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, user, _ = struct.unpack("3i", credentials)
        return pid, user

    def is_ours(self) -> bool:
        """Whether the other side runs as this user or as root."""
        return self.peer()[1] in (0, os.geteuid())


@contextlib.contextmanager
def short_path(path: str) -> Iterator[str]:
    """Another name of `path` while the block runs: the address of a Unix socket has 108 bytes, a path may have more."""
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def connect(path: str, timeout: float = 5.0) -> Optional[Wire]:
    """A connection to the process that listens at `path`; None when there is none, or it is another user's than the
    folder. Raises OSError when it is not permitted."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        with short_path(path) as name:
            owner = os.stat(os.path.dirname(name)).st_uid
            connection.connect(name)
    except (ConnectionRefusedError, FileNotFoundError, socket.timeout):
        connection.close()
        return None
    except OSError:
        connection.close()
        raise
    wire = Wire(connection)
    if wire.peer()[1] not in (0, owner):
        wire.close()
        return None
    return wire
