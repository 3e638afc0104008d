"""Reads JSON that somebody else wrote: what it may cost is known before it is parsed."""

from __future__ import annotations

import json
from typing import Any, Union

MOST_VALUES = 2_000_000
"""Of containers, and of what stands between commas: some 250 MB when it is parsed."""
_MOST_CONTAINERS = 500_000
_LONGEST_NUMBER = 32  # digits: to read a long one takes time quadratic in its length (Python 3.8)


def loads(data: Union[bytes, str]) -> Any:
    """The document. Raises `ValueError` for anything else, and for what is too large."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    containers = text.count("{") + text.count("[")
    if containers > _MOST_CONTAINERS or containers + text.count(",") > MOST_VALUES:
        raise ValueError("more values than a valid document can have")
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError("a number too long")
    return int(digits)
