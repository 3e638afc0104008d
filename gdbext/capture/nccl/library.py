"""Which release of NCCL a process has loaded, by its files, and where its communicators' members then lie."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.memory.maps import MemoryMap
from gdbext.capture.nccl.communicator_memory import Layout
from gdbext.knowledge.row_kinds import StructRow
from gdbext.knowledge.runtimes.nccl import LAYOUTS
from gdbext.safe_open import files, regular_files
from gdbext.safe_open.kept_open_files import Shelf

Opens = Callable[[str], Optional[str]]
"""Path of a library as the process sees it -> where it can be opened here, or None."""

FromDebugInfo = Callable[[str], Optional[StructRow]]
"""Path of a library -> the row that its debug information tells, or None."""

_OWN_FILE = re.compile(r"/libnccl[^/]*\.so[.\d]*$")
_RELEASE_IN_NAME = re.compile(r"\.so\.(\d+\.\d+\.\d+)$")
# NCCL linked into something else (torch builds with USE_STATIC_NCCL, engines): only these are looked into.
_MAY_HOLD = re.compile(r"/(libtorch_cuda|libtorch_cuda_cu|libmindspore_gpu|nccl_group|libggml-cuda)[^/]*\.so")
_BANNER = re.compile(rb"NCCL version (\d+\.\d+\.\d+)\+cuda")
_MOST_LIBRARIES = 4
_RODATA = ".rodata"


class NcclLibrary(NamedTuple):
    """A mapped object file with NCCL inside."""

    path: str  # as the process sees it
    opens_as: Optional[str]
    release: Optional[str]  # "2.27.3"; None where the file does not say it


class Layouts(NamedTuple):
    """What a process' communicators may look like, the surest first, and why there is no more."""

    layouts: Tuple[Layout, ...]
    libraries: Tuple[NcclLibrary, ...]
    problems: Tuple[str, ...] = ()


def layouts_of(memory: MemoryMap, opens: Opens, from_debug_info: FromDebugInfo) -> Layouts:
    """The layouts of the libraries that are mapped.

    What a file says is remembered: the ranks of a job load the same one.
    """
    libraries = tuple(_libraries(memory, opens))
    layouts: List[Layout] = []
    problems: List[str] = []
    for library in libraries:
        if library.opens_as is None:
            problems.append(f"{os.path.basename(library.path)} is not here: communicators cannot be read without it")
            continue
        identity = _identity(library.opens_as)
        if identity not in _known:
            _known[identity] = tuple(_layouts(library.opens_as, library.release, from_debug_info))
        found = _known[identity]
        layouts += [layout for layout in found if layout not in layouts]
        if not found:
            problems.append(_unknown(library))
    return Layouts(tuple(layouts), libraries, tuple(problems))


def _unknown(library: NcclLibrary) -> str:
    name = os.path.basename(library.path)
    if library.release is None:
        what = f"{name} has no debug information and does not say which release of NCCL it is"
    else:
        what = (
            f"{name} (NCCL {library.release}) has no debug information, and the offsets of this release are not known"
        )
    return f"{what}: its communicators cannot be read"


_known: Dict[Tuple[object, ...], Tuple[Layout, ...]] = {}


def _identity(path: str) -> Tuple[object, ...]:
    try:
        return regular_files.identity_of(files.status(path))
    except OSError:
        return (path,)


def _layouts(path: str, release: Optional[str], from_debug_info: FromDebugInfo) -> Iterator[Layout]:
    row = from_debug_info(path)
    if row is not None:
        yield Layout(row, row.source)
    for known in rows_for(release):
        first, last = known.releases
        yield Layout(known, f"offsets of NCCL {first if first == last else f'{first}-{last}'}")


def rows_for(release: Optional[str]) -> Tuple[StructRow, ...]:
    """Rows that were measured for this release, or for one before and one after it of the same minor version."""
    if release is None:
        return ()
    wanted = _numbers(release)
    return tuple(row for row in LAYOUTS if _numbers(row.releases[0]) <= wanted <= _numbers(row.releases[1]))


def _numbers(release: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def _libraries(memory: MemoryMap, opens: Opens) -> Iterator[NcclLibrary]:
    """Files of NCCL's own; only where there are none, others that may hold it."""
    paths = tuple(dict.fromkeys(mapping.file for mapping in memory if mapping.is_file))
    own = [path for path in paths if _OWN_FILE.search(path)]
    for path in own[:_MOST_LIBRARIES]:
        here = opens(path)
        yield NcclLibrary(path, here, release_of(here, path) if here else None)
    if not own:
        yield from _inside_others([path for path in paths if _MAY_HOLD.search(path)], opens)


def _inside_others(paths: Iterable[str], opens: Opens) -> Iterator[NcclLibrary]:
    for path in list(paths)[:_MOST_LIBRARIES]:
        here = opens(path)
        release = release_of(here, path) if here else None
        if release is not None:
            yield NcclLibrary(path, here, release)


def release_of(opens_as: str, path: str) -> Optional[str]:
    """The release by the file's name, else by the words that NCCL prints at its start ("NCCL version 2.27.3+cuda")."""
    opened, name = None, ""
    with contextlib.suppress(OSError):
        opened = Shelf().open(opens_as)
        name = opened.real_path
    named = _RELEASE_IN_NAME.search(name) or _RELEASE_IN_NAME.search(path)
    if named or opened is None:
        return named.group(1) if named else None
    try:
        with opened.stream() as stream:
            elf = ElfSymbols(stream)
            section = elf.section(_RODATA)
            found = _BANNER.search(elf.content(section)) if section is not None else None
    except (OSError, ValueError):
        return None
    return found.group(1).decode() if found else None
