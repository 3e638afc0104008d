"""Stacks of all ranks for speedscope.app: one profile a rank, each thread a sample of weight 1.

The file format is the published one: https://www.speedscope.app/file-format-schema.json. Threads of one name stand
together below that name, so that a pool of a hundred is one block.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from gdbext import __version__
from gdbext.model.job import RankSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.verdict import Diagnosis
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.json.json_text import json_text
from gdbext.render.safe_text import LONGEST, clean
from gdbext.render.style import Style

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_STYLE = Style()
_Key = Tuple[str, Optional[str], Optional[int]]


def profile(diagnosis: Diagnosis, _origin: Optional[Origin]) -> List[str]:
    frames: Dict[_Key, int] = {}
    known: Dict[int, List[int]] = {}  # by the object: equal stacks are one
    profiles = [_of_rank(one, frames, known) for one in diagnosis.snapshot.processes]
    document = {
        "$schema": SCHEMA,
        "name": cause_and_confidence(diagnosis.verdict.cause, diagnosis.verdict.confidence),
        "exporter": f"gdbext {__version__}",
        "activeProfileIndex": min(diagnosis.verdict.culprits, default=0),
        "shared": {"frames": [_frame(key) for key in frames]},
        "profiles": profiles,
    }
    return [json_text(document)]


def _of_rank(process: RankSnapshot, frames: Dict[_Key, int], known: Dict[int, List[int]]) -> Dict[str, Any]:
    threads = [one for one in process.threads if one.frames]
    samples = [_sample(one, frames, known) for one in threads]
    return {
        "type": "sampled",
        "name": f"{process.label}{f' (pid {process.pid})' if process.pid and process.is_named else ''}",
        "unit": "none",
        "startValue": 0,
        "endValue": len(samples),
        "samples": samples,
        "weights": [1] * len(samples),
    }


def _sample(thread: ThreadStack, frames: Dict[_Key, int], known: Dict[int, List[int]]) -> List[int]:
    pool: _Key = (clean(thread.name, _STYLE) or "thread", None, None)
    if id(thread.calls) not in known:
        keys = [_key(frame) for frame in reversed(thread.calls)]
        known[id(thread.calls)] = [frames.setdefault(key, len(frames)) for key in keys]
    return [frames.setdefault(pool, len(frames)), *known[id(thread.calls)]]


def _key(frame: Frame) -> _Key:
    name = clean(frame.function, _STYLE) or "??"
    return name, clean(frame.file or frame.module, _STYLE)[:LONGEST] or None, frame.line or None


def _frame(key: _Key) -> Dict[str, Any]:
    name, file, line = key
    found: Dict[str, Any] = {"name": name}
    if file:
        found["file"] = file
    if line:
        found["line"] = line
    return found
