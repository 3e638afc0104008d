"""What a TCP connection has carried each way, and how long ago, as the kernel counts (struct tcp_info, tcp(7)).

No process is stopped or entered. The connections are those of our own network namespace.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Collection, Dict, NamedTuple, Optional, Tuple

from gdbext.discovery.locks_pipes_sockets.sock_diag import Link
from gdbext.discovery.locks_pipes_sockets.sockets import Ends

_TCP, _INFO, _ANY_STATE, _NO_COOKIE = 6, 2, 0xFFFFFFFF, 0xFFFFFFFF  # INET_DIAG_INFO
_SIZE = 72  # struct inet_diag_msg (linux/inet_diag.h)
_UNREAD = 56  # offset of its idiag_rqueue
_SENT, _RECEIVED = 44, 52  # of tcpi_last_data_sent and tcpi_last_data_recv, milliseconds ago (linux/tcp.h)
_SEGMENTS_IN, _SEGMENTS_OUT = 152, 156  # of tcpi_data_segs_in and _out: Linux 4.6 and later


class Traffic(NamedTuple):
    """Seen from one of the two ends."""

    received: int  # segments with data
    sent: int
    since_received: float  # seconds since the last of them; since the connection was made where there was none
    since_sent: float
    unread: int  # bytes that came and that nobody has read yet

    def owes_nothing_to(self, server: bool) -> bool:
        """Whether the other end has nothing to answer to the one that reads here: the `server` has spoken last.

        False where nobody has spoken: each may wait for the other one's first word. Where both were in one moment, as
        the kernel's clock has it, there must have been as many answers as questions."""
        sent, received = (self.sent, self.since_sent), (self.received, self.since_received)
        (answers, answered), (questions, asked) = (sent, received) if server else (received, sent)
        return answers > 0 and (not questions or answered < asked or (answered == asked and answers == questions))


def traffic(connections: Collection[Ends]) -> Dict[Ends, Traffic]:
    """Of these connections, by the addresses of one end; without those that the kernel does not know or count."""
    found: Dict[Ends, Traffic] = {}
    with contextlib.suppress(OSError), Link() as link:
        for ends in connections:
            for fixed, attributes in link.ask(_request(ends), _SIZE):
                carried = _read(fixed, attributes.get(_INFO, b""))
                if carried is not None:
                    found[ends] = carried
    return found


def _request(ends: Ends) -> bytes:
    """struct inet_diag_req_v2 for the socket with these addresses."""
    hosts, ports = zip(*(_host_and_port(address) for address in ends))
    family = socket.AF_INET if len(hosts[0]) == 4 else socket.AF_INET6
    head = struct.pack("=BBBBI", family, _TCP, 1 << (_INFO - 1), 0, _ANY_STATE)
    addresses = b"".join(host.ljust(16, b"\0") for host in hosts)
    return head + struct.pack(">HH", *ports) + addresses + struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)


def _host_and_port(address: str) -> Tuple[bytes, int]:
    host, _, port = address.rpartition(":")
    family, text = (socket.AF_INET6, host[1:-1]) if host.startswith("[") else (socket.AF_INET, host)
    return socket.inet_pton(family, text), int(port)


def _read(fixed: bytes, info: bytes) -> Optional[Traffic]:
    """None where this kernel does not count."""
    if len(info) < _SEGMENTS_OUT + 4:
        return None
    sent_ago, received_ago, received, sent = (
        struct.unpack_from("=I", info, at)[0] for at in (_SENT, _RECEIVED, _SEGMENTS_IN, _SEGMENTS_OUT)
    )
    (unread,) = struct.unpack_from("=I", fixed, _UNREAD)
    return Traffic(received, sent, received_ago / 1e3, sent_ago / 1e3, unread)
