"""What gdb is told to open for a file that we hold open: never the name that a target gave.

gdb closes a file after each command and opens it again by its name: what lies there by then may be a FIFO. So it gets
our descriptor, `/proc/PID/fd/N` (inside_gdb/base/symbols.py keeps it from looking for the name behind that link).
A file that names another one, which gdb would open too, it gets as a copy in our folder, without that name.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import BinaryIO, Dict

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.elf.separate_debug import LINK
from gdbext.capture.elf.writer import forget_name
from gdbext.capture.symbols.excerpt import Look
from gdbext.safe_open.kept_open_files import Opened

_PIECE = 1 << 24


class GdbFiles:
    """The names for gdb. What is written goes into `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: Dict[Opened, str] = {}

    def name_of(self, file: Opened, look: Look) -> str:
        """For `add-symbol-file` and the like. Raises `OSError` where there is no room for a copy."""
        if not look.links:
            return file.link
        if file not in self._copies:
            self._copies[file] = self._copied(file, look)
        return self._copies[file]

    def _copied(self, file: Opened, look: Look) -> str:
        folder = self._folder / f"file.{len(self._copies)}"
        folder.mkdir(mode=0o700)
        copy = folder / "file"
        with open(copy, "wb") as into, file.stream() as source:
            shutil.copyfileobj(source, into, _PIECE)
        name = look.apart.name if look.apart else None
        if name is None:
            with open(copy, "r+b") as again:
                _forget_link(again)
        elif look.apart:
            (folder / ".debug").mkdir(mode=0o700)
            with open(folder / ".debug" / name, "wb") as into, look.apart.file.stream() as source:
                shutil.copyfileobj(source, into, _PIECE)
        return str(copy)


def _forget_link(file: BinaryIO) -> None:
    """Give the section with the name of another file no name of its own: nobody finds it then."""
    elf = ElfSymbols(file)
    for number, section in enumerate(elf.sections):
        if section.name == LINK:
            forget_name(file, elf.header_of(number))
