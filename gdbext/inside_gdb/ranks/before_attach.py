"""What stands in the way of gdb at a process: why attaching would fail, and why frames would have no names."""

from __future__ import annotations

import os
from typing import Iterator, Optional, Sequence, Tuple

import gdb

from gdbext.capture.gdb_traps import WAY
from gdbext.capture.memory.maps import read_maps
from gdbext.discovery.preflight_checks import permission_remedies
from gdbext.discovery.preflight_checks.attach_permission import check, in_other_namespace
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import compat, symbols
from gdbext.model.missing import Missing
from gdbext.model.text.ranges import ranges_text

ATTACH_SETTINGS = {
    **compat.NO_NOTIFICATIONS,
    "confirm": "off",
    "pagination": "off",
    "print inferior-events": "off",
    "python print-stack": "message",  # `compat.run` looks for it
    "debuginfod enabled": "off",  # would ask a question, or wait for the network while ranks stand still
}
_NAMED = 3  # files whose names stand in a line


def obstacle(pid: int) -> Optional[str]:
    """Why attaching would fail, on one line."""
    blocking = [problem for problem in check(ProcFS(), pid).problems if problem.blocking]
    if blocking:
        return "; ".join(text for text in (blocking[0].text, blocking[0].remedy) if text)
    trap = symbols.trap_of(pid)
    return f"{trap}; {WAY}" if trap else None


def is_stopped(pid: int) -> bool:
    """By a signal, before gdb comes."""
    stat = ProcFS().stat(pid)
    return not isinstance(stat, Missing) and stat.state == "T"


def frames_without_names(attached: Sequence[gdb.Inferior]) -> Iterator[str]:
    """Warnings of files that gdb may not open or cannot find; gdb itself is silent while it is quiet."""
    nameless = [one.pid for one in attached if one.pid and not compat.has_program(one.progspace)]
    pids = [pid for pid in nameless if in_other_namespace(ProcFS(), pid) and not _removed(pid)]
    if pids:
        way = permission_remedies.for_entering(ProcFS())
        text = "gdb may not open the files of another container, so frames have no names"
        yield f"{text} (PID {ranges_text(pids)}): {way}; `gdbext diagnose` reads them anyway"
    found = {one.pid: _removed_files(one.pid) for one in attached if one.pid}
    names = list(dict.fromkeys(os.path.basename(path) for paths in found.values() for path in paths))
    if names:  # gdb looks for files by their names only
        text = "gdb cannot read files that were removed or replaced after loading, so their frames have no names: "
        text += ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        owners = ranges_text(pid for pid, paths in found.items() if paths)
        yield f"{text} (PID {owners}); `gdbext diagnose`, run by root of the host, reads them anyway"


def _removed(pid: int) -> bool:
    """Its program is gone, so that nobody finds it by its name."""
    return str(ProcFS().exe(pid)).endswith(" (deleted)")


def _removed_files(pid: int) -> Tuple[str, ...]:
    """Program and libraries that lie no more where they were loaded from. Code that was never a file's is left out."""
    try:
        memory = read_maps(pid)
    except OSError:
        return ()
    gone = [one.file for one in memory if one.is_file and one.executable and one.deleted]
    return tuple(dict.fromkeys(path for path in gone if not path.startswith(("/memfd:", "/dev/"))))
