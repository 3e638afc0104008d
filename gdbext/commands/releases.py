"""What the ranks of a look run: engine, kernel, libraries and packages, each with its release."""

from __future__ import annotations

from typing import Dict, List, Mapping

from gdbext.capture.memory.maps import parse_maps
from gdbext.capture.symbols.library_versions import of_this_host, versions
from gdbext.model.codes import Given
from gdbext.model.job import JobSnapshot


def releases(snapshot: JobSnapshot, maps: Mapping[int, List[str]]) -> List[str]:
    """Lines of text. `maps`: of the processes that run here, by index."""
    lines = [f"engine: {snapshot.engine or 'unknown'}"]
    live = [one for one in snapshot.processes if one.index in maps and one.given is Given.LIVE]
    lines += [f"{name}: {value}" for name, value in of_this_host().items()] if live else []
    by_engine: Dict[str, List[str]] = {}
    for process in snapshot.processes:
        paths = list(process.libraries)
        paths += {one.path: None for one in parse_maps("\n".join(maps.get(process.index, ())))}
        for name, release in versions(process.pid if process in live else None, paths).items():
            by_engine.setdefault(f"{name} {release}", []).append(process.label)
        if process.python:
            by_engine.setdefault(f"python {process.python}", []).append(process.label)
    everywhere = len(snapshot.processes)
    return lines + [
        text if len(labels) == everywhere else f"{text} ({', '.join(labels)})"
        for text, labels in sorted(by_engine.items())
    ]
