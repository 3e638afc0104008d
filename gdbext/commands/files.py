"""Writing what a command was asked to write."""

from __future__ import annotations

import os

from gdbext.model.errors import GdbextError


def write_private(path: str, text: str) -> None:
    """Write a file that only its owner can read: stacks may hold secrets. Raises GdbextError."""
    place = os.path.expanduser(path)
    try:
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise GdbextError(f"cannot write {path}: {error.strerror}") from None
