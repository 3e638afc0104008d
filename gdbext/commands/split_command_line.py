"""A command line cut into words where it holds expressions of the program's language.

Such an expression has quotes, brackets and spaces of its own: words end at spaces outside of all brackets and quotes.
"""

from __future__ import annotations

import re
from typing import List, Tuple

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|.', re.DOTALL)  # a text in quotes, else one character
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def words_of(line: str) -> List[str]:
    """The words as they were typed, with their quotes. A quote that is not closed is an ordinary character."""
    found: List[str] = []
    word, rest = first_word(line)
    while word:
        found.append(word)
        word, rest = first_word(rest)
    return found


def first_word(line: str) -> Tuple[str, str]:
    """The first word, and what stands behind it."""
    line = line.strip()
    depth = 0
    for piece in _PIECE.finditer(line):
        depth = max(0, depth + _DEPTH.get(piece.group(), 0))
        if depth == 0 and piece.group().isspace():
            return line[: piece.start()], line[piece.end() :].lstrip()
    return line, ""


def unquoted(word: str) -> str:
    """A word without the quotes around it."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word


def brackets_at_end(word: str) -> List[str]:
    """The `[...]` that a word ends with, in their order: `["[3]", "[0, :4]"]` of `v[3][0, :4]`."""
    found: List[str] = []
    group, depth = "", 0
    for piece in _PIECE.findall(word):
        if depth == 0:
            found = found if piece == "[" else []
            group = ""
        group += piece
        depth = max(0, depth + _DEPTH.get(piece, 0))
        if depth == 0 and group.startswith("["):
            found.append(group)
    return found if depth == 0 else []


def outside_brackets(text: str) -> str:
    """A text without what stands in quotes or brackets in it."""
    depth, kept = 0, ""
    for piece in _PIECE.findall(text):
        change = _DEPTH.get(piece, 0)
        depth = max(0, depth + change)
        kept += piece if depth == 0 and change == 0 and len(piece) == 1 else ""
    return kept
