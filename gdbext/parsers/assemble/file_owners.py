"""Texts of several files: whose each one is by its name, and ranks that more than one of them speaks of."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from gdbext.knowledge.log_lines.file_names import FILES
from gdbext.model.job import RankSnapshot
from gdbext.model.text.patterns import regex
from gdbext.parsers.cleaning import UNNAMED, Stream

_FILES = tuple(regex(rule.pattern) for rule in FILES)
_OUTPUT = regex(r"(?i)(?:stdout|stderr|\.out|\.err|error)[^/]{0,12}$")


def join_texts_of_rank(texts: Sequence[Tuple[str, bytes]], owners: Dict[str, Stream]) -> List[Tuple[str, bytes]]:
    """What one rank wrote into several files (its output, its errors) is one text."""
    found: Dict[object, Tuple[str, bytes]] = {}
    for name, data in texts:
        rank = owners[name].rank if name in owners else None
        folder = name.rpartition("/")[0]
        key: object = (folder, rank) if rank is not None and _OUTPUT.search(name) else name
        earlier = found.get(key)
        found[key] = (name, data) if earlier is None else (earlier[0], earlier[1] + b"\n" + data)
    return list(found.values())


def shared_folders(names: Sequence[str]) -> int:
    """How many characters at the beginning of all names are folders that they share: those tell nobody apart."""
    parts = [name.split("/")[:-1] for name in names]
    same = 0
    for several in zip(*parts):
        if len(set(several)) > 1:
            break
        same += len(several[0]) + 1
    return same


def owner_of(name: str) -> Stream:
    """Whose log a file is, by its name."""
    for pattern in _FILES:
        match = pattern.search(name)
        if match:
            said = match.groupdict()
            return Stream(said.get("host") or "", int(said["rank"]) if said.get("rank") else None)
    return UNNAMED


def merge_mentioned_ranks(processes: List[RankSnapshot]) -> List[RankSnapshot]:
    """A rank that one text only speaks of, and another one is of, is there once."""
    shown = {process.rank for process in processes if process.threads or process.said}
    return [one for one in processes if one.threads or one.said or one.rank is None or one.rank not in shown]
