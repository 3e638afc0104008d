"""Tables of Ascend's profilers, read by the names of their columns: kernels, operators, steps and collectives."""

from __future__ import annotations

import csv
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, TextIO, Tuple

from gdbext.knowledge.ascend_tables import (
    BANDWIDTH_INFO,
    COMMUNICATION,
    ELAPSE,
    KERNELS,
    OPERATION,
    OPERATORS,
    SIZE,
    START,
    STEPS,
    TIME_INFO,
    TOTAL,
    UNITS,
    TableRow,
)
from gdbext.model.trace import Shares

_LONGEST_FIELD = 1 << 20  # shapes of an operator with thousands of inputs
_LARGEST_JSON = 1 << 30
_MOST_PROBLEMS = 3
_UNIT = re.compile(r"^(?P<name>.*?)\s*\((?P<unit>ns|us|ms|s)\)$")
_OPERATION = re.compile(OPERATION)
_NUMBER = re.compile(r"(?P<whole>-?\d{1,19})(?:\.(?P<part>\d{1,12}))?")


class Kernel(NamedTuple):
    """One kernel. Times are in nanoseconds: microseconds since 1970 have more digits than a float."""

    name: str
    type: str
    core: str
    stream: str
    step: Optional[int]
    start: int
    duration: int


class Operator(NamedTuple):
    """All calls of one type of operator. Microseconds."""

    type: str
    core: str
    calls: int
    total: float
    least: float
    most: float


class Exchange(NamedTuple):
    """One collective or transfer, as its rank saw it: from its arrival to its end. Nanoseconds."""

    name: str
    group: str
    number: Optional[int]  # which one of its group
    together: bool  # a collective, not a transfer between two
    start: int
    duration: int
    size: int  # bytes, -1 where it is not said


@dataclass
class Table:
    """What one file holds, and what is wrong with it."""

    problems: List[str] = field(default_factory=list)
    lines: int = 0
    left_out: int = 0

    def say(self, text: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(text)


def kernels(path: str, table: Table) -> Iterator[Kernel]:
    """Of kernel_details.csv."""
    for row in _rows(path, KERNELS, table):
        start, duration = row.nanoseconds("start"), row.nanoseconds("duration")
        if start is None or duration is None or duration < 0:
            table.left_out += 1
            continue
        step = row.number("step")
        yield Kernel(
            row["name"][:400],
            row["type"][:200],
            row["core"],
            row["stream"],
            None if step is None else int(step),
            start,
            duration,
        )
    _say_left_out(path, table)


def operators(path: str, table: Table) -> Iterator[Operator]:
    """Of op_statistic.csv."""
    for row in _rows(path, OPERATORS, table):
        count, total = row.number("count"), row.microseconds("total")
        if count is None or count < 1 or total is None:
            table.left_out += 1
            continue
        mean = total / count
        least, most = row.microseconds("least"), row.microseconds("most")
        yield Operator(
            row["type"][:400],
            row["core"],
            int(count),
            total,
            mean if least is None else least,
            mean if most is None else most,
        )
    _say_left_out(path, table)


def read_step_shares(path: str, table: Table) -> Dict[Optional[int], Shares]:
    """Of step_trace_time.csv: by step, None where the profile had no steps."""
    found: Dict[Optional[int], Shares] = {}
    for row in _rows(path, STEPS, table):
        parts = {name: row.microseconds(name) for name in ("computing", "exposed", "free")}
        known = {name: value for name, value in parts.items() if value is not None and value >= 0}
        whole = sum(known.values())
        if len(known) < len(parts) or whole <= 0:
            table.left_out += 1
            continue
        step = row.number("step")
        hidden = row.microseconds("hidden") or 0.0
        found[None if step is None else int(step)] = Shares(
            known["computing"] / whole,
            known["exposed"] / whole,
            max(0.0, min(1.0, hidden / whole)),
            known["free"] / whole,
        )
    _say_left_out(path, table)
    return found


def exchanges(path: str, table: Table) -> Iterator[Exchange]:
    """Of communication.json."""
    try:
        if os.path.getsize(path) > _LARGEST_JSON:
            table.say(f"{COMMUNICATION} has more than {_LARGEST_JSON >> 30} GB and was not read")
            return
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            document = json.load(file)
    except OSError as error:
        table.say(f"{COMMUNICATION} cannot be read: {error.strerror}")
        return
    except (ValueError, RecursionError):
        table.say(f"{COMMUNICATION} is not valid JSON: it was cut off, or is still being written")
        return
    for step in _values(document):
        for sort, entries in step.items():
            for name, entry in entries.items() if isinstance(entries, dict) else ():
                if name == TOTAL or not isinstance(entry, dict):
                    continue
                table.lines += 1
                found = _exchange(name, entry, sort != "p2p")
                if found is None:
                    table.left_out += 1
                else:
                    yield found
    _say_left_out(path, table)


def _exchange(key: str, entry: Mapping[str, Any], together: bool) -> Optional[Exchange]:
    times = entry.get(TIME_INFO)
    if not isinstance(times, dict):
        return None
    start, elapse = _ns(str(times.get(START, "")), 1000), _ns(str(times.get(ELAPSE, "")), 1_000_000)
    if start is None or elapse is None or elapse < 0:
        return None
    name, _, group = key.partition("@")
    numbered = _OPERATION.fullmatch(name)
    number = int(numbered["number"]) if numbered else None
    return Exchange(name[:400], group[:80], number, together, start, elapse, _bytes(entry.get(BANDWIDTH_INFO)))


def _bytes(said: Any) -> int:
    """What went over all kinds of links; -1 where nobody says."""
    sizes = [link.get(SIZE) for link in said.values() if isinstance(link, dict)] if isinstance(said, dict) else []
    known = [size for size in sizes if isinstance(size, (int, float)) and 0 <= size < 1e9]
    return round(sum(known) * 1000) * 1000 if known and sum(known) > 0 else -1


def _values(document: Any) -> List[Dict[str, Any]]:
    return [one for one in document.values() if isinstance(one, dict)] if isinstance(document, dict) else []


class _Row:
    """One line; "" for what it does not have."""

    def __init__(self, places: Mapping[str, Tuple[int, float]], cells: Sequence[str]) -> None:
        self._places, self._cells = places, cells

    def __getitem__(self, name: str) -> str:
        place = self._places.get(name)
        return self._cells[place[0]].strip() if place is not None and place[0] < len(self._cells) else ""

    def number(self, name: str) -> Optional[float]:
        try:
            value = float(self[name])
        except ValueError:
            return None
        return value if abs(value) < 1e18 else None

    def microseconds(self, name: str) -> Optional[float]:
        value = self.number(name)
        return None if value is None else value * self._places[name][1]

    def nanoseconds(self, name: str) -> Optional[int]:
        return _ns(self[name], round(self._places[name][1] * 1000))


def _ns(text: str, unit: int) -> Optional[int]:
    """A decimal number of `unit` nanoseconds, in whole ones, without the rounding of a float."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        try:
            value = float(text) * unit
        except ValueError:
            return None
        return round(value) if abs(value) < 1e18 else None
    part = found["part"] or ""
    whole = int(found["whole"]) * unit
    fraction = (int(part) * unit) // 10 ** len(part) if part else 0
    return whole - fraction if text.strip().startswith("-") else whole + fraction


def _rows(path: str, row: TableRow, table: Table) -> Iterator[_Row]:
    """The lines of a table; nothing raises."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            yield from _lines(file, row, table)
    except OSError as error:
        table.say(f"{row.file} cannot be read: {error.strerror}")
    except csv.Error as error:
        table.say(f"{row.file} is damaged behind line {table.lines + 1} ({error})")
    finally:
        csv.field_size_limit(before)


def _lines(file: TextIO, row: TableRow, table: Table) -> Iterator[_Row]:
    reader = csv.reader(line.replace("\0", "") for line in file)
    heading = next((cells for cells in reader if any(cell.strip() for cell in cells)), None)
    if heading is None:
        table.say(f"{row.file} is empty")
        return
    places = _places(heading, row)
    lacking = [row.columns[name][0] for name in row.needed if name not in places]
    if lacking:
        columns = ", ".join(cell.strip() for cell in heading[:12])
        table.say(f"{row.file} has no column {', '.join(lacking)}; it has {columns[:200]}")
        return
    for cells in reader:
        if any(cell.strip() for cell in cells):
            table.lines += 1
            yield _Row(places, cells)


def _places(heading: Sequence[str], row: TableRow) -> Dict[str, Tuple[int, float]]:
    """Where each column is, and how many microseconds its unit has."""
    known: Dict[str, Tuple[int, float]] = {}
    for at, cell in enumerate(heading):
        found = _UNIT.match(cell.strip())
        name, unit = (found["name"], UNITS[found["unit"]]) if found else (cell.strip(), 1.0)
        known.setdefault(name.lower(), (at, unit))
    places: Dict[str, Tuple[int, float]] = {}
    for ours, names in row.columns.items():
        for name in names:
            if name.lower() in known:
                places[ours] = known[name.lower()]
                break
    return places


def _say_left_out(path: str, table: Table) -> None:
    if table.left_out:
        table.say(
            f"{table.left_out} of {table.lines} lines of {os.path.basename(path)} have no number where one belongs"
        )
