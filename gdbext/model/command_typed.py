"""The command line that brought an answer: how much of it is wanted, and what the next one is made of."""

from __future__ import annotations

from dataclasses import dataclass

BRIEF, USUAL, FULL = "brief", "usual", "full"
"""The last lines of an answer alone; its table as well; all that is known, as `-v` shows it."""


@dataclass(frozen=True)
class Typed:
    """`about`: what it was about ("4711", "hang.json"); `command` and `stacks` without it ("gdbext diagnose"), ""
    where nobody can type it again; `page`: the option that makes a page of it, if it was not given."""

    detail: str = USUAL
    command: str = ""
    stacks: str = ""
    about: str = ""
    page: str = ""
