"""Clients of a process that have sent something and were never sent a byte, by what the kernel counts.

Of an engine in Python the coroutines of its requests may be known (knowledge.causes.asyncio_waits.py). The kernel tells
of any server, also of one in C++, what a connection has carried each way and how long ago (struct tcp_info, tcp(7)): no
process is stopped for it.

Only new connections count. On one that has carried an answer before, the client's last word may be no request: HTTP/2
acknowledges, ZeroMQ has messages that go one way. Their servers, and those of TLS, begin by a word of their own.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from typing import Collection, Dict, List, NamedTuple, Optional, Tuple

from gdbext.discovery.locks_pipes_sockets.open_files import holders, states_and_names
from gdbext.discovery.locks_pipes_sockets.sock_diag import Link
from gdbext.discovery.locks_pipes_sockets.sockets import LISTENS, Ends, socket_rows, sockets_of
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.clients import WaitingClient

_AFTER = 5.0  # seconds for an answer before anybody is listed: most servers take some for their work
_MOST = 64  # clients, those first that have waited longest
_MOST_ASKED = 1024  # connections of a process
_ESTABLISHED = "01"
_TCP, _INFO, _ANY_STATE, _NO_COOKIE = 6, 2, 0xFFFFFFFF, 0xFFFFFFFF  # INET_DIAG_INFO
_SIZE = 72  # struct inet_diag_msg (linux/inet_diag.h)
_UNREAD = 56  # offset of its idiag_rqueue
_RECEIVED = 52  # of tcpi_last_data_recv, milliseconds ago (linux/tcp.h)
_SEGMENTS_IN, _SEGMENTS_OUT = 152, 156  # of tcpi_data_segs_in and _out: Linux 4.6 and later


class _Asked(NamedTuple):
    """What a connection has brought, and nothing was sent back."""

    seconds: float  # since the last of it came
    unread: int  # bytes of it


def waiting_clients(proc: ProcFS, pid: int, job: Collection[int]) -> Tuple[WaitingClient, ...]:
    """Clients outside of these processes that have waited five seconds or longer for the first byte from the process.
    None where the kernel cannot be asked: in another network namespace than ours, or before Linux 4.6."""
    if proc.namespace(pid, "net") != proc.namespace(os.getpid(), "net"):
        return ()
    rows = {ends: (state, inode) for ends, state, inode in socket_rows(proc, pid)}
    ports = {_port(local) for (local, _), (state, _) in rows.items() if state == LISTENS}
    own = sockets_of(proc, pid)
    accepted = [
        ends
        for ends, (state, inode) in rows.items()
        if state == _ESTABLISHED and inode in own and _port(ends[0]) in ports
    ]
    late = {ends: one for ends, one in _unanswered(accepted[:_MOST_ASKED]).items() if one.seconds >= _AFTER}
    clients = {ends: f"socket:[{rows[other][1]}]" for ends in late for other in [(ends[1], ends[0])] if other in rows}
    held, _ = holders(proc, set(clients.values())) if clients else ({}, True)
    found: List[WaitingClient] = []
    for ends, one in sorted(late.items(), key=lambda pair: -pair[1].seconds):
        pids = tuple(sorted({owner for owner, _ in held.get(clients.get(ends, ""), ())}))
        if not set(pids) & set(job):
            found.append(
                WaitingClient(
                    server=ends[0],
                    address=ends[1],
                    seconds=one.seconds,
                    pids=pids,
                    names=states_and_names(proc, pids)[1],
                    unread=one.unread,
                )
            )
    return tuple(found[:_MOST])


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _unanswered(connections: Collection[Ends]) -> Dict[Ends, _Asked]:
    """Those of these connections on which nothing was sent back."""
    found: Dict[Ends, _Asked] = {}
    with contextlib.suppress(OSError), Link() as link:
        for ends in connections:
            for fixed, attributes in link.ask(_request(ends), _SIZE):
                asked = _read(fixed, attributes.get(_INFO, b""))
                if asked is not None:
                    found[ends] = asked
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


def _read(fixed: bytes, info: bytes) -> Optional[_Asked]:
    """None where an answer has begun, where nothing was asked, and where this kernel does not count."""
    if len(info) < _SEGMENTS_OUT + 4:
        return None
    ago, asked, answered = (struct.unpack_from("=I", info, at)[0] for at in (_RECEIVED, _SEGMENTS_IN, _SEGMENTS_OUT))
    (unread,) = struct.unpack_from("=I", fixed, _UNREAD)
    return _Asked(ago / 1e3, unread) if asked and not answered else None
