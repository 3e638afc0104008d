"""Which frame of a stack people are shown: the engine's own, or the first that tells more than how its thread waits."""

from __future__ import annotations

import functools
from typing import Optional, Sequence

from gdbext.analysis.stacks.frame_facts import Known
from gdbext.analysis.stacks.reporting_frames import reports_failure
from gdbext.knowledge.causes.held_by_frames import INSIDE_LOCKS
from gdbext.knowledge.frames.failures import UNWINDERS
from gdbext.knowledge.frames.python.interpreter import TAKES_THE_GIL
from gdbext.knowledge.frames.system import code_owners
from gdbext.knowledge.frames.system.libc import SIGNAL
from gdbext.knowledge.row_kinds import EngineProfile
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex

_OF_THE_GIL = regex(TAKES_THE_GIL)
_INSIDE, _RUNS_LOCKED = map(regex, (INSIDE_LOCKS, r"(?:.*[.:])?" + code_owners.RUNS_LOCKED))
_TRAMPOLINE = regex(f"{SIGNAL}|{code_owners.WAITS_OF_WINDOWS}|{UNWINDERS}")
_INSTALLED = regex(r"/(lib/python\d|site-packages|dist-packages)")
_pattern = functools.lru_cache(maxsize=None)(regex)


def engine_frame(
    stack: Sequence[Known],
    frames: Sequence[Frame],
    start: int,
    profile: Optional[EngineProfile],
    fatal: bool,
    locks: bool,
) -> Optional[int]:
    """The first frame of the engine's own code, from the deciding frame outwards; of a thread that dies the one that
    was checked, not the check that ended it, and of one that waits for a lock the one that asked for it."""
    numbers = [number for number in range(start, len(stack)) if not _TRAMPOLINE.match(stack[number].name or "")]
    numbers = [number for number in numbers if not (fatal and reports_failure(stack[number].name))]
    numbers = [number for number in numbers if not _OF_THE_GIL.match(stack[number].name or "")] or numbers
    if locks:
        asks = next((number for number in numbers if _asks(stack[number])), None)
        numbers = numbers if asks is None else [number for number in numbers if number >= asks]
    if profile is not None:
        spaces = [_pattern(text) for text in profile.namespaces]
        paths = [_pattern(text) for text in profile.python_paths]
        called: Optional[int] = None  # a plugin that the engine has called
        for number in numbers:
            name, frame = stack[number].name, frames[number]
            if stack[number].python:
                if any(path.search(frame.file or "") for path in paths):
                    return number if called is None else called
                called = number if called is None and _is_of_the_site(stack[number], frame) else called
            elif name is not None and any(space.match(name) for space in spaces):
                return number if called is None else called
    for number in numbers:
        if not (stack[number].vendor or stack[number].system or stack[number].entry):
            return number
    named = (one for one in numbers if stack[one].name and not (stack[one].system or stack[one].entry))
    return next(named, None) if fatal else None


def _is_of_the_site(known: Known, frame: Frame) -> bool:
    """Whether it is a plugin or a script: code of Python beside the engine that no package manager has installed."""
    own = not (known.vendor or known.system or known.entry)
    return own and (frame.file or "").startswith("/") and not _INSTALLED.search(frame.file or "")


def _asks(frame: Known) -> bool:
    """Whether a frame is no code of locks, but asked for one."""
    if frame.system or frame.entry or frame.name is None:
        return False
    return not _INSIDE.match(frame.name) or _RUNS_LOCKED.match(frame.name) is not None


def tells(frame: Known) -> bool:
    """Whether a frame says more of its thread than how it waits, or that somebody prints its stack."""
    return not (frame.system or frame.entry or _TRAMPOLINE.match(frame.name or "")) and bool(
        frame.name or frame.library
    )
