"""Xid lines of a kernel's log, given to the process that they are about: by its pid, else by the GPU's PCI bus id.

NCCL's lines tell which process uses which GPU. Where two could be meant, a line stays where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from gdbext.knowledge.errors.xid import BUS_OF_PROCESS, XID_LINE
from gdbext.model.job import RankSnapshot
from gdbext.model.text.digits import integer_or_none
from gdbext.model.text.patterns import regex

_XID, _BUS = regex(XID_LINE), regex(BUS_OF_PROCESS)
_MOST_LINES = 1_000_000
_MOST_XID_LINES = 64


Gpus = Mapping[int, Set[Tuple[str, int]]]
"""By bus id: host and pid of the processes that use a GPU."""


def with_xids(
    processes: Sequence[RankSnapshot], said: Sequence[str], texts: Iterable[Tuple[str, bytes]]
) -> Tuple[List[RankSnapshot], List[str]]:
    """The processes with the Xids that are theirs, without those that are nothing but their Xid line; and what is left
    of the lines of nobody."""
    if not any(_XID.search(line) for line in (*said, *(line for one in processes for line in one.said))):
        return list(processes), list(said)
    gpus = _gpus(texts)
    found = list(processes)
    for one in [one for one in processes if _is_line_alone(one)]:
        at = _owner(found, one, one.said[0], gpus)
        if at is not None:
            found[at] = _with_lines(found[at], one.said)
            found.remove(one)
    left = []
    for line in said:
        at = _owner(found, None, line, gpus) if _XID.search(line) else None
        if at is None:
            left.append(line)
        else:
            found[at] = _with_lines(found[at], (line,))
    return found, left


def _is_line_alone(one: RankSnapshot) -> bool:
    nothing_else = not (one.threads or one.gpu_errors) and one.rank is None
    return nothing_else and bool(one.said) and all(_XID.search(line) for line in one.said)


def _with_lines(process: RankSnapshot, lines: Sequence[str]) -> RankSnapshot:
    return replace(process, said=(*process.said, *lines)[:_MOST_XID_LINES])


def _owner(processes: Sequence[RankSnapshot], but: Optional[RankSnapshot], line: str, gpus: Gpus) -> Optional[int]:
    """The one process that is meant; of several of one pid the one that there is more of."""
    match = _XID.search(line)
    if match is None:
        return None
    owners = {pid for _, pid in found} if len(found := gpus.get(_number(match.group("bus")), set())) == 1 else set()
    for pid in (integer_or_none(match.group("pid")), *owners):
        same = [at for at, one in enumerate(processes) if pid is not None and one.pid == pid and one is not but]
        shown = [at for at in same if processes[at].threads or processes[at].gpu_errors] or same
        if len(shown) == 1:
            return shown[0]
    return None


def _gpus(texts: Iterable[Tuple[str, bytes]]) -> Dict[int, Set[Tuple[str, int]]]:
    found: Dict[int, Set[Tuple[str, int]]] = {}
    for _, data in texts:
        lines = data.decode("utf-8", "replace").split("\n", _MOST_LINES) if b"busId" in data else ()
        for match in (_BUS.search(line) for line in lines if "busId" in line):
            if match is not None:
                found.setdefault(int(match["bus"], 16), set()).add((match["host"], int(match["pid"])))
    return found


def _number(bus: str) -> int:
    """`0000:5e:00` and `0000:5e:00.0` as NCCL prints them: 5e000."""
    parts = bus.replace(".", ":").split(":")
    domain, rest = (parts[0], parts[1:]) if len(parts) > 2 else ("0", parts)
    digits = f"{domain}{rest[0]:>02}{rest[1] if len(rest) > 1 else '00':>02}{rest[2] if len(rest) > 2 else '0'}"
    try:
        return int(digits, 16)
    except ValueError:
        return -1
