"""Frames that only report a failure: their caller is what failed."""

from __future__ import annotations

import re
from typing import Optional

from gdbext.knowledge.frames.failures import CRASH_HANDLERS, RAISING, REPORTERS

_RAISING, _REPORTERS = re.compile(RAISING), re.compile(f"{REPORTERS}|{CRASH_HANDLERS}")


def is_raising(function: Optional[str]) -> bool:
    """Whether a frame belongs to the check or to the C++ runtime's way of throwing."""
    return bool(function and _RAISING.match(function))


def reports_failure(function: Optional[str]) -> bool:
    """Whether a function reports what failed, or ends the process for it: its caller is what failed."""
    return is_raising(function) or bool(function and _REPORTERS.match(function))
