"""Words of a target made fit for the page, and the places in it that links lead to.

Everything of a target passes `one_line`, `function` or `place` first: no control or bidirectional character, a bounded
length. Jinja2 escapes it then. No address (`id`, `href`) is made of anything but numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Optional

from gdbext.render.safe_text import clean, function_name, place_of, shorten, shorten_name
from gdbext.render.style import Style

PLAIN = Style(width=120)
SENTENCE = 1_200
"""Characters of a sentence of ours, in which names of a target may stand."""
_NAME, _PATH = 240, 240


def one_line(text: Optional[str], limit: int = _NAME) -> str:
    """A name or a sentence on one line; "" for None."""
    return shorten(clean(text, PLAIN), limit, PLAIN)


@lru_cache(maxsize=4096)
def function(name: Optional[str]) -> str:
    """A function as a frame shows it."""
    return shorten_name(function_name(name, PLAIN), _NAME, PLAIN)


@lru_cache(maxsize=4096)
def place(file: Optional[str], line: Optional[int], module: Optional[str]) -> str:
    """Where a frame lies, in few characters."""
    return shorten(place_of(file, line, module, PLAIN), _NAME, PLAIN)


@lru_cache(maxsize=4096)
def path(file: Optional[str], line: Optional[int], module: Optional[str]) -> str:
    """The same in full."""
    if file:
        return shorten(clean(file, PLAIN), _PATH, PLAIN) + (f":{line}" if line else "")
    return shorten(clean(module, PLAIN), _PATH, PLAIN)


def rank_place(index: int) -> str:
    """The id of a process in the matrix."""
    return f"p{index}"


def thread_place(index: int, position: int) -> str:
    """The id of a thread, by its position in its process."""
    return f"p{index}-t{position}"


def frame_place(index: int, position: int, number: int) -> str:
    """The id of a frame of it."""
    return f"p{index}-t{position}-f{number}"
