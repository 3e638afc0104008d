"""Writing what a command was asked to write, and the word that names it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from gdbext.model.errors import GdbextError


def write_private(name: str, text: str, mode: int = 0o600) -> None:
    """Write a file that only its owner can read (stacks may hold secrets), whole or not at all.

    A link, a pipe or a device (`/dev/stdout`) is written to as it is. Raises GdbextError.
    """
    target = Path(os.path.expanduser(name))
    if target.is_symlink() or (target.exists() and not target.is_file()):
        _write(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, text, name, mode)
        return
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if not _write_without_name(new, text, mode):
            _write(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, text, name, mode)
        os.rename(new, target)
    except OSError as error:
        raise GdbextError(f"cannot write {name}: {error.strerror}") from None
    finally:
        if new.exists():
            new.unlink()


def _write_without_name(path: Path, text: str, mode: int) -> bool:
    """Write a file that gets its name when it is whole: whoever is killed before leaves nothing. False where that is
    not possible."""
    try:
        descriptor = os.open(path.parent, os.O_WRONLY | os.O_TMPFILE, mode)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)  # with a folder it follows the link
    except OSError:
        return False
    return True


def _write(path: Path, flags: int, text: str, name: str, mode: int) -> None:
    try:
        with open(os.open(path, flags, mode), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        raise GdbextError(f"cannot write {name}: {error.strerror}") from None


def add_json(parser: ArgumentParser) -> None:
    """The option `--json [FILE]`, for the commands of the shell and of gdb."""
    text = "print one JSON document, or write it to FILE"
    parser.add_argument("--json", nargs="?", const="-", type=document_name, metavar="FILE", help=text)


def document_name(word: str) -> str:
    """The FILE of `--json [FILE]`. A number there is a pid that was meant as an argument of the command itself."""
    if word.isdigit():
        raise ArgumentTypeError(f"{word} is a number: put --json behind it (a file of that name: ./{word})")
    return word
