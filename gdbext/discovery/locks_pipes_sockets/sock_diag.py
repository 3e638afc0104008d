"""Questions to the kernel about sockets of our network namespace (sock_diag(7)): no process is stopped or entered."""

from __future__ import annotations

import socket
import struct
from typing import Dict, Iterator, NamedTuple

_SECONDS = 0.5  # for an answer
_ROOM = 1 << 18
_BY_FAMILY, _REQUEST, _DUMP, _DONE, _ERROR = 20, 0x1, 0x300, 3, 2  # linux/sock_diag.h, linux/netlink.h
_HEADER = struct.Struct("=IHHII")


class Answer(NamedTuple):
    """What the kernel says of one socket."""

    fixed: bytes  # struct unix_diag_msg, struct inet_diag_msg
    attributes: Dict[int, bytes]


class Link:
    """`with Link() as link:` asks as often as it likes. Raises OSError: refused, or this kernel cannot be asked so."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 4)  # NETLINK_SOCK_DIAG
        self._socket.settimeout(_SECONDS)

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes, size: int, all_of_them: bool = False) -> Iterator[Answer]:
        """Answers whose fixed part has `size` bytes: one, or those of all sockets that the request describes; none
        where there is no such socket."""
        flags = _REQUEST | (_DUMP if all_of_them else 0)
        self._socket.sendto(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, flags, 1, 0) + request, (0, 0))
        while True:
            data = self._socket.recv(_ROOM)
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind = struct.unpack_from("=IH", data, at)
                if kind in (_DONE, _ERROR) or length < _HEADER.size + size:
                    return
                end = min(at + length, len(data))
                fixed = data[at + _HEADER.size : at + _HEADER.size + size]
                yield Answer(fixed, _attributes(data[at + _HEADER.size + size : end]))
                at += length + 3 & ~3
            if not data or not all_of_them:
                return


def _attributes(data: bytes) -> Dict[int, bytes]:
    found: Dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        length, name = struct.unpack_from("=HH", data, at)
        found[name] = data[at + 4 : at + length]
        at += max(4, length + 3 & ~3)
    return found
