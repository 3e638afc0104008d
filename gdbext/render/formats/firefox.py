"""All looks for the Firefox profiler (profiler.firefox.com): a track for each thread, a sample for each look.

Its processed profile format, version 60, which every later profiler upgrades: tables of columns that refer to each
other by number, shared by all threads (firefox-devtools/profiler: docs-developer/CHANGELOG-formats.md and
src/types/profile.ts).
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from gdbext import __version__
from gdbext.model.look_origin import Origin
from gdbext.model.stack import Frame
from gdbext.model.verdict import Diagnosis
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.formats.looks import RankLanes, ThreadLane, function_of, place_in, timeline
from gdbext.render.json.json_text import json_text

VERSION = 60
_GECKO = 31  # of Gecko's own profiles; the profiler asks for one
_CATEGORIES = (("Other", "grey"), ("Native", "blue"), ("Python", "yellow"))
_Row = Tuple[Any, ...]


def profile(diagnosis: Diagnosis, _origin: Optional[Origin]) -> List[str]:
    looks = timeline(diagnosis)
    tables = _Tables()
    times = [round(1000 * start, 3) for start in looks.starts[:-1]]
    threads = [
        _thread(tables, number, rank, thread, times)
        for number, rank in enumerate(looks.ranks)
        for thread in rank.threads
    ]
    verdict, taken = diagnosis.verdict, (*diagnosis.snapshot.earlier, diagnosis.snapshot)[0].taken_at
    interval = 1000 * (looks.starts[-1] - looks.starts[-2])
    left_out = sum(rank.left_out for rank in looks.ranks)
    document = {
        "meta": {
            "interval": interval,
            "startTime": 1000 * (taken or 0),
            "processType": 0,
            "product": cause_and_confidence(verdict.cause, verdict.confidence),
            "importedFrom": f"gdbext {__version__}",
            "misc": f"{left_out:,} threads have no room and are left out" if left_out else "",
            "stackwalk": 1,
            "version": _GECKO,
            "preprocessedProfileVersion": VERSION,
            "symbolicated": True,
            "symbolicationNotSupported": True,
            "usesOnlyOneStackType": False,
            "sourceCodeIsNotOnSearchfox": True,
            "markerSchema": [],
            "categories": [{"name": name, "color": color, "subcategories": ["Other"]} for name, color in _CATEGORIES],
        },
        "libs": [],
        "shared": tables.document(),
        "threads": threads,
    }
    return [json_text(document)]


def _thread(tables: _Tables, number: int, rank: RankLanes, thread: ThreadLane, times: List[float]) -> Dict[str, Any]:
    process = rank.process
    stacks = [tables.stack(calls) for calls in thread.stacks]
    return {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": f"{thread.name} {thread.id}",
        "isMainThread": thread is rank.threads[0],
        "processName": rank.name,
        "pid": f"{process.pid if process.pid is not None else 'p'}.{number}",  # hosts may have the same pids
        "tid": f"{thread.id}.{number}",
        "samples": {
            "stack": stacks,
            "time": times,
            "weight": None,
            "weightType": "samples",
            "length": len(stacks),
        },
        "markers": {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0},
    }


class _Tables:
    """Every string, function, frame and stack once, by its number."""

    def __init__(self) -> None:
        self._strings: Dict[str, int] = {}
        self._sources: Dict[str, int] = {}
        self._functions: Dict[_Row, int] = {}
        self._frames: Dict[_Row, int] = {}
        self._stacks: Dict[Tuple[int, Optional[int]], int] = {}

    def stack(self, calls: Tuple[Frame, ...]) -> Optional[int]:
        """Of calls, innermost first; None where there are none."""
        at = None
        for frame in reversed(calls):
            key = (self._frame(frame), at)
            at = self._stacks.setdefault(key, len(self._stacks))
        return at

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _frame(self, frame: Frame) -> int:
        place, line = place_in(frame)
        source = self._sources.setdefault(place, len(self._sources)) if place else None
        row = (self._string(function_of(frame)), source)
        function = self._functions.setdefault(row, len(self._functions))
        category = 2 if frame.language == "python" else 1
        return self._frames.setdefault((function, category, line), len(self._frames))

    def document(self) -> Dict[str, Any]:
        """`shared`. A table is its columns and its length."""
        filenames = [self._string(place) for place in self._sources]
        frames, functions, stacks = list(self._frames), list(self._functions), list(self._stacks)
        return {
            "stackTable": _table(len(stacks), frame=[one[0] for one in stacks], prefix=[one[1] for one in stacks]),
            "frameTable": _table(
                len(frames),
                address=[-1] * len(frames),
                inlineDepth=[0] * len(frames),
                category=[one[1] for one in frames],
                subcategory=[0] * len(frames),
                func=[one[0] for one in frames],
                nativeSymbol=[None] * len(frames),
                innerWindowID=[0] * len(frames),
                line=[one[2] for one in frames],
                column=[None] * len(frames),
            ),
            "funcTable": _table(
                len(functions),
                name=[one[0] for one in functions],
                isJS=[False] * len(functions),
                relevantForJS=[False] * len(functions),
                resource=[-1] * len(functions),
                source=[one[1] for one in functions],
                lineNumber=[None] * len(functions),
                columnNumber=[None] * len(functions),
            ),
            "resourceTable": _table(0, lib=[], name=[], host=[], type=[]),
            "nativeSymbols": _table(0, libIndex=[], address=[], name=[], functionSize=[]),
            "sources": _table(len(filenames), uuid=[None] * len(filenames), filename=filenames),
            "stringArray": list(self._strings),
        }


def _table(length: int, **columns: List[Any]) -> Dict[str, Any]:
    return {**columns, "length": length}
