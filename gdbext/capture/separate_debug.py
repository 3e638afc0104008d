"""Whether the debug information of an object file stands in a file of its own, where gdb looks for it."""

from __future__ import annotations

import mmap
import os
from typing import Iterator, Optional, Sequence

from gdbext.capture.elf_symbols import Section
from gdbext.capture.object_file import build_id_of, file_reader, segments_of

FOLDERS = ("/usr/lib/debug", "/usr/local/lib/debug")
"""What gdb calls `debug-file-directory`: below the prefix that it was built for."""


def separate_debug_file(path: str, data: mmap.mmap, sections: Sequence[Section]) -> Optional[str]:
    """Path of that of a mapped file; found by the build-id, then by name (gdb's manual, "Separate Debug Files")."""
    places = _places(path, data, sections)
    return next((place for place in places if os.path.exists(place) and not _same(place, path)), None)


def _places(path: str, data: mmap.mmap, sections: Sequence[Section]) -> Iterator[str]:
    read = file_reader(path)
    build_id = build_id_of(read, segments_of(read))
    if build_id:
        for folder in FOLDERS:
            yield f"{folder}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    link = next((section for section in sections if section.name == b".gnu_debuglink"), None)
    name = os.fsdecode(data[link.offset : link.offset + link.size].split(b"\0")[0]) if link else ""
    if name:
        for beside in {os.path.dirname(path), os.path.dirname(os.path.realpath(path))}:
            yield f"{beside}/{name}"
            yield f"{beside}/.debug/{name}"
            for folder in FOLDERS:
                yield f"{folder}{beside}/{name}"


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
