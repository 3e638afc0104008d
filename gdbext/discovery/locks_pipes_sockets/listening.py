"""Which sockets take connections or datagrams: whoever connects or sends, and it may be anybody, brings what a wait for
them is for."""

from __future__ import annotations

import re
from typing import Collection, Dict, Optional

from gdbext.discovery.locks_pipes_sockets.sockets import connections
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing

_NO_PEER = ("0.0.0.0:0", "[::]:0")
_DATAGRAMS = re.compile(r"^\S+: \w+ \w+ \w+ 0002 01\s+(\d+) (\S.*)$", re.MULTILINE)  # SOCK_DGRAM, not connected
_UNIX = re.compile(r"^\S+: \w+ \w+ 00010000 \w+ \w+\s+(\d+)", re.MULTILINE)  # __SO_ACCEPTCON (proc(5), net/unix)


def listening(proc: ProcFS, pid: int, inodes: Collection[int]) -> Dict[int, str]:
    """Those of these sockets that listen, each in words."""
    if not inodes:
        return {}
    ends = connections(proc, pid).items()
    found = {inode: f"tcp {local}" for (local, remote), inode in ends if inode in inodes and remote in _NO_PEER}
    table = proc.text(f"{pid}/net/unix")
    named = () if isinstance(table, Missing) else _UNIX.findall(table)
    found.update({int(inode): f"unix socket:[{inode}]" for inode in named if int(inode) in inodes})
    return found


def takes_datagrams(proc: ProcFS, pid: int, inode: int) -> Optional[str]:
    """The Unix socket in words, if it has a name and no other end: any process that knows the name may send to it."""
    table = proc.text(f"{pid}/net/unix")
    rows = () if isinstance(table, Missing) else _DATAGRAMS.findall(table)
    return next((f"unix {name}" for number, name in rows if int(number) == inode), None)
