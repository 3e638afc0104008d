"""Which files of a folder are traces of ranks, and which rank each is."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.knowledge.ascend_tables import COMMUNICATION, FOLDER, KERNELS, OPERATORS, RANK_FILE, TRACE_VIEW
from gdbext.knowledge.traces import FILE_NAMES, HOST_NAME, ORDER
from gdbext.model.errors import GdbextError, NothingFound, refused_as

MOST = 4096  # files
_DEPTH = 4  # folders below the one that was given
_TRACE = re.compile(r"(\.json(\.gz)?|\.gz)$", re.IGNORECASE)
_OTHERS = re.compile(
    r"^(merged[-.]|perfetto-|profiler_info|profiler_metadata|communication(_matrix)?\.json|.*(memory|kineto_results_).*"
    r"|package\.json|config\.json|tokenizer.*|.*_info_\d+\.json)|memory.*\.json|\.et\.json|execution_trace_et",
    re.IGNORECASE,
)


def find_trace_files(inputs: Sequence[str]) -> List[str]:
    """The trace files that folders and names mean, each once. Raises `GdbextError`, `NothingFound`."""
    paths: List[str] = []
    for name in inputs:
        if os.path.isdir(name):
            paths += _in_folder(name, _DEPTH)
        elif os.path.exists(name):
            paths.append(name)
        else:
            raise GdbextError(f"{name} does not exist", "name the folder of the traces, or the files")
        if len(paths) > MOST:
            raise GdbextError(f"more than {MOST} files", "name the folder of one run")
    unique = list({os.path.realpath(path): path for path in paths}.values())
    if not unique:
        where = ", ".join(inputs)
        raise NothingFound(
            f"no trace in {where}", "traces are named *.json or *.json.gz; gdbext profile run records them"
        )
    return unique


def _in_folder(folder: str, depth: int) -> List[str]:
    with refused_as(f"cannot read the folder {folder}"), os.scandir(folder) as entries:
        sorted_ones = sorted(entries, key=lambda entry: entry.name)
    files = [
        one.path for one in sorted_ones if one.is_file() and _TRACE.search(one.name) and not _OTHERS.search(one.name)
    ]
    if os.path.basename(folder) == FOLDER:
        tables = {KERNELS.file, OPERATORS.file, COMMUNICATION} & {one.name for one in sorted_ones}
        return [path for path in files if os.path.basename(path).startswith(TRACE_VIEW)] or [folder] * bool(tables)
    below = [path for one in sorted_ones if depth and one.is_dir() for path in _in_folder(one.path, depth - 1)]
    return files + below


def labels_of(path: str) -> Tuple[Optional[int], Dict[str, int]]:
    """Rank number and places in each kind of parallelism, as far as the name of a file tells."""
    rank: Optional[int] = None
    labels: Dict[str, int] = {}
    name = os.path.basename(path)
    for row in FILE_NAMES:
        for match in re.finditer(row.pattern, name, re.IGNORECASE):
            said = match.groupdict()
            if said.get("rank") is not None:
                rank = int(said["rank"][:9])
            elif said.get("label"):
                labels[said["label"].lower()] = int(said["number"][:9])
    if rank is None and os.path.basename(os.path.dirname(path)) == FOLDER:
        rank = ascend_rank(os.path.dirname(os.path.dirname(path)))
    return rank, {kind: labels[kind] for kind in ORDER if kind in labels}


def ascend_rank(folder: str) -> Optional[int]:
    """By `profiler_info_3.json` beside the output of an Ascend rank."""
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    found = [one for one in map(re.compile(RANK_FILE).fullmatch, names) if one is not None]
    return int(found[0]["rank"]) if len(found) == 1 else None


def host_in(path: str, keys: Mapping[str, Any]) -> Optional[str]:
    """The host that a trace names, or its file."""
    host = keys.get("host_name") or keys.get("hostName")
    if isinstance(host, str) and host:
        return host[:256]
    named = re.match(HOST_NAME, os.path.basename(path))
    return named["host"] if named else None


def rank_in(keys: Mapping[str, Any]) -> Tuple[Optional[int], Optional[int]]:
    """Rank and world size of `distributedInfo`."""
    said = keys.get("distributedInfo")
    if not isinstance(said, dict):
        return None, None
    return _whole(said.get("rank")), _whole(said.get("world_size"))


def _whole(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None
