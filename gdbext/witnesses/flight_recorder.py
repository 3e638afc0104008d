"""Dumps of torch's flight recorder: which collective each rank enqueued, started and completed last, and who is behind.

torch writes one file a rank when its watchdog gives up (or when it is asked), as a pickle or as JSON. Keys as in torch
2.13 (`torch._C._distributed_c10d._dump_fr_trace`). A file older than its rank is another job's.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from gdbext.knowledge.causes.witnesses import FLIGHT_RECORDER_DEFAULTS, FLIGHT_RECORDER_PREFIXES
from gdbext.model import plain_pickle
from gdbext.model.text.ranges import ranges_text
from gdbext.model.witness import Statement, Witness
from gdbext.safe_open import files
from gdbext.witnesses import bounded_json
from gdbext.witnesses.question import Asked, Question, absent_witness, failed_witness, present_witness

NAME = "flight recorder"
STALE = 900.0
"""Seconds after which a dump says what was, not what is."""
_MOST_BYTES = 16 << 20
_MOST_ENTRIES = 50_000
_MOST_GROUPS = 1024


@dataclass
class _Dump:
    """One rank's file. `last`: process group -> (enqueued, started, completed); `calls`: (group, number) -> what."""

    rank: Asked
    age: float
    last: Dict[str, Tuple[int, int, int]] = field(default_factory=dict)
    calls: Dict[Tuple[str, int], str] = field(default_factory=dict)


def ask(question: Question) -> Witness:
    """Compare the dumps of all ranks."""
    dumps: List[_Dump] = []
    problems: List[str] = []
    for one in question.ranks:
        place = _newest(one, question.proc)
        if place is None:
            continue
        try:
            dumps.append(_read(place, one))
        except (OSError, ValueError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            problems.append(f"{one.label}: {str(reason)[:80]}")
    if not dumps:
        return failed_witness(NAME, "; ".join(problems[:3])) if problems else absent_witness(NAME, "no dump")
    statements = [Statement(f"the dump of {text}", "fact") for text in problems[:4]]
    statements += list(_compare(dumps))
    oldest = max(dump.age for dump in dumps)
    about = f"dumps of {len(dumps)} of {len(question.ranks)} ranks, up to {oldest:.0f} s old"
    return present_witness(NAME, about, tuple(statements))


_Place = Tuple[str, str]
"""A root, and a path in it."""


def _newest(one: Asked, proc: str) -> Optional[_Place]:
    """The dump of a rank, as seen through its own root; None when there is none from its life time."""
    set_by = next((one.environment[name] for name in FLIGHT_RECORDER_PREFIXES if one.environment.get(name)), None)
    prefixes = (set_by,) if set_by else FLIGHT_RECORDER_DEFAULTS
    numbers = [str(one.rank)] if one.rank is not None else []
    best: Tuple[float, Optional[_Place]] = (0.0, None)
    for prefix in prefixes:
        if "{cache}" in prefix and not one.cache:
            continue
        for ending in (*numbers, *(f"{number}.json" for number in numbers)):
            name = prefix.replace("{cache}", one.cache) + ending
            # No link leads out of its container, or of the folder that it works in.
            root = f"{proc}/{one.pid}/{'root' if name.startswith('/') else 'cwd'}"
            try:
                status = files.status(name, root)
            except OSError:
                continue
            if status.st_mtime >= _start_time(one) and status.st_mtime > best[0]:
                best = (status.st_mtime, (root, name))
    return best[1]


def _start_time(one: Asked) -> float:
    """Seconds since the epoch at which the process began; 0 when unknown."""
    if one.start_time is None:
        return 0.0
    since_boot = one.start_time / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot - 1.0


def _read(place: _Place, one: Asked) -> _Dump:
    root, path = place
    with files.stream(path, root) as file:
        status = os.fstat(file.fileno())
        if status.st_size > _MOST_BYTES:
            raise ValueError(f"longer than {_MOST_BYTES >> 20} MiB")
        data = file.read(_MOST_BYTES)
    document = bounded_json.loads(data) if data.lstrip()[:1] == b"{" else plain_pickle.loads(data)
    if not isinstance(document, dict) or not isinstance(document.get("entries"), (list, dict)):
        raise ValueError("not a flight recorder dump")
    dump = _Dump(one, max(0.0, time.time() - status.st_mtime))
    _fill(dump, document)
    return dump


def _fill(dump: _Dump, document: Mapping[Any, Any]) -> None:
    status = document.get("pg_status")
    if isinstance(status, dict):
        for group, row in list(status.items())[:_MOST_GROUPS]:
            if isinstance(row, dict):
                names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
                enqueued, started, completed = (_number(row.get(name)) for name in names)
                dump.last[str(group)[:80]] = (enqueued, started, completed)
    entries = document["entries"]
    rows = list(entries.values()) if isinstance(entries, dict) else entries
    for row in rows[-_MOST_ENTRIES:]:
        if isinstance(row, dict) and row.get("is_p2p") is not True:
            group = _group(row.get("process_group"))
            dump.calls[group, _number(row.get("collective_seq_id"))] = _call(row)


def _group(value: Any) -> str:
    return str(value[0])[:80] if isinstance(value, (list, tuple)) and value and isinstance(value[0], str) else ""


def _call(row: Mapping[Any, Any]) -> str:
    """`nccl:all_reduce of [[4096]]`: what must be equal on all ranks is the name; sizes may differ."""
    name = row.get("profiling_name")
    return name[:80] if isinstance(name, str) else "?"


def _number(value: Any) -> int:
    """-1 for nothing. The JSON form writes the numbers of a process group as strings."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _compare(dumps: List[_Dump]) -> Iterator[Statement]:
    for group in sorted({group for dump in dumps for group in dump.last}):
        members = [dump for dump in dumps if group in dump.last]
        if len(members) > 1:
            yield from _group_says(group, members)


def _group_says(group: str, members: List[_Dump]) -> Iterator[Statement]:
    name = f"process group {group}"
    enqueued = {dump.rank.index: dump.last[group][0] for dump in members}
    most, least = max(enqueued.values()), min(enqueued.values())
    fresh = all(dump.age <= STALE for dump in members)
    for dump in members:
        number = enqueued[dump.rank.index]
        if number < most:
            following = next(
                (one.calls.get((group, number + 1)) for one in members if (group, number + 1) in one.calls), ""
            )
            text = f"{dump.rank.label} enqueued {_nth(number)} of {name} last, others {_nth(most)}"
            text += f"; it is missing in {following}" if following else ""
            yield Statement(text, "behind" if fresh else "fact", dump.rank.index)
    odd = list(_outliers(group, members, least))
    for dump, text in odd:
        yield Statement(f"{dump.rank.label} {text}", "mismatch" if fresh else "fact", dump.rank.index)
    if most == least and not odd:
        done = min(dump.last[group][2] for dump in members)
        members_text = ranges_text(dump.rank.rank for dump in members if dump.rank.rank is not None)
        tail = f"; {_nth(done)} has completed everywhere" if done >= 0 else ""
        says = "in-sync" if fresh else "fact"
        yield Statement(f"ranks {members_text} of {name} all enqueued up to {_nth(most)}{tail}", says)


def _nth(number: int) -> str:
    return f"collective {number}" if number >= 0 else "nothing"


def _outliers(group: str, members: List[_Dump], until: int) -> Iterator[Tuple[_Dump, str]]:
    """Who is in another operation than most at the first place where they differ."""
    numbers = sorted({number for dump in members for one, number in dump.calls if one == group and number <= until})
    for number in numbers:
        calls = {dump.rank.index: dump.calls[group, number] for dump in members if (group, number) in dump.calls}
        if len(set(calls.values())) > 1:
            names = sorted(calls.values())
            usual = max(set(names), key=names.count)
            for dump in members:
                mine = calls.get(dump.rank.index, usual)
                if mine != usual or names.count(usual) * 2 <= len(names):
                    yield dump, f"made {mine} as collective {number} of process group {group}, others {usual}"
            return
