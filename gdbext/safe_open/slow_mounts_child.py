"""The other process of slow_mounts.py: opens what it is asked for, and may be kept waiting."""

from __future__ import annotations

import array
import json
import os
import socket
from typing import Any

from gdbext.safe_open.regular_files import open_folder, open_regular

_LONGEST = 64 << 10
_PAGE = 4096


def main() -> None:
    """Answer until nobody asks any more."""
    with socket.socket(fileno=0) as line:
        line.sendall(b'[0, ""]')
        while True:
            request = line.recv(_LONGEST)
            if not request:
                return
            _answer(line, json.loads(request))


def _answer(line: socket.socket, request: Any) -> None:
    path, root, most, folder = os.fsdecode(bytes.fromhex(request[0])), request[1], int(request[2]), bool(request[3])
    try:
        descriptor = open_folder(path, root) if folder else open_regular(path, root, most)
        if not folder:
            size = os.fstat(descriptor).st_size
            for at in {0, max(0, size - _PAGE)}:
                os.pread(descriptor, _PAGE, at)
    except OSError as error:
        line.sendall(json.dumps([error.errno or 0, error.strerror or str(error)]).encode())
        return
    try:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
        line.sendmsg([b'[0, ""]'], [rights])
    finally:
        os.close(descriptor)
