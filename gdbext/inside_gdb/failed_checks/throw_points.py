"""The `throw`s of the engines' own code in a running process: where a breakpoint sees failed checks and little else."""

from __future__ import annotations

import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from gdbext.analysis.failures.check_messages import may_be_thrown
from gdbext.capture.elf.object_file import bias_of, file_reader, segments_of
from gdbext.capture.elf.throw_sites import file_contains, throw_sites
from gdbext.capture.machine.interface import ThrowSite
from gdbext.capture.memory.maps import read_maps
from gdbext.inside_gdb.base.exceptions import typeinfo_name
from gdbext.inside_gdb.base.memory import NOW
from gdbext.knowledge.errors.checks import MARKS, NEVER_SEARCHED
from gdbext.model.missing import Maybe, Missing
from gdbext.safe_open import files
from gdbext.safe_open.regular_files import Identity, identity_of

MOST_SITES = 4096
"""Breakpoints in one process; gdb writes each of them at every stop."""
_NEVER = re.compile(NEVER_SEARCHED)
_NO_SITES: Tuple[ThrowSite, ...] = ()


class ThrowPoints(NamedTuple):
    """Addresses in the process, the files they are in, and what could not be searched."""

    addresses: Tuple[int, ...]
    files: Tuple[str, ...]
    problems: Tuple[str, ...]


class ThrowFinder:
    """Searches each object file once, however many ranks have it mapped."""

    def __init__(self) -> None:
        self._known: Dict[Identity, Maybe[Tuple[ThrowSite, ...]]] = {}

    def find(self, pid: int, without: Tuple[str, ...] = ()) -> ThrowPoints:
        """Those of the selected inferior, but for the files named in `without`. It must have the pid."""
        addresses: List[int] = []
        files: List[str] = []
        problems: List[str] = []
        names: Dict[str, Maybe[str]] = {}
        try:
            mapped = [mapping for mapping in read_maps(pid) if mapping.is_file and mapping.executable]
        except OSError as error:
            return ThrowPoints((), (), (f"the map of process {pid}: {error.strerror}",))
        for mapping in mapped:
            if mapping.file in without or mapping.file in files or _NEVER.match(os.path.basename(mapping.file)):
                continue
            path = f"/proc/{pid}/root{mapping.file}"
            sites = self._sites(path)
            if isinstance(sites, Missing):
                problems.append(f"{mapping.file}: {sites.reason}; its throws are not watched")
                continue
            bias = bias_of(segments_of(file_reader(path)), mapping) if sites else None
            if bias is None:
                continue
            files.append(mapping.file)
            addresses += [site.address + bias for site in sites if _may_be_check(site, bias, names)]
        if len(addresses) > MOST_SITES:
            problems.append(f"only {MOST_SITES} of {len(addresses)} throws are watched")
        return ThrowPoints(tuple(addresses[:MOST_SITES]), tuple(files), tuple(problems))

    def _sites(self, path: str) -> Maybe[Tuple[ThrowSite, ...]]:
        try:
            key = identity_of(files.status(path))
        except OSError:  # deleted, or out of reach: a driver's mapping, JIT code
            return _NO_SITES
        if key not in self._known:
            self._known[key] = _search(path)
        return self._known[key]


def _search(path: str) -> Maybe[Tuple[ThrowSite, ...]]:
    try:
        return tuple(throw_sites(path)) if file_contains(path, MARKS) else _NO_SITES
    except (OSError, ValueError) as error:
        return Missing(str(error))


def _may_be_check(site: ThrowSite, bias: int, names: Dict[str, Maybe[str]]) -> bool:
    """Whether a check may throw this type. What cannot be told counts."""
    if site.typeinfo is None:
        return True
    key = f"{site.typeinfo + bias:x}{site.indirect}"
    if key not in names:
        place: Optional[int] = site.typeinfo + bias
        if site.indirect:
            place = NOW.read_pointer(place or 0)
        found = typeinfo_name(place) if place else None
        names[key] = found if found else Missing("no typeinfo there")
    name = names[key]
    return isinstance(name, Missing) or may_be_thrown(name)
