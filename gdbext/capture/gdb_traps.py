"""What a gdb that attaches, or opens a core, would wait for: it opens by itself whatever the files there name.

It cannot be told to open regular files only, so what it will open is looked at before. What is put there in between is
not seen.
"""

from __future__ import annotations

import os
import stat
import struct
from typing import Iterable, Iterator, Optional, Tuple

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.elf.separate_debug import FOLDERS, IN_ANOTHER_FILE, LINK
from gdbext.safe_open import files, path_lookup
from gdbext.safe_open.mounts import mount_of

WAY = "`gdbext diagnose` reads the rest anyway"
_SCRIPTS = ("-gdb.py", "-gdb.gdb", "-gdb.scm")  # opened before gdb asks whether they are to be trusted
_TERMINALS = frozenset((4, 5, 166, 188, 204, *range(136, 144)))  # majors of ttys (linux, admin-guide/devices.txt)
_MOST_FILES = 8192
_LONGEST = 4096


def trap_among(paths: Iterable[str], root: Optional[str] = None) -> Optional[str]:
    """The first of these files, or of those that they name, at which gdb would wait, and why; None: there is none.
    `root`: that of the process."""
    for number, path in enumerate(dict.fromkeys(paths)):
        if number >= _MOST_FILES:
            break
        for name in (path, *(path + ending for ending in _SCRIPTS)):
            why = _waits(name, root)
            if why:
                return why
        for name, its_root in _named_by(path, root):
            why = _waits(name, its_root)
            if why:
                return f"{why}; {os.path.basename(path)} names it"
    return None


def _waits(path: str, root: Optional[str]) -> Optional[str]:
    """Why an open of this path might not return."""
    if mount_of(path, root) is not None:
        try:
            os.close(files.descriptor(path, root))
        except TimeoutError as error:
            return f"gdb would wait for {path}: {error.strerror}"
        except OSError:
            return None
        return None
    try:
        place = path_lookup.place(path, root)
    except OSError:
        return None
    try:
        status = os.fstat(place)
    finally:
        os.close(place)
    if stat.S_ISFIFO(status.st_mode):
        return f"gdb would wait for {path}, which is a FIFO"
    if stat.S_ISCHR(status.st_mode) and os.major(status.st_rdev) in _TERMINALS:
        return f"gdb would wait for {path}, which is a terminal"
    return None


def _named_by(path: str, root: Optional[str]) -> Iterator[Tuple[str, Optional[str]]]:
    """Where gdb looks for the debug information that an object file names."""
    try:
        with files.stream(path, root) as stream:
            elf = ElfSymbols(stream)
            named = {
                one.name: elf.at(one.offset, min(one.size, _LONGEST)) for one in elf.sections if one.name in _LINKS
            }
    except (OSError, ValueError, struct.error):
        return
    folder = os.path.dirname(path)
    for section, content in named.items():
        name = os.fsdecode(content.split(b"\0")[0])
        if section != LINK:
            yield os.path.join(folder, name), root
            continue
        yield f"{folder}/{name}", root
        yield f"{folder}/.debug/{name}", root
        for system in FOLDERS:
            yield f"{system}{folder}/{name}", None


_LINKS = IN_ANOTHER_FILE | {LINK}
