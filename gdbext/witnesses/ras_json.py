"""RAS' answer in JSON (NCCL 2.28.7 and newer): operation counts of every rank of every communicator.

The keys are those of NCCL 2.28.9 and 2.32.3 (strings of the PyPI wheels). Counts are of launches on the host, by kind
of collective; that all are equal does not mean that anything completed (NVIDIA/nccl#1730).
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from gdbext.model.text.ranges import ranges_text
from gdbext.model.witness import Statement
from gdbext.witnesses import bounded_json
from gdbext.witnesses.addresses import bare_name, is_this_host
from gdbext.witnesses.question import Asked

_MOST_COMMUNICATORS = 4096
_MOST_RANKS = 1 << 20
_MOST_STATEMENTS = 4096
_LONGEST = 40  # characters of a name


def statements(text: str, by_pid: Mapping[int, Asked]) -> Tuple[str, List[Statement]]:
    """(who answered, what it says). Raises `ValueError` for anything that is not RAS' document."""
    document, communicators = _read(text)
    said: List[Statement] = []
    for one in communicators:
        said += itertools.islice(_communicator(one, by_pid), _MOST_STATEMENTS - len(said))
    version = _text(document.get("nccl_version", "of unknown version"))
    order = {"dead": 0, "gone-wrong": 1, "behind": 2}
    said.sort(key=lambda statement: order.get(statement.says, 9))
    noun = "communicator" if len(communicators) == 1 else "communicators"
    return f"NCCL {version}, {len(communicators)} {noun}", said


def hosts(text: str) -> List[str]:
    """Where the ranks are, in the order of the answer. Raises `ValueError` for anything that is not RAS' document."""
    _, communicators = _read(text)
    rows = (row for one in communicators for key in ("ranks", "missing_ranks") for row in _rows(one, key))
    names = (bare_name(row["host"]) for row in rows if isinstance(row.get("host"), str) and len(row["host"]) <= 256)
    return list(dict.fromkeys(filter(None, names)))


def _read(text: str) -> Tuple[Dict[str, Any], List[Dict[str, Any]]]:
    document = bounded_json.loads(text)
    if not isinstance(document, dict) or not isinstance(document.get("communicators"), list):
        raise ValueError("no communicators in it")
    communicators = [one for one in document["communicators"][:_MOST_COMMUNICATORS] if isinstance(one, dict)]
    return document, communicators


def _communicator(data: Mapping[str, Any], by_pid: Mapping[int, Asked]) -> Iterator[Statement]:
    name = f"communicator {_text(data.get('hash', '?'))}"
    ranks = _rows(data, "ranks")
    for row in _rows(data, "missing_ranks"):
        state = row.get("status")
        lost = isinstance(state, dict) and (state.get("considered_dead") or state.get("unresponsive"))
        how = "does not answer its peers" if lost else "is missing"
        yield Statement(f"rank {_rank(row)} of {name} {how}", "dead" if lost else "fact", _index(row, by_pid))
    for row in ranks:
        status = row.get("status")
        if isinstance(status, dict):
            yield from _row_problems(name, row, status, _index(row, by_pid))
    yield from _counts(name, _number(data.get("size")), ranks, by_pid)


def _rows(data: Mapping[str, Any], key: str) -> List[Dict[str, Any]]:
    rows = data.get(key)
    return [row for row in rows[:_MOST_RANKS] if isinstance(row, dict)] if isinstance(rows, list) else []


def _row_problems(
    name: str, row: Mapping[str, Any], status: Mapping[str, Any], index: Optional[int]
) -> Iterator[Statement]:
    error = status.get("async_error")
    if isinstance(error, int) and error not in (0, 7):  # ncclSuccess, ncclInProgress
        yield Statement(f"rank {_rank(row)} of {name} has recorded error {error}", "gone-wrong", index)
    if status.get("abort_flag") is True:
        yield Statement(f"rank {_rank(row)} of {name} has been told to abort", "gone-wrong", index)


def _counts(name: str, size: int, ranks: List[Dict[str, Any]], by_pid: Mapping[int, Asked]) -> Iterator[Statement]:
    counted = [(row, row["collective_counts"]) for row in ranks if isinstance(row.get("collective_counts"), dict)]
    if len(counted) < 2:
        return
    operations = sorted({str(key) for _, counts in counted for key in counts})[:64]
    equal = True
    for operation in operations:
        numbers = [_number(counts.get(operation)) for _, counts in counted]
        most = max(numbers)
        late = [(row, number) for (row, _), number in zip(counted, numbers) if number < most]
        equal = equal and not late
        for row, number in late[:16]:
            text = f"rank {_rank(row)} of {name} has launched {number} {_text(operation)}, others {most}"
            yield Statement(text, "behind", _index(row, by_pid))
    if equal:
        members = _text(ranges_text(_number(row.get("rank")) for row, _ in counted), 200)
        says = "in-sync" if len(counted) == size else "fact"
        made = ", ".join(f"{_text(operation)} {_number(counted[0][1].get(operation))}" for operation in operations[:8])
        yield Statement(f"ranks {members} of {name} have launched the same operations ({made})", says)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _rank(row: Mapping[str, Any]) -> str:
    return _text(row.get("rank", "?"), 12)


def _text(value: Any, most: int = _LONGEST) -> str:
    """Of a name or a number; what is neither is a question mark."""
    text = str(value) if isinstance(value, (str, int, float)) else "?"
    return text if len(text) <= most else text[:most] + "..."


def _index(row: Mapping[str, Any], by_pid: Mapping[int, Asked]) -> Optional[int]:
    pid = row.get("pid")
    one = by_pid.get(pid) if isinstance(pid, int) else None
    return one.index if one is not None and is_this_host(_text(row.get("host", ""), 256)) else None
