"""Frames of a sanitizer's reports that have an offset and no name or line: told by the files that they come from."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Dict, List, Optional, Set, Tuple

from gdbext.capture.symbols.module_offsets import Named, name_offsets
from gdbext.model.gpu_errors import GpuError
from gdbext.model.job import JobSnapshot
from gdbext.model.stack import Frame
from gdbext.model.text.mangled import qualified_name
from gdbext.model.text.ranges import counted

_MOST_FILES = 200
_MOST_OFFSETS = 20_000
_SHOWN = 8

_Known = Dict[Tuple[str, int], Named]


def has_offsets(snapshot: JobSnapshot) -> bool:
    """Whether there are frames that a file could tell more of."""
    return bool(_wanted(snapshot))


def with_names(snapshot: JobSnapshot, sysroot: str) -> JobSnapshot:
    """The same with functions and lines by the files below `sysroot`; what of them is not there is said."""
    known: _Known = {}
    missing: List[str] = []
    for module, offsets in sorted(_wanted(snapshot).items())[:_MOST_FILES]:
        found = _of_module(module, sorted(offsets)[:_MOST_OFFSETS], sysroot)
        if found is None:
            missing.append(os.path.basename(module))
        else:
            known.update({(module, offset): one for offset, one in found.items()})
    processes = tuple(
        replace(one, gpu_errors=tuple(_error(error, known) for error in one.gpu_errors)) for one in snapshot.processes
    )
    said: Tuple[str, ...] = ()
    if missing:
        more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
        names = ", ".join(missing[:_SHOWN])
        said = (f"{counted(len(missing), 'file')} of the reports not found in {sysroot}: {names}{more}",)
    return replace(snapshot, processes=processes, problems=(*snapshot.problems, *said))


def _wanted(snapshot: JobSnapshot) -> Dict[str, Set[int]]:
    wanted: Dict[str, Set[int]] = {}
    for process in snapshot.processes:
        for error in process.gpu_errors:
            for frame in error.host_frames:
                if frame.module and frame.module_offset and not frame.line:
                    wanted.setdefault(frame.module, set()).add(frame.module_offset)
    return wanted


def _of_module(module: str, offsets: List[int], sysroot: str) -> Optional[Dict[int, Named]]:
    """By the first of its places that has it: below the root, and in the root itself."""
    clean = os.path.normpath(module)
    places = [os.path.join(sysroot, os.path.basename(clean))]
    if os.path.isabs(clean):
        places.insert(0, sysroot.rstrip("/") + clean)
    for path in places:
        try:
            return name_offsets(path, offsets)
        except (OSError, ValueError):
            continue
    return None


def _error(error: GpuError, known: _Known) -> GpuError:
    return replace(error, host_frames=tuple(_frame(one, known) for one in error.host_frames))


def _frame(frame: Frame, known: _Known) -> Frame:
    found = known.get((frame.module or "", frame.module_offset or 0))
    if found is None or frame.line:
        return frame
    readable = found.symbol and (qualified_name(found.symbol) or found.symbol)
    function = frame.function or readable or None
    return replace(frame, function=function, file=found.file or frame.file, line=found.line)
