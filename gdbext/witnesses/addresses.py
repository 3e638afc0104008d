"""Whether a network address is one of this machine."""

from __future__ import annotations

import functools
import socket


def is_bindable(family: int, host: str) -> bool:
    """Whether a numeric address is ours: then, and only then, a socket can be bound to it."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def bare_name(name: str) -> str:
    """Without what NCCL prints around it: brackets, an interface, a port."""
    return name.strip("[]").partition("%")[0].partition("<")[0]


@functools.lru_cache(maxsize=1024)
def is_this_host(name: str) -> bool:
    """Whether `name`, our host name or a numeric address as NCCL prints it, means this machine. Resolves nothing."""
    name = bare_name(name)
    if name.partition(".")[0] == socket.gethostname().partition(".")[0]:
        return True
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        socket.inet_pton(family, name)
    except OSError:
        return False
    return is_bindable(family, name)
