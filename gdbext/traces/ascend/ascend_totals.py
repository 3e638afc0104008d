"""Operators of an Ascend rank by op_statistic.csv, or by its kernels where that says more or is not there."""

from __future__ import annotations

import os
import re
from typing import Iterator, Tuple

from gdbext.knowledge.ascend_tables import FOLDER, IS_COMMUNICATION, KERNELS, OPERATORS
from gdbext.traces.ascend.ascend_files import Table, kernels, operators
from gdbext.traces.ascend.ascend_rank import rank_of
from gdbext.traces.totals import FileTotals, Totals

PATH = rf"(?:^|/){FOLDER}/?$|\.csv$"
_PARTS = re.compile(IS_COMMUNICATION)


def read(path: str, by: str) -> FileTotals:
    """The totals of a folder of tables, or of one of them."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    table, found = Table(), FileTotals(path=path, rank=rank_of(folder))
    whole = path if path.endswith(OPERATORS.file) else os.path.join(folder, OPERATORS.file)
    single = path if path.endswith(KERNELS.file) else os.path.join(folder, KERNELS.file)
    if os.path.isfile(whole) and by == "category" and path != single:
        for one in operators(whole, table):
            totals = found.rows.setdefault((_sort(one.type, one.core), one.type), Totals())
            totals.count += one.calls
            totals.total += one.total
            totals.least, totals.most = min(totals.least, one.least), max(totals.most, one.most)
    else:
        for sort, name, length in _single(single, by, table):
            found.rows.setdefault((sort, name), Totals()).add(length)
    found.window = sum(totals.total for totals in found.rows.values())
    found.events, found.problems = table.lines, table.problems
    return found


def _single(path: str, by: str, table: Table) -> Iterator[Tuple[str, str, float]]:
    """Each kernel: sort, name, microseconds. These tables say no stage."""
    for one in kernels(path, table):
        sort = f"stream {one.stream}" if by == "stream" else "" if by == "stage" else _sort(one.name, one.core)
        yield sort, one.type or one.name, one.duration / 1000


def _sort(name: str, core: str) -> str:
    return "communication" if _PARTS.search(name) else core or "kernel"
