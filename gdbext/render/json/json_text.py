"""The text of a JSON document for programs: the one way in which answers, events and lists are written as JSON.

What is printed is cleaned: `jq -r` prints strings as they are, so escapes of JSON alone do not keep a name from
controlling a terminal. Characters that a terminal obeys or does not show are replaced by visible words, `\\u202e`. A
saved snapshot, which is kept, has the names as they were, in ASCII (model/snapshot_files/codec.py).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Optional

from gdbext.render.safe_text import is_live

_OUT_OF_THE_ORDINARY = re.compile(r"\\[bfnrtu]|\x7f")
"""In ASCII text of JSON: a character that may be live. Almost no document has one."""

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Lines(str):
    """A text that somebody laid out in lines, as the output of a command: newlines and tabs of it stay."""


def json_text(document: Any, indent: Optional[int] = None) -> str:
    """ASCII text, on one line without `indent`, that any stream can take. Numbers that JSON does not have are null."""
    try:
        text = json.dumps(document, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite_json_value(document), indent=indent)
    return json.dumps(_finite_json_value(document), indent=indent) if _OUT_OF_THE_ORDINARY.search(text) else text


def _finite_json_value(value: Any) -> Any:
    if isinstance(value, str):
        return escape_live_characters(value, "\n\t" if isinstance(value, Lines) else "")
    if isinstance(value, dict):
        return {_finite_json_value(name): _finite_json_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite_json_value(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def escape_live_characters(text: str, kept: str = "") -> str:
    """`text` with every live character written out, but those of `kept`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written_out(one) if is_live(one) and one not in kept else one for one in text)


def _written_out(character: str) -> str:
    code = ord(character)
    return _SHORT.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
