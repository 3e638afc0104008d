"""What systemd is told (sd_notify(3)): a datagram to the socket that it names. Elsewhere nothing happens."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Mapping

from gdbext.model.text.digits import integer_or_none


def notify(text: str, environ: Mapping[str, str] = os.environ) -> None:
    """`READY=1`, `STATUS=...`, `WATCHDOG=1`: lost where nobody listens, and never waited for."""
    address = environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@") or len(address) > 100:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as peer:
        peer.setblocking(False)
        peer.sendto(text.encode("utf-8", "replace")[:4096], address.replace("@", "\0", 1))


def reloading(environ: Mapping[str, str] = os.environ) -> None:
    """The moment goes with it: systemd's `Type=notify-reload` compares it."""
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notify(f"RELOADING=1\nMONOTONIC_USEC={now}", environ)


def watchdog_seconds(environ: Mapping[str, str] = os.environ) -> float:
    """How often it wants a sign of life (half of `WatchdogSec=`); 0: not at all."""
    meant = environ.get("WATCHDOG_PID", "")
    micros = integer_or_none(environ.get("WATCHDOG_USEC"))
    if micros is None or (meant and meant != str(os.getpid())):
        return 0.0
    return micros / 2e6
