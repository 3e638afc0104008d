"""Breakpoints for one rank of a job while the other ranks wait.

    from gdbext.rankpdb import breakpoint_, clear_

    breakpoint_()            # rank 0, or $RANK_TO_DEBUG: `gdbext pdb` in any terminal of the host opens its prompt
    breakpoint_(rank=2)      # rank 2; the others wait here until it goes on
    breakpoint_(block=False) # the others run on, and wait at the next clear_()
    clear_()

The ranks that wait go on when the debugged rank continues, quits, ends, is killed, or the time is up.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Optional, Type

from gdbext.rankpdb.breakpoint_call import CHOICE, gate
from gdbext.rankpdb.identity import is_no_rank


class _Cleared:
    """What `breakpoint_` returns: `with breakpoint_(block=False): ...` ends in `clear_()`."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        gate.clear()


_CLEARED = _Cleared()
_OFF = os.environ.get(CHOICE, "").lower() in ("none", "off", "-1") or is_no_rank(os.environ)


def breakpoint_(block: bool = True, rank: Optional[int] = None, timeout: Optional[float] = None) -> _Cleared:
    """Stop one rank here. Every rank has to call it.

    `rank`: the one that gets a prompt. Chosen at run time by `gdbext pdb --rank N` it counts for all breakpoints to
    come, else this argument counts, else the environment variable RANK_TO_DEBUG, else it is rank 0. RANK_TO_DEBUG=none
    turns all breakpoints off. `block`: whether the others wait here, or run on to the next `clear_()` and wait there,
    which keeps them from running into a collective that would time out. `timeout`: seconds after which everybody goes
    on (default: $GDBEXT_PDB_TIMEOUT, else 3600). Never raises; what goes wrong is a line on stderr.
    """
    if _OFF:
        return _CLEARED
    gate.stop(sys._getframe(1), block, rank, timeout)
    return _CLEARED


def clear_() -> None:
    """Where ranks that a `breakpoint_(block=False)` let run on wait until the debugged rank has come here, too."""
    gate.clear()


__all__ = ["breakpoint_", "clear_"]
