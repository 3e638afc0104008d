"""What a rank says of itself, on its stderr."""

from __future__ import annotations

import os
import sys

from gdbext.rankpdb.rank_server import Place


def as_text(place: Place) -> str:
    """A place for people."""
    if place[0].startswith("\t"):
        return "what it runs now"
    name = os.path.basename(place[0].partition("\t")[0])  # what is behind it tells one `--inject` from another
    return name if place[1] == 1 else f"{name} (time {place[1]})"


def say(text: str) -> None:
    try:
        sys.stderr.write(f"gdbext: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # a rank without stderr debugs as well
