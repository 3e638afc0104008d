"""Whether the debug information of an object file stands in a file of its own, where gdb looks for it.

Every name in an object file is its author's: that of `.gnu_debuglink` may lead anywhere, and to a FIFO.
"""

from __future__ import annotations

import mmap
import os
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.elf.object_file import build_id_of, segments_of
from gdbext.capture.elf.reader import Section
from gdbext.safe_open import path_lookup
from gdbext.safe_open.kept_open_files import Opened, Shelf

FOLDERS = ("/usr/lib/debug", "/usr/local/lib/debug")
"""What gdb calls `debug-file-directory`: below the prefix that it was built for."""
LINK = b".gnu_debuglink"
IN_ANOTHER_FILE = frozenset((b".gnu_debugaltlink", b".debug_sup"))
"""They name a file that several files of debug information share (dwz)."""


class SeparateDebugFile(NamedTuple):
    """The file with the debug information. `name` is that of the link that led to it; None: its build-id did, in a
    folder of the system."""

    file: Opened
    name: Optional[str] = None


def separate_debug_file(
    file: Opened, data: mmap.mmap, sections: Sequence[Section], shelf: Optional[Shelf] = None
) -> Optional[SeparateDebugFile]:
    """That of a mapped file; found by the build-id, then by name (gdb's manual, "Separate Debug Files")."""
    shelf = shelf or Shelf()
    for place, name in _places(file, data, sections):
        try:
            found = shelf.open(place)
        except OSError:
            continue
        if found.identity != file.identity:
            return SeparateDebugFile(found, name)
    return None


def link_of(data: mmap.mmap, sections: Sequence[Section]) -> Optional[str]:
    """The name that the file gives; None without one, and where it leads out of the folders that gdb looks into."""
    link = next((section for section in sections if section.name == LINK), None)
    name = os.fsdecode(data[link.offset : link.offset + min(link.size, 4096)].split(b"\0")[0]) if link else ""
    return None if name in ("", ".", "..") or "/" in name else name


def _places(file: Opened, data: mmap.mmap, sections: Sequence[Section]) -> Iterator[Tuple[str, Optional[str]]]:
    build_id = build_id_of(file.read, segments_of(file.read))
    if build_id:
        for folder in FOLDERS:
            yield f"{folder}/.build-id/{build_id[:2]}/{build_id[2:]}.debug", None
    name = link_of(data, sections)
    if not name:
        return
    root, inside = path_lookup.split_root(file.path)
    folders = {os.path.dirname(file.path), os.path.dirname(file.path if root else file.real_path)}
    for candidate_folder in sorted(folders):
        yield f"{candidate_folder}/{name}", name
        yield f"{candidate_folder}/.debug/{name}", name
    for folder in FOLDERS:
        yield f"{folder}{os.path.dirname(inside)}/{name}", name
