"""Where a check stands that is called for every success too: read from its caller's code, without symbols."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Dict, List, Optional, Sequence

import gdb

from gdbext.analysis.checks import called_check, looks_like_source
from gdbext.capture.machine.x86_64.call_constants import FAR, REACH, addresses_before, constants_before
from gdbext.debugger.memory import NOW
from gdbext.model.check_report import Failure
from gdbext.model.stack import Frame

_LONGEST = 512
_MOST_LINES = 1 << 20


def placed_by_caller(failure: Failure, frames: Sequence[Frame], native: List[gdb.Frame]) -> Failure:
    """The failure with its caller's file and line, where the check itself does not name them."""
    found = called_check(frames, failure.what)
    if found is None or found[0] + 1 >= len(native):
        return failure
    number, row = found
    if failure.file and (not row.inner or os.path.basename(failure.file) != row.inner):
        return failure
    end = native[number + 1].pc()  # of the caller: behind the call
    constants = constants_before(NOW.read(end - REACH, REACH) or b"", end)
    line = constants.get(row.line, 0)
    file = _source_name(constants.get(row.file, 0)) or _only_source(end)
    if file is None or not 0 < line < _MOST_LINES:
        return failure
    return replace(failure, file=file, line=line)


def _source_name(address: int) -> Optional[str]:
    text = NOW.read_cstring(address, _LONGEST) if address else None
    return text if looks_like_source(text) else None


def _only_source(end: int) -> Optional[str]:
    """The name of a source file that the code before the call computes the address of, when it is but one."""
    names: Dict[str, None] = {}
    for address in addresses_before(NOW.read(end - FAR, FAR) or b"", end):
        name = _source_name(address)
        if name is not None:
            names[name] = None
    return next(iter(names)) if len(names) == 1 else None
