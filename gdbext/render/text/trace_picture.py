"""A picture of the skew: for each collective and rank, how long it waited for the last."""

from __future__ import annotations

from html import escape
from typing import List

from gdbext.model.trace import TraceDiagnosis
from gdbext.render.safe_text import clean
from gdbext.render.style import Style
from gdbext.render.text.trace import duration_text

_WIDTH, _LEFT, _ROW, _TOP = 960, 110, 18, 46
_MOST = 64  # ranks
_PLAIN = Style()


def picture(found: TraceDiagnosis) -> str:
    """An SVG, also for inside of a page. Time runs to the right; a bar is waiting, a red mark the last to come."""
    culprits = set(found.verdict.culprits)
    order = [one.process for one in found.lateness]
    ranks = sorted(order[:_MOST]) or [one.index for one in found.files[:_MOST]]
    rows = {at: number for number, at in enumerate(ranks)}
    height = _TOP + _ROW * len(ranks) + 40
    end = max((one.at + one.skew + one.transfer for one in found.timeline), default=0.0) or 1.0
    scale = (_WIDTH - _LEFT - 10) / end
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        _text(10, 18, found.verdict.summary[:150], 'font-size="13" font-weight="bold"'),
        _text(10, 34, "grey: waits for the last rank; red: arrives last; blue: transfer of all ranks", 'fill="#555"'),
    ]
    for at, number in rows.items():
        y = _TOP + _ROW * number
        colour = ' fill="#b00" font-weight="bold"' if at in culprits else ""
        lines.append(_text(10, y + 12, found.files[at].name[:16], colour.strip()))
        lines.append(f'<line x1="{_LEFT}" y1="{y + 8}" x2="{_WIDTH - 10}" y2="{y + 8}" stroke="#eee"/>')
    for one in found.timeline:
        all_arrived = one.at + one.skew
        for at, arrival in one.arrivals.items():
            if at in rows:
                lines += _bars(
                    _TOP + _ROW * rows[at], one.at + arrival, all_arrived, one.transfer, scale, at == one.last
                )
    bottom = _TOP + _ROW * len(ranks) + 14
    for tick in range(5):
        x = _LEFT + (_WIDTH - _LEFT - 10) * tick / 4
        anchor = "end" if tick == 4 else "middle" if tick else "start"
        lines.append(_text(x, bottom, duration_text(round(end * tick / 4)), f'fill="#555" text-anchor="{anchor}"'))
    if len(found.lateness) > _MOST:
        lines.append(_text(10, bottom + 16, f"{len(found.lateness) - _MOST} ranks with a smaller delay are not drawn"))
    return "\n".join([*lines, "</svg>\n"])


def _bars(y: int, arrival: float, all_arrived: float, transfer: float, scale: float, last: bool) -> List[str]:
    x, wait = _LEFT + arrival * scale, (all_arrived - arrival) * scale
    shapes = [_bar(x + wait, y + 5, max(0.4, transfer * scale), 6, "#4a7ab5")]
    if last:
        shapes.append(_bar(x + wait - 1, y + 1, 2, 14, "#c00"))
    elif wait > 0.1:
        shapes.insert(0, _bar(x, y + 5, wait, 6, "#b8b8b8"))
    return shapes


def _bar(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(clean(text, _PLAIN))}</text>'
