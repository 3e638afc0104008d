"""Lines of a terminal as a small SVG: what the README shows of an answer."""

from __future__ import annotations

import re
from html import escape
from typing import Sequence

COLUMN, ROW, EDGE = 7.83, 18, 14
"""Width of a character of the font of 13 px, height of a line, margin: in px."""

FILLS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
PLAIN, GROUND, FAINT = "#e6edf3", "#0d1117", "#8b949e"


def span(text: str, parameters: str) -> str:
    """A piece of a line in the colour that SGR parameters such as "1;31" name."""
    codes = parameters.split(";")
    look = [f'fill="{FILLS[code]}"' for code in codes if code in FILLS]
    if "1" in codes:
        look.append('font-weight="bold"')
    if "2" in codes:
        look.append(f'fill="{FAINT}"')
    return f"<tspan {' '.join(look)}>{escape(text)}</tspan>" if look else escape(text)


def row(line: str) -> str:
    """A line with ANSI sequences as SVG text."""
    pieces = re.split(r"\x1b\[([\d;]*)m", line)
    return "".join(span(text, parameters) for parameters, text in zip(["", *pieces[1::2]], pieces[::2]) if text)


def picture(command: str, lines: Sequence[str], columns: int) -> str:
    """The command and what it printed."""
    width, height = round(columns * COLUMN) + 2 * EDGE, (len(lines) + 1) * ROW + 2 * EDGE
    rows = [f'<tspan fill="{FAINT}">$</tspan> {escape(command)}', *map(row, lines)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"',
            f' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" fill="{PLAIN}">',
            f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>',
            *(
                f'<text xml:space="preserve" x="{EDGE}" y="{EDGE + ROW * number + 13}">{text}</text>'
                for number, text in enumerate(rows)
                if text
            ),
            "</svg>\n",
        ]
    )
