"""Words made safe and short. Everything that comes from a target passes `clean` before it is shown."""

from __future__ import annotations

import re
import textwrap
import time
import unicodedata
from typing import Iterable, List, Optional

from gdbext.model.text.paths import short_file
from gdbext.model.text.ranges import pieces
from gdbext.model.text.source_names import source_name
from gdbext.render.style import Style

NAMELESS = "??"

LONGEST = 20_000
"""Characters of one name that are looked at; template names of several thousand are real."""

_CSI = re.compile("(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]")
_SYMBOLIC_OPERATOR = re.compile(r"operator\s*(?:<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|<|>)")
_SHOWS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Letters and marks that are never seen: fillers, variation selectors, tags (Default_Ignorable_Code_Point)."""


def clean(text: Optional[str], style: Style) -> str:
    """`text` as one printable line: no escape sequence, control or bidirectional character; "" for None."""
    return " ".join(clean_line(text or "", style).split())


def clean_line(text: str, style: Style) -> str:
    """As `clean`, but spaces stay: for lines that somebody else laid out."""
    text = text[:LONGEST]
    if text.isascii() and text.isprintable():
        return text
    text = "".join(map(_printable, _CSI.sub("", text)))
    return text if style.unicode else text.replace("…", style.ellipsis).encode("ascii", "replace").decode()


def clean_text(text: str, style: Style) -> str:
    """As `clean_line`, line by line."""
    return "\n".join(clean_line(line, style) for line in text.split("\n"))


def is_live(character: str) -> bool:
    """Whether a terminal obeys the character or does not show it: controls, line and paragraph separators, formats
    (bidirectional overrides, zero widths), fillers and selectors, half characters, private and unassigned ones."""
    if character.isprintable():
        return _SHOWS_NOTHING.match(character) is not None
    return unicodedata.category(character) != "Zs"  # spaces of other widths are no harm


def _printable(character: str) -> str:
    if character.isspace():
        return " "
    if not is_live(character):
        return character
    # Half of a surrogate pair comes of undecodable bytes.
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) == "Cs" else ""


def shorten(text: str, limit: int, style: Style) -> str:
    """At most `limit` characters, the middle left out: beginnings and ends tell names apart."""
    if len(text) <= limit:
        return text
    mark = style.ellipsis
    room = limit - len(mark)
    if room < 2:
        return text[: max(limit, 0)]
    tail = (room + 1) // 2
    return text[: room - tail] + mark + text[-tail:]


def shorten_name(name: str, limit: int, style: Style) -> str:
    """A C++ or Python name in at most `limit` characters: template arguments go first, then inner namespaces."""
    if len(name) <= limit:
        return name
    name = _without_template_arguments(name, style)
    if len(name) <= limit:
        return name
    parts = name.split("::")
    # `engine::…::Layer::forward` if it can be, else `…::Layer::forward`, else `…::forward`.
    for head, most, least in ((parts[0] + "::", len(parts) - 2, 2), ("", len(parts) - 1, 1)):
        for kept in range(most, least - 1, -1):
            shorter = f"{head}{style.ellipsis}::{'::'.join(parts[-kept:])}"
            if len(shorter) <= limit:
                return shorter
    return shorten(parts[-1] if len(parts) > 1 else name, limit, style)


def _without_template_arguments(name: str, style: Style) -> str:
    """`a<b<c>>::d` becomes `a<…>::d`; the `<` of an operator's name is none of a template's."""
    kept: List[str] = []
    depth = position = 0
    while position < len(name):
        operator = _SYMBOLIC_OPERATOR.match(name, position)
        piece = operator.group() if operator else name[position]
        opens = piece == "<" and not operator
        closes = piece == ">" and depth > 0
        if depth == 0 or (closes and depth == 1):
            kept.append(piece)
        if opens:
            if depth == 0:
                kept.append(style.ellipsis)
            depth += 1
        elif closes:
            depth -= 1
        position += len(piece)
    return "".join(kept)


def function_name(name: Optional[str], style: Style) -> str:
    """A function as its source names it; `??` where it has no name."""
    return clean(source_name(name or ""), style) or NAMELESS


def name_with_place(name: str, place: str) -> str:
    """A name and where it is, as one cell: `shorten_located` can cut it again."""
    return f"{name}  {place}" if name and place else name or place


def shorten_located(text: str, limit: int, style: Style) -> str:
    """Cut what `name_with_place` joined: the name first, the place (which ends in the line number) last."""
    name, gap, place = text.partition("  ")
    if len(text) <= limit or not gap:
        return shorten_name(text, limit, style)
    room = limit - len(place) - len(gap)
    return shorten_name(name, room, style) + gap + place if room >= 8 else shorten_name(name, limit, style)


def place_of(file: Optional[str], line: Optional[int], module: Optional[str], style: Style) -> str:
    """Where a frame lies, in few characters: `attention.cc:88`, else `(libnccl.so.2)`, else nothing."""
    if file:
        base = short_file(clean(file, style))
        return f"{base}:{line}" if line else base
    library = clean(module, style).rpartition("/")[2]
    return f"({library})" if library else ""


def rank_set(numbers: Iterable[int], style: Style, limit: int = 24) -> str:
    """`0-2,5`, in about `limit` characters; a longer set ends in how many there are: `0,2,4,… (512)`."""
    numbers = set(numbers)
    parts = pieces(numbers)
    whole = ",".join(parts)
    if len(whole) <= limit:
        return whole
    ending = f",{style.ellipsis} ({len(numbers)})"
    shown = parts[0]
    for piece in parts[1:]:
        if len(shown) + 1 + len(piece) + len(ending) > limit:
            break
        shown += "," + piece
    return shown + ending


def milliseconds(value: Optional[float]) -> str:
    """`0.4 ms`, `41 ms`, `6.2 s`; "" for None."""
    if value is None:
        return ""
    if value >= 9_999.5:
        return f"{value / 1000:.0f} s"
    if value >= 999.5:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 99.5 else f"{value:.1f} ms"


def utc_text(seconds: float) -> str:
    """`2026-11-20 14:03:11 UTC` of seconds since the epoch; "" for a time that has no date: a file may claim any."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return ""


def wrapped(text: str, style: Style, indent: str = "", first: Optional[str] = None, most: int = 0) -> List[str]:
    """`text` on as many lines as it needs (at most `most`), `first` before the first one, `indent` before the rest."""
    lines = textwrap.wrap(
        text,
        width=max(style.width, len(indent) + 20),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    if most and len(lines) > most:
        last = lines[most - 1]
        room = style.width - len(style.ellipsis) - 1
        if len(last) > room:  # end with a whole word, where there is one
            last = last[: room + 1].rpartition(" ")[0].rstrip() or last[:room]
        lines = lines[: most - 1] + [f"{last} {style.ellipsis}"]
    return lines
