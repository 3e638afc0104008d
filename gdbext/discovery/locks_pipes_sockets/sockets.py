"""TCP connections between processes of this host, by the kernel's tables (proc_pid_net(5)), and pairs of Unix sockets
(sock_diag(7))."""

from __future__ import annotations

import re
import socket
import struct
from typing import Dict, Iterable, Iterator, List, Set, Tuple

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing

Ends = Tuple[str, str]
"""Local and remote address, as `127.0.0.1:8080`."""

_TABLES = (("tcp", 8), ("tcp6", 32))
_SOCKET = re.compile(r"socket:\[(\d+)\]\Z")
_MOST_ROWS = 65_536
_LISTENS = "0A"  # TCP_LISTEN
_SECONDS = 0.5


def connections(proc: ProcFS, pid: int) -> Dict[Ends, int]:
    """Inode of each TCP socket in the network namespace of a process, by its two addresses."""
    return {ends: inode for ends, _, inode in _rows(proc, pid)}


def listeners(proc: ProcFS, pids: Iterable[int]) -> Dict[str, Set[int]]:
    """The local addresses at which these processes listen, and which of them hold each socket: a child has a copy of
    its parent's. Processes of one network namespace are meant."""
    addresses: Dict[int, str] = {}
    found: Dict[str, Set[int]] = {}
    for pid in pids:
        if not addresses:
            addresses = {inode: ends[0] for ends, state, inode in _rows(proc, pid) if state == _LISTENS}
        for inode in _sockets(proc, pid) & set(addresses):
            found.setdefault(addresses[inode], set()).add(pid)
    return found


def _rows(proc: ProcFS, pid: int) -> Iterator[Tuple[Ends, str, int]]:
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
        for inode in _sockets(proc, pid):
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


def _sockets(proc: ProcFS, pid: int) -> Set[int]:
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

_SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, _DONE, _ERROR = 20, 0x301, 3, 2
_SHOW_PEER, _PEER = 4, 2  # UDIAG_SHOW_PEER, UNIX_DIAG_PEER (linux/unix_diag.h)
_HEADER = struct.Struct("=IHHII")


def unix_peers() -> Dict[int, int]:
    """Inode of the other end by inode, of all connected Unix sockets of our network namespace; empty when refused."""
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, _SHOW_PEER, 0xFFFFFFFF, 0xFFFFFFFF)
    peers: Dict[int, int] = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 4) as link:  # NETLINK_SOCK_DIAG
            link.settimeout(_SECONDS)
            head = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
            link.sendto(head + request, (0, 0))
            while _take(link.recv(1 << 18), peers):
                pass
    except OSError:
        pass
    return peers


def _take(data: bytes, peers: Dict[int, int]) -> bool:
    """Read one answer; False behind the last one."""
    at = 0
    while at + _HEADER.size <= len(data):
        size, kind = struct.unpack_from("=IH", data, at)
        if kind in (_DONE, _ERROR) or size < _HEADER.size:
            return False
        (inode,) = struct.unpack_from("=I", data, at + _HEADER.size + 4)
        attribute = at + _HEADER.size + 16
        while attribute + 8 <= at + size:
            length, name = struct.unpack_from("=HH", data, attribute)
            if name == _PEER:
                (peers[inode],) = struct.unpack_from("=I", data, attribute + 4)
            attribute += max(4, length + 3 & ~3)
        at += size + 3 & ~3
    return bool(data)
