"""A table of what an engine has dumped, by rank and step."""

from __future__ import annotations

import shlex
from typing import Callable, List, Mapping, Optional

from gdbext.model.dumps import DumpListing
from gdbext.model.text.ranges import counted
from gdbext.render.lines import left_out
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.tensors.tensor import size_text

MOST_ROWS = 200
_GROUPS = (
    Column("of", keep=9),
    Column("step", right=True, keep=8),
    Column("what", keep=8),
    Column("files", right=True, keep=7),
    Column("size", right=True, keep=6),
    Column("written by", keep=2, accent="dim"),
)
_FILES = (
    Column("rank", right=True, keep=9),
    Column("step", right=True, keep=8),
    Column("what", keep=5),
    Column("name", least=16, keep=7),
    Column("size", right=True, keep=6),
    Column("file", least=20, keep=4),
)


def listing_lines(answer: DumpListing, style: Style) -> List[str]:
    """The table, what ranks do not have in common, and how to compare two of them."""
    if answer.files:
        rows = [
            Row(
                (_number(one.rank), _number(one.step), one.what, clean(one.name, style), size_text(one.bytes))
                + (clean(one.path, style),)
            )
            for one in answer.files[:MOST_ROWS]
        ]
        lines = table(_FILES, rows, style)
        number = len(answer.files)
    else:
        rows = [
            Row(
                (
                    clean(one.whose, style),
                    _number(one.step),
                    one.what,
                    f"{one.files:,}",
                    size_text(one.bytes),
                    one.engine,
                )
            )
            for one in answer.groups[:MOST_ROWS]
        ]
        lines = table(_GROUPS, rows, style)
        number = len(answer.groups)
    lines += left_out(number - len(rows), style)
    if answer.unknown:
        lines.append(f"{counted(answer.unknown, 'other file')}")
    for line in answer.uneven:
        lines += [style.paint(part, "doubt") for part in wrapped(clean(line, style), style, indent="  ")]
    for note in answer.notes:
        lines += wrapped(clean(note, style), style, indent="  ")
    if answer.pair:
        words = " ".join(shlex.quote(clean(path, style)) for path in answer.pair)
        lines += [f"Compare two ranks in gdb: llm-tensor diff {words}"]
    return lines


def _number(value: Optional[int]) -> str:
    return "" if value is None else str(value)


RENDERERS: Mapping[type, Callable[..., List[str]]] = {DumpListing: listing_lines}
