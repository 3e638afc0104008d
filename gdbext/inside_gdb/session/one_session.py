"""The session of this gdb. The first command makes it; until then no rank of it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

import gdb

from gdbext.commands.declaration import loaded

if TYPE_CHECKING:
    from gdbext.inside_gdb.session.gdb_session import GdbSession

_made: List[GdbSession] = []


def session() -> GdbSession:
    """Loaded and made when it is asked for the first time."""
    if not _made:
        _made.append(loaded("gdbext.inside_gdb.session.gdb_session:GdbSession")())
    return _made[0]


def rank_of(inferior: gdb.Inferior) -> Optional[int]:
    """Rank number of an inferior, None when unknown."""
    return _made[0].rank_of(inferior) if _made else None
