"""What `ranks` and `doctor` answered on many hosts, as one answer. It came from elsewhere: every field is checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from ClusterShell.NodeSet import NodeSet

from gdbext.model.checkup import Checkup, Point
from gdbext.model.job import Job, RankProcess
from gdbext.model.snapshot_files.codec import decode
from gdbext.witnesses import bounded_json


def read_jobs(data: bytes) -> List[Job]:
    """Of the document that `gdbext ranks` writes. Raises `ValueError`."""
    rows: Any = _rows(data, "jobs")
    return [decode(Job, {**row, "key": row.get("job")}) for row in rows]


def read_points(data: bytes) -> List[Point]:
    """Of the document that `gdbext doctor` writes. Raises `ValueError`."""
    return [decode(Point, row) for row in _rows(data, "points")]


def _rows(data: bytes, key: str) -> List[Dict[str, Any]]:
    document = bounded_json.loads(data)
    rows = document.get(key) if isinstance(document, dict) else None
    if isinstance(document, dict) and isinstance(document.get("error"), str):
        raise ValueError(document["error"][:300])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"it has no {key}")
    return rows


def jobs_of(found: Mapping[str, Sequence[Job]]) -> List[Job]:
    """The jobs of each host: that two of them are one job is for a look to say."""
    return [
        replace(job, key=f"{host}, {job.key}", ranks=_at(job.ranks, host), others=_at(job.others, host))
        for host, jobs in found.items()
        for job in jobs
    ]


def _at(processes: Iterable[RankProcess], host: str) -> Tuple[RankProcess, ...]:
    return tuple(replace(one, host=host) for one in processes)


def checkup_of(found: Mapping[str, Sequence[Point]], unread: Mapping[str, str]) -> Checkup:
    """Equal points of several hosts as one. `unread`: why a host could not be asked."""
    hosts_of: Dict[Point, List[str]] = {}
    for host, points in found.items():
        for one in points:
            hosts_of.setdefault(one, []).append(host)
    for host, reason in unread.items():
        hosts_of.setdefault(Point("host", "hindrance", f"not asked: {reason}"), []).append(host)
    return Checkup(tuple(replace(one, text=f"{_host_ranges(hosts)}: {one.text}") for one, hosts in hosts_of.items()))


def _host_ranges(hosts: Sequence[str]) -> str:
    """`node[01-08]`."""
    return str(NodeSet.fromlist(hosts))
