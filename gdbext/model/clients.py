"""Who has asked a process for something and has got no answer, by what the kernel knows of their connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class WaitingClient:
    """The other end of a TCP connection that a process has accepted, no process of the job: it has sent something, and
    was never sent a byte."""

    server: str  # the process's own address, "127.0.0.1:8000"
    address: str  # of the client, "10.0.0.5:51234"
    seconds: float  # since it sent the last of what it has sent
    pids: Tuple[int, ...] = ()  # of this host, that have its end; none: it is on another host, or may not be seen
    names: Tuple[str, ...] = ()  # comm of each of them
    unread: int = 0  # bytes that the process has not read yet
