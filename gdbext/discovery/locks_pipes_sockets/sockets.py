"""TCP connections between processes of this host, by the kernel's tables (proc_pid_net(5)), and pairs of Unix sockets
(sock_diag(7))."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from typing import Dict, Iterable, Iterator, List, NamedTuple, Set, Tuple

from gdbext.discovery.locks_pipes_sockets.sock_diag import Link
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing

Ends = Tuple[str, str]
"""Local and remote address, as `127.0.0.1:8080`."""

_TABLES = (("tcp", 8), ("tcp6", 32))
_SOCKET = re.compile(r"socket:\[(\d+)\]\Z")
_MOST_ROWS = 65_536
LISTENS = "0A"  # TCP_LISTEN


def connections(proc: ProcFS, pid: int) -> Dict[Ends, int]:
    """Inode of each TCP socket in the network namespace of a process, by its two addresses."""
    return {ends: inode for ends, _, inode in socket_rows(proc, pid)}


def listeners(proc: ProcFS, pids: Iterable[int]) -> Dict[str, Set[int]]:
    """The local addresses at which these processes listen, and which of them hold each socket: a child has a copy of
    its parent's. Processes of one network namespace are meant."""
    addresses: Dict[int, str] = {}
    found: Dict[str, Set[int]] = {}
    for pid in pids:
        if not addresses:
            addresses = {inode: ends[0] for ends, state, inode in socket_rows(proc, pid) if state == LISTENS}
        for inode in sockets_of(proc, pid) & set(addresses):
            found.setdefault(addresses[inode], set()).add(pid)
    return found


def socket_rows(proc: ProcFS, pid: int) -> Iterator[Tuple[Ends, str, int]]:
    """Addresses, state and inode of each socket in the tables of a process's network namespace."""
    for name, width in _TABLES:
        text = proc.text(f"{pid}/net/{name}")
        for line in ("" if isinstance(text, Missing) else text).splitlines()[1 : _MOST_ROWS + 1]:
            fields = line.split()
            if len(fields) > 9 and len(fields[1]) == width + 5 == len(fields[2]) and fields[9].isdigit():
                yield (_address(fields[1]), _address(fields[2])), fields[3], int(fields[9])


def connected_groups(proc: ProcFS, pids: Iterable[int]) -> List[Set[int]]:
    """Which of these processes are connected with each other, directly or by way of another of them; each set once."""
    owners: Dict[int, Set[int]] = {}
    tables: Dict[str, Dict[Ends, int]] = {}
    for pid in pids:
        for inode in sockets_of(proc, pid):
            owners.setdefault(inode, set()).add(pid)
        space = str(proc.namespace(pid, "net"))
        if space not in tables:
            tables[space] = connections(proc, pid)
    groups: List[Set[int]] = []
    for rows in tables.values():
        for (local, remote), inode in rows.items():
            other = rows.get((remote, local))
            ends = owners.get(inode, set()), owners.get(other or 0, set())
            if all(len(end) == 1 for end in ends) and ends[0] != ends[1]:  # what a fork has copied proves nothing
                groups = _joined(groups, ends[0] | ends[1])
    return groups


def _joined(groups: List[Set[int]], pair: Set[int]) -> List[Set[int]]:
    touched = [group for group in groups if group & pair]
    return [group for group in groups if not group & pair] + [pair.union(*touched)]


def sockets_of(proc: ProcFS, pid: int) -> Set[int]:
    files = proc.open_files(pid)
    found = (_SOCKET.match(file) for file in (() if isinstance(files, Missing) else files))
    return {int(match[1]) for match in found if match}


def _address(text: str) -> str:
    """`0100007F:1F90` is 127.0.0.1:8080: words in the order of the machine, the port in that of the network. An IPv4
    address inside an IPv6 one is written as IPv4."""
    words, _, port = text.partition(":")
    raw = b"".join(struct.pack("<I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    if len(raw) == 16 and raw.startswith(bytes(10) + b"\xff\xff"):
        raw = raw[12:]
    if len(raw) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, raw)}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, raw)}]:{int(port, 16)}"


# --- Unix sockets ---

_SHOW_PEER, _SHOW_PENDING, _PEER, _PENDING = 4, 8, 2, 3  # UDIAG_SHOW_PEER, _ICONS, UNIX_DIAG_PEER, _ICONS
_SIZE = 16  # struct unix_diag_msg (linux/unix_diag.h)


class UnixSockets(NamedTuple):
    """By the inode of a Unix socket: that of its other end, and that of the listening socket whose owner has not
    accepted its connection yet."""

    peers: Dict[int, int]
    unaccepted: Dict[int, int]


def unix_sockets() -> UnixSockets:
    """All connected Unix sockets of our network namespace; none when refused."""
    show = _SHOW_PEER | _SHOW_PENDING
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, show, 0xFFFFFFFF, 0xFFFFFFFF)
    found = UnixSockets({}, {})
    with contextlib.suppress(OSError), Link() as link:
        for fixed, attributes in link.ask(request, _SIZE, all_of_them=True):
            (inode,) = struct.unpack_from("=I", fixed, 4)
            for number in _numbers(attributes.get(_PEER, b""))[:1]:
                found.peers[inode] = number
            found.unaccepted.update((number, inode) for number in _numbers(attributes.get(_PENDING, b"")) if number)
    return found


def _numbers(words: bytes) -> List[int]:
    return [number for (number,) in struct.iter_unpack("=I", words[: len(words) & ~3])]
