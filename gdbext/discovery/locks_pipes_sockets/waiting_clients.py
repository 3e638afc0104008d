"""Clients of a process that have sent something and were never sent a byte, by what the kernel counts.

Of an engine in Python the coroutines of its requests may be known (knowledge.causes.asyncio_waits.py). The kernel tells
of any server, also of one in C++, what a connection has carried each way and how long ago (struct tcp_info, tcp(7)): no
process is stopped for it.

Only new connections count. On one that has carried an answer before, the client's last word may be no request: HTTP/2
acknowledges, ZeroMQ has messages that go one way. Their servers, and those of TLS, begin by a word of their own.
"""

from __future__ import annotations

import os
from typing import AbstractSet, Collection, Dict, Mapping, Tuple

from gdbext.discovery.locks_pipes_sockets.open_files import holders, states_and_names
from gdbext.discovery.locks_pipes_sockets.sockets import LISTENS, Ends, socket_rows, sockets_of
from gdbext.discovery.locks_pipes_sockets.tcp_traffic import Traffic, traffic
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.clients import WaitingClient

_AFTER = 5.0  # seconds for an answer before anybody is listed: most servers take some for their work
_MOST = 64  # clients, those first that have waited longest
_MOST_ASKED = 1024  # connections of a process
_ESTABLISHED = "01"


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
                seconds=one.since_received,
                pids=owners.get(ends, ()),
                names=states_and_names(proc, owners.get(ends, ()))[1],
                unread=one.unread,
            )
            for ends, one in sorted(some.items(), key=lambda pair: -pair[1].since_received)
            if job.isdisjoint(owners.get(ends, ()))
        )[:_MOST]
        for pid, some in late.items()
    }


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _late(connections: Collection[Ends]) -> Dict[Ends, Traffic]:
    """Those of these connections on which nothing was sent back, for so long."""
    asked = {ends: one for ends, one in traffic(connections).items() if one.received and not one.sent}
    return {ends: one for ends, one in asked.items() if one.since_received >= _AFTER}
