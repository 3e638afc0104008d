"""Where a check stands that is called for every success too: read from its caller's code, without symbols."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Dict, List, Optional, Sequence

import gdb

from gdbext.analysis.failures.check_messages import called_check, looks_like_source
from gdbext.capture.machine.code import code_here
from gdbext.capture.machine.interface import Code
from gdbext.inside_gdb.base.memory import NOW
from gdbext.model.check_report import Failure
from gdbext.model.stack import Frame

_LONGEST = 512
_CALL_BYTES_BEFORE, _FAR = 96, 512
"""Bytes of code before the call in which its constants are loaded, and in which the compiler may have put one that
several checks share."""
_MOST_LINES = 1 << 20


def placed_by_caller(failure: Failure, frames: Sequence[Frame], native: List[gdb.Frame]) -> Failure:
    """The failure with its caller's file and line, where the check itself does not name them."""
    found, code = called_check(frames, failure.what), code_here()
    if found is None or code is None or found[0] + 1 >= len(native):
        return failure
    number, row = found
    if failure.file and (not row.inner or os.path.basename(failure.file) != row.inner):
        return failure
    end = native[number + 1].pc()  # of the caller: behind the call
    constants = code.constants_before(NOW.read(end - _CALL_BYTES_BEFORE, _CALL_BYTES_BEFORE) or b"", end)
    line = constants.get(row.line, 0)
    file = _source_name(constants.get(row.file, 0)) or _only_source(code, end)
    return failure if file is None or not 0 < line < _MOST_LINES else replace(failure, file=file, line=line)


def _source_name(address: int) -> Optional[str]:
    text = NOW.read_cstring(address, _LONGEST) if address else None
    return text if looks_like_source(text) else None


def _only_source(code: Code, end: int) -> Optional[str]:
    """The name of a source file that the code before the call computes the address of, when it is but one."""
    names: Dict[str, None] = {}
    for address in code.addresses_before(NOW.read(end - _FAR, _FAR) or b"", end):
        name = _source_name(address)
        if name is not None:
            names[name] = None
    return next(iter(names)) if len(names) == 1 else None
