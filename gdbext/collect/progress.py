"""Where a look says how far it is: `cli.terminal.Progress`, or whatever has these methods."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """One line for each step."""

    def say(self, text: str) -> None:
        """A step, for whoever wants to know."""

    def note(self, text: str) -> None:
        """What shall be there to be read later."""

    def warn(self, text: str) -> None:
        """What everybody must hear of, with --quiet too."""
