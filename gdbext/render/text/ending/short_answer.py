"""An answer in at most eight lines: the verdict, then one fact a line behind its title."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, List, Sequence, Tuple

from gdbext.render.safe_text import shorten, wrapped
from gdbext.render.style import Style

MOST = 8
"""Lines of an answer, from 80 columns on."""
_MOST_NARROW = 12
_FAIR_VERDICT, _FAIR_SENTENCE, _LEAST_VERDICT = 3, 4, 2
"""Lines that a long verdict, and its first sentence, keep while other facts take more than one; and at last."""
_LEAD = 11
_LEAST_CLAUSE = 24  # characters
_CLAUSE_ENDS = re.compile(r"[;,:]? \(|[;,] ")
_CONDITION = re.compile(r"(?:^|[;,] )(?:[Ii]f|[Bb]ecause|[Ww]hile|[Ee]ither) [^;,]*$")
"""A clause that says nothing without the one behind it."""
_SENTENCE_ENDS = re.compile(r"(?<=\.) (?=[A-Z])")


@dataclass(frozen=True)
class Line:
    """One fact behind its title. `texts` say the same, the longest first: the first that fits is shown.

    `steps` instead: a chain, which loses its middle before it takes more than `most` lines.
    """

    title: str
    texts: Tuple[str, ...] = ()
    steps: Tuple[str, ...] = ()
    most: int = 1
    accent: str = ""


def ending(verdict: str, accent: str, lines: Sequence[Line], style: Style) -> List[str]:
    """The verdict over a few lines, then each fact; `MOST` lines in all. All texts are clean."""
    lines = [one for one in lines if any(one.texts) or one.steps]
    wanted = [len(wrapped(verdict, style)), *(min(_height(one, style), one.most) for one in lines)]
    chains = [number for number, one in enumerate(lines, 1) if one.steps]
    _drop_lines(
        wanted, chains, len(wrapped(_sentences(verdict)[0], style)), MOST if style.width >= 80 else _MOST_NARROW
    )
    shown = [style.paint(line, accent) for line in _cut(verdict, wanted[0], style)]
    for one, most in zip(lines, wanted[1:]):
        shown += _line(one, most, style)
    return shown


def _drop_lines(wanted: List[int], chains: Sequence[int], first: int, left: int) -> None:
    """Take lines away until they fit: of the verdict, in front, what stands behind its first sentence, of the others
    the end, of chains the middle."""

    def has_spare(number: int, least: int) -> bool:
        return sum(wanted) > left and wanted[number] > least

    others = [number for number in range(len(wanted) - 1, 0, -1) if number not in chains]
    for least in (max(_FAIR_VERDICT, min(first, _FAIR_SENTENCE)), max(_LEAST_VERDICT, first)):
        while has_spare(0, least):
            wanted[0] -= 1
    for number in (*others, *chains):
        while has_spare(number, 1):
            wanted[number] -= 1
    while has_spare(0, _LEAST_VERDICT):
        wanted[0] -= 1


def _sentences(text: str) -> List[str]:
    """A quotation is never taken apart, and one that ends a sentence keeps the next one, which says what it means."""
    sentences: List[str] = []
    for piece in _SENTENCE_ENDS.split(text):
        if sentences and (sentences[-1].count('"') % 2 or sentences[-1].endswith('".')):
            sentences[-1] += f" {piece}"
        else:
            sentences.append(piece)
    return sentences


def _cut(text: str, most: int, style: Style) -> List[str]:
    """Over at most `most` lines: whole sentences, where the first fits."""
    sentences = _sentences(text)
    for kept in range(len(sentences), 0, -1):
        whole = " ".join(sentences[:kept])
        if len(wrapped(whole, style)) > most:
            continue
        if kept == len(sentences):
            return wrapped(whole, style)
        pieces = (piece for piece in _without_last_clauses(sentences[kept], style) if not _CONDITION.search(piece))
        clauses = (f"{whole} {piece}" for piece in pieces)
        for shorter in (*clauses, whole):
            if len(wrapped(shorter, style)) <= most:
                return wrapped(shorter, style)
    return wrapped(text, style, most=most)


def _height(line: Line, style: Style) -> int:
    text = _chained(line.steps, style) if line.steps else line.texts[0]
    return max(1, len(_wrapped(text, style)))


def _wrapped(text: str, style: Style, most: int = 0) -> List[str]:
    """Behind the title."""
    return [one[_LEAD:] for one in wrapped(text, style, indent=" " * _LEAD, most=most)]


def _line(line: Line, most: int, style: Style) -> List[str]:
    title = style.paint(f"  {line.title:<8} ", "dim")
    if line.steps:
        texts = _wrapped(_elided(line.steps, most, style), style, most)
    else:
        shorter = (*line.texts, *_without_last_clauses(line.texts[-1], style))
        fitting = (one for one in shorter if len(_wrapped(one, style)) <= most)
        texts = _wrapped(next(fitting, line.texts[-1]), style, most)
    return [(" " * _LEAD if number else title) + style.paint(one, line.accent) for number, one in enumerate(texts)]


def _without_last_clauses(text: str, style: Style) -> Iterator[str]:
    """The longest first: `Look at the rank (named above) …`, `Look at the rank …`."""
    for end in reversed(list(_CLAUSE_ENDS.finditer(text))):
        kept = text[: end.start()]
        if len(kept) >= _LEAST_CLAUSE and kept.count("(") == kept.count(")"):
            yield f"{kept} {style.ellipsis}"


def _chained(steps: Sequence[str], style: Style) -> str:
    return f" {style.arrow} ".join(steps)


def _elided(steps: Sequence[str], most: int, style: Style) -> str:
    """The chain over at most `most` lines: without its middle, and then with shorter names of both ends."""
    text = _chained(steps, style)
    kept = len(steps)
    while len(_wrapped(text, style)) > most and kept > 2:
        kept -= 1
        text = _chained([*steps[: (kept + 1) // 2], style.ellipsis, *steps[len(steps) - kept // 2 :]], style)
    if len(_wrapped(text, style)) > most:
        each = (most * (style.width - _LEAD) - 4 * len(style.arrow) - 8) // 2
        ends = [shorten(one, each, style) for one in (steps[0], steps[-1])]
        text = _chained([ends[0], *([style.ellipsis] if len(steps) > 2 else []), *ends[1:]], style)
    return text
