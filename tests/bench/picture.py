"""Lines over a few positions with a logarithmic scale, as SVG: no more than the pages of docs need."""

import math
from html import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, LEGEND = 380, 300, 60, 50, 50, 190
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
DASHES = ("", "6 3", "2 2")


def chart(title, across, panels):
    """An SVG of panels side by side. `panels`: (heading, {name: [(x, y > 0), ...]})."""
    names = list(dict.fromkeys(name for _, lines in panels for name in lines))
    wide, high = len(panels) * (WIDTH + LEFT) + LEGEND, TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{high}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    styles = {name: _style(number, name) for number, name in enumerate(names)}
    for number, (heading, lines) in enumerate(panels):
        parts += _panel(number * (WIDTH + LEFT) + LEFT, heading, across, lines, styles)
    x = len(panels) * (WIDTH + LEFT) + 20
    for number, name in enumerate(names):
        y = TOP + 10 + 18 * number
        parts.append(f'<line x1="{x}" x2="{x + 24}" y1="{y}" y2="{y}" {styles[name]}/>')
        parts.append(f'<text x="{x + 30}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _style(number, name):
    width = 3 if name.startswith("gdbext") else 1.5
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="{width}" stroke-dasharray="{dash}" fill="none"'


def _panel(left, heading, across, lines, styles):
    places = sorted({x for points in lines.values() for x, _ in points})
    values = [y for points in lines.values() for _, y in points]
    low = math.floor(math.log10(min(values, default=1)))
    top = max(low + 1, math.ceil(math.log10(max(values, default=10))))

    def at(x):
        return left + WIDTH * (places.index(x) + 0.5) / max(1, len(places))

    def up(y):
        return TOP + HEIGHT * (top - math.log10(y)) / (top - low)

    parts = [f'<text x="{left}" y="{TOP - 12}">{escape(heading)}</text>']
    for power in range(low, top + 1):
        y = up(10.0**power)
        parts.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    foot = TOP + HEIGHT
    parts += [f'<text x="{at(x):.1f}" y="{foot + 18}" text-anchor="middle">{x}</text>' for x in places]
    parts.append(f'<text x="{left + WIDTH / 2:.1f}" y="{foot + 38}" text-anchor="middle">{escape(across)}</text>')
    for name, points in lines.items():
        spots = [(at(x), up(y)) for x, y in sorted(points)]
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}" {styles[name]}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" {styles[name]}/>' for x, y in spots]
    return parts
