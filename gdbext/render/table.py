"""One way to print a table: columns as wide as needed, cut where the width ends, dropped where it ends early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence

from tabulate import tabulate

from gdbext.render.safe_text import shorten
from gdbext.render.style import Style

GAP = 2  # columns between two cells, as tabulate's "plain" format has them
NOTHING = "-"

Cut = Callable[[str, int, Style], str]


@dataclass(frozen=True)
class Column:
    """How one column behaves. Numbers stand on the right. `least` is the width it may be cut to (0: never cut);
    the column with the lowest `keep` is the first to go when even that is too wide."""

    title: str
    right: bool = False
    least: int = 0
    keep: int = 9
    cut: Cut = shorten
    accent: str = ""


@dataclass(frozen=True)
class Row:
    """Clean text for each column, "" where there is nothing to say, and what the row means (a key of ACCENTS)."""

    cells: Sequence[str]
    accent: str = ""


def table(columns: Sequence[Column], rows: Sequence[Row], style: Style) -> List[str]:
    """Lines of at most `style.width` characters. Columns in which no row says anything are left out."""
    if not rows:
        return []
    said = [index for index in range(len(columns)) if any(row.cells[index] for row in rows)]
    natural = {
        index: max(len(columns[index].title), *(len(row.cells[index] or NOTHING) for row in rows)) for index in said
    }
    widths = _fit(columns, natural, style.width)
    shown = [columns[index] for index in widths]
    cut = [[columns[index].cut(row.cells[index] or NOTHING, widths[index], style) for index in widths] for row in rows]
    titles = [column.title[:width] for column, width in zip(shown, widths.values())]
    rules = ["-" * max(map(len, cells)) for cells in zip(titles, *cut)]
    lines = [[style.paint(title, "strong") for title in titles], [style.paint(rule, "dim") for rule in rules]]
    for row, cells in zip(rows, cut):
        lines.append([style.paint(cell, row.accent or column.accent) for cell, column in zip(cells, shown)])
    text = tabulate(
        lines,
        tablefmt="plain",
        disable_numparse=True,
        colalign=["right" if column.right else "left" for column in shown],
    )
    return [line.rstrip() for line in text.splitlines()]


def _fit(columns: Sequence[Column], natural: Dict[int, int], width: int) -> Dict[int, int]:
    """Widths by column index that fit `width`: the widest column gives first, then whole columns go."""
    widths = dict(natural)
    while sum(widths.values()) + GAP * (len(widths) - 1) > width:
        givers = [index for index in widths if columns[index].least and widths[index] > _least(columns[index])]
        if givers:
            widths[max(givers, key=lambda index: widths[index])] -= 1
            continue
        if len(widths) == 1:
            return dict.fromkeys(widths, width)
        del widths[min(widths, key=lambda index: columns[index].keep)]
        widths = {index: natural[index] for index in widths}
    return widths


def _least(column: Column) -> int:
    return max(column.least, len(column.title))
