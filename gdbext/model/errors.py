"""Errors that are meant for the user: one line, the next step, and the exit code of the shell command."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

OK, FINDING, USAGE, UNTOLD, NOTHING, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes of `gdbext`: nothing hangs, a finding, wrong usage, it cannot be told, nothing could be read, Ctrl-C.
`model.exit_status` tells which."""

MORE_MEMORY = "give it more memory (ulimit -v, ulimit -d, the limit of the container)"
"""The next step where gdb has too little."""


class GdbextError(Exception):
    """Something the user can act on. `hint` is the next step."""

    hint: str
    exit_code: int = NOTHING

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        if self.hint.endswith("?"):
            return f"{text}. {self.hint}"
        return f"{text}; {self.hint}" if self.hint else text


class UsageError(GdbextError):
    """The command was typed wrongly, or asks for something that must be said more precisely."""

    exit_code = USAGE


class NothingFound(GdbextError):
    """There is nothing to work on: no rank, no thread, no stack."""


class Interrupted(GdbextError):
    """Ctrl-C."""

    exit_code = INTERRUPTED


@contextmanager
def refused_as(message: str, hint: str = "") -> Iterator[None]:
    """What the system refuses in this block is a `GdbextError` with this message and the system's reason; so is text
    that is none."""
    try:
        yield
    except OSError as error:
        raise GdbextError(f"{message}: {error.strerror or error}", hint) from None
    except UnicodeDecodeError:
        raise GdbextError(f"{message}: no text", hint) from None
