"""What a row of a table of real servers says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from tests.inferiors.live.table import HEALTHY

NETWORK = "network-transport"


@dataclass(frozen=True)
class Served:
    """One server. `options`: the engine's own; `when`: the fault comes with a `request`, at the `start` of a process,
    or is there when the log `says` it; `stops`: the role that a signal stops; `asks`: what clients do, by a name of
    `server.CLIENTS`; `beside`: a process beside the server, by a name of `server.BESIDE`."""

    name: str
    causes: Tuple[str, ...]
    culprits: Tuple[Tuple[str, ...], ...] = ()
    options: Tuple[str, ...] = ()
    when: str = "request"
    stops: str = ""
    asks: str = "one"
    says: str = ""
    beside: str = ""

    @property
    def healthy(self) -> bool:
        return self.causes[0] == HEALTHY
