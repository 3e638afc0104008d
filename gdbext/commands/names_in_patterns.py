"""Regular expressions of rows as people read them: the names that they match."""

from __future__ import annotations

import re
from typing import List, Match

from gdbext.knowledge.vendor_calls import SUFFIX

_MOST_NAMES, _SHOWN = 12, 6
_ANY = "\0"  # stands for any characters; a star behind parentheses would repeat them
_OPENED, _CLOSED = "\1", "\2"  # stand for parentheses that are characters of the name
_CONDITION = re.compile(r"\^|\(\?!(?:[^()]|\([^()]*\))*\)")
_FLAGS = re.compile(r"^\?[a-z]*:")
_OPTIONAL = re.compile(r"(?<!\\)(\w|\[[^]]*\])\?")
_CHARACTER_CLASS = re.compile(r"\[([A-Za-z]+)\](?![*+])")
_DIGITS = re.compile(r"\\d(\+|\*|\{\d{1,3}(,\d{0,3})?\})?")
_ONE_OF = re.compile(r"\[[^]]*\](\\w)?[*+]?")


def names_in(pattern: str, quote: str = "") -> str:
    """A regular expression as a list of names: `cuda(Malloc|Free)$` is `cudaMalloc, cudaFree`."""
    text = _CONDITION.sub("", pattern)
    for mark in (SUFFIX.rstrip("$"), "(^|/)", "\\b", "$", "_*", "(GI_)?"):
        text = text.replace(mark, "")
    text = text.replace("\\(", _OPENED).replace("\\)", _CLOSED)
    text = _ONE_OF.sub(_ANY, _CHARACTER_CLASS.sub(_either, _OPTIONAL.sub("", _DIGITS.sub("N", text))))
    for mark, word in (("\\w*", _ANY), ("\\w+", _ANY), (".*", _ANY), ("\\S+", _ANY), ("\\", "")):
        text = text.replace(mark, word)
    names = list(dict.fromkeys(re.sub(f"{_ANY}+", "*", name) for name in _expanded(text) if name))
    quoted = [f"{quote}{name.strip()}{quote}" if quote else name for name in names[:_SHOWN]]
    shown = ", ".join(quoted) + (" and others" if len(names) > _SHOWN else "")
    return shown.replace(_OPENED, "(").replace(_CLOSED, ")")


def _either(found: Match[str]) -> str:
    """`[GS]` as `(G|S)`, and `[Tt]` as `(T)`: the case of a letter tells no name apart."""
    return f"({'|'.join({letter.lower(): letter for letter in reversed(found[1])}.values())})"


def _expanded(text: str) -> List[str]:
    """The alternatives of a pattern written out, optional parts left out, repeated ones as `*`."""
    choices = _choices(text)
    if len(choices) > 1:
        return [name for choice in choices[:_MOST_NAMES] for name in _expanded(choice)]
    start = text.find("(")
    end = _closing(text, start)
    if start < 0 or end < 0:
        return [text]
    inside, after = text[start + 1 : end], text[end + 1 :]
    if after[:1] == "?" or inside.startswith("?!"):
        middle = [""]
    else:
        middle = [_ANY] if after[:1] in ("*", "+", "{") else _expanded(_FLAGS.sub("", inside))
    after = after[1:] if after[:1] in ("?", "*", "+") else after
    return [text[:start] + one + rest for one in middle for rest in _expanded(after)][: 2 * _MOST_NAMES]


def _choices(text: str) -> List[str]:
    """Split at the bars that stand outside of parentheses."""
    pieces, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(max(start, 0), len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1
