"""System calls of x86-64 that wait until something comes: whoever was woken from one has got something."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence, Tuple

_FOR_EVER = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)  # a timeout of -1, as a register holds it

UNTIMED: Mapping[int, Optional[Tuple[int, Sequence[int]]]] = {
    0: None,  # read
    1: None,  # write
    19: None,  # readv
    20: None,  # writev
    43: None,  # accept
    45: None,  # recvfrom
    47: None,  # recvmsg
    61: None,  # wait4
    73: None,  # flock
    247: None,  # waitid
    288: None,  # accept4
    7: (3, _FOR_EVER),  # poll
    23: (5, (0,)),  # select
    202: (4, (0,)),  # futex
    232: (4, _FOR_EVER),  # epoll_wait
    270: (5, (0,)),  # pselect6
    271: (3, (0,)),  # ppoll
    281: (4, _FOR_EVER),  # epoll_pwait
}
"""By number: the place of its timeout in (number, arguments ...) and the values for none; None: it has no timeout."""

CHILD_WAITS: Tuple[str, ...] = ("os-child", "python-child", "python-subprocess")
"""Frame rules of a wait for a child process."""

FROM_ONE: Tuple[str, ...] = ("broadcast", "scatter", "recv")
"""Collectives whose data comes from one rank: the others may wait in them for its next order, as long as it likes."""

OF_ALL: Tuple[str, ...] = ("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "barrier")
"""Collectives that no member can leave before all others have come."""

POOL_WORKER = "pool-worker-idle"
"""Frame rule of a pool's worker that waits for tasks."""

POOL_RESULTS = r"(\w*Result|IMap\w*Iterator|Future)\.(get|wait|next|__next__|result)$|result$"
"""Python functions in which the parent of a pool waits for what its workers do."""
