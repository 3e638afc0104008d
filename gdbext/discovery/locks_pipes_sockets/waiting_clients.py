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
from typing import AbstractSet, Collection, Dict, Mapping, NamedTuple, Optional, Tuple

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


def waiting_clients(proc: ProcFS, job: AbstractSet[int]) -> Mapping[int, Tuple[WaitingClient, ...]]:
    """By pid of a process of the job: clients outside of it that have waited for its first byte for 5 s or longer.
    None where the kernel cannot be asked: in another network namespace than ours, or before Linux 4.6."""
    space = proc.namespace(os.getpid(), "net")
    own = {pid: sockets_of(proc, pid) for pid in job if proc.namespace(pid, "net") == space}
    rows = {ends: (state, inode) for ends, state, inode in socket_rows(proc, min(own))} if any(own.values()) else {}
    ports = {_port(local) for (local, _), (state, _) in rows.items() if state == LISTENS}
    accepted = {
        ends: inode for ends, (state, inode) in rows.items() if state == _ESTABLISHED and _port(ends[0]) in ports
    }
    late = {
        pid: _late([ends for ends, inode in accepted.items() if inode in sockets][:_MOST_ASKED])
        for pid, sockets in own.items()
    }
    other = {ends: f"socket:[{rows[ends[::-1]][1]}]" for some in late.values() for ends in some if ends[::-1] in rows}
    held, _ = holders(proc, set(other.values())) if other else ({}, True)
    owners = {ends: tuple(sorted({pid for pid, _ in held.get(file, ())})) for ends, file in other.items()}
    return {
        pid: tuple(
            WaitingClient(
                server=ends[0],
                address=ends[1],
                seconds=one.seconds,
                pids=owners.get(ends, ()),
                names=states_and_names(proc, owners.get(ends, ()))[1],
                unread=one.unread,
            )
            for ends, one in sorted(some.items(), key=lambda pair: -pair[1].seconds)
            if job.isdisjoint(owners.get(ends, ()))
        )[:_MOST]
        for pid, some in late.items()
    }


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _late(connections: Collection[Ends]) -> Dict[Ends, _Asked]:
    """Those of these connections on which nothing was sent back, for so long."""
    found: Dict[Ends, _Asked] = {}
    with contextlib.suppress(OSError), Link() as link:
        for ends in connections:
            for fixed, attributes in link.ask(_request(ends), _SIZE):
                asked = _read(fixed, attributes.get(_INFO, b""))
                if asked is not None and asked.seconds >= _AFTER:
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
