"""The events of one trace file, some thousand at a time, and the keys that stand around them.

The text is cut where one event ends and the next begins. What does not parse is passed over up to the next thing that
is an event: a cut file, or one that several processes wrote into, gives all that is whole, and counts what is not.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Dict, Iterator, List, Optional

from gdbext.traces.gzip_text import pieces
from gdbext.traces.trace_event import Event, decode

_START = re.compile(rb'\s*(?:\[|\{(?:.*?)"traceEvents"\s*:\s*\[)', re.DOTALL)
_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_LIKELY = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|args)"\s*:')
_TAIL = 1 << 16  # bytes at the end of a block in which its last border is searched
_TRIES = 12  # borders that may be inside of an event before the block is walked through
_HEADER = 64 << 20  # bytes in front of the events
_EVENT = 16 << 20  # bytes of one event
_decoder = json.JSONDecoder(strict=False)


@dataclass
class Contents:
    """What was found besides the events: filled while they are read."""

    keys: Dict[str, Any] = field(default_factory=dict)  # top-level keys but traceEvents
    problems: List[str] = field(default_factory=list)
    events: int = 0
    lost: int = 0  # places at which something was passed over
    lost_bytes: int = 0
    size: int = 0  # bytes of text

    @property
    def whole(self) -> bool:
        return not self.problems


def blocks(file: BinaryIO, contents: Contents) -> Iterator[List[Event]]:
    """Lists of events, in the order of the file. Nothing raises but the reading of the file itself (`OSError`)."""
    text = b""
    begun = False
    ended = False
    for piece in pieces(file, contents.problems):
        contents.size += len(piece)
        if ended:
            text += piece if len(text) < _HEADER else b""
            continue
        text += piece
        if not begun:
            text, begun = _without_header(text, contents)
            if not begun:
                if len(text) > _HEADER:
                    break
                continue
        cut = _last_border(text)
        for at in cut:
            try:
                events = decode(b"[" + text[:at].strip().rstrip(b",") + b"]")
            except (ValueError, RecursionError):
                continue
            text = text[at:]
            contents.events += len(events)
            yield events
            break
        else:
            if not cut and len(text) < _EVENT:
                continue
            events, text, ended = _walk(text, contents, last=False)
            yield events
    if not begun:
        contents.problems.append("it has no traceEvents: not a trace of torch, Kineto or Ascend")
        return
    if not ended:
        events, text, ended = _walk(text, contents, last=True)
        yield events
        if not ended:
            contents.problems.append("the list of events has no end: the file was cut, or is still being written")
    _trailer(text, contents)
    if contents.lost:
        places = f"{contents.lost} place{'s' if contents.lost > 1 else ''}"
        contents.problems.append(f"{contents.lost_bytes} bytes at {places} are not events and were skipped")


def _without_header(text: bytes, contents: Contents) -> tuple[bytes, bool]:
    """The text behind the bracket that opens the events; keys before it are kept."""
    text = text[3:] if text.startswith(b"\xef\xbb\xbf") else text
    found = _START.match(text)
    if found is None:
        return text, False
    if not found.group().endswith(b"{") and b"{" in found.group():
        _keep(found.group() + b"]}", contents)
    return text[found.end() :], True


def _trailer(text: bytes, contents: Contents) -> None:
    """Keys behind the events."""
    rest = text.strip()
    if rest.startswith(b","):
        _keep(b"{" + rest[1:], contents)


def _keep(text: bytes, contents: Contents) -> None:
    try:
        found = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        contents.problems.append("the keys around the events are damaged")
        return
    found.pop("traceEvents", None)
    contents.keys.update(found)


def _last_border(text: bytes) -> List[int]:
    """Where the last event of the text may begin, the likeliest place first."""
    start = max(0, len(text) - _TAIL)
    found = [match.end() for match in _BORDER.finditer(text, start)]
    if not found and start:
        found = [match.end() for match in _BORDER.finditer(text)]
    return found[: -_TRIES - 1 : -1]


def _walk(text: bytes, contents: Contents, last: bool) -> tuple[List[Event], bytes, bool]:
    """Event by event. Returns the events, the text that is left, and whether the list of events has ended."""
    words = text.decode("utf-8", "replace")
    found: List[Event] = []
    at = 0
    ended = False
    while True:
        while at < len(words) and words[at] in " \t\r\n,\0":
            at += 1
        if at >= len(words):
            break
        if words[at] == "]":
            ended, at = True, at + 1
            break
        one, end = _one(words, at)
        if one is not None:
            found.append(one)
            at = end
            continue
        following = _next(words, at + 1)
        if following is None and not last and len(words) - at < _EVENT:
            break  # perhaps the rest of it comes with the next piece
        contents.lost += 1
        end = len(words) if following is None else following
        contents.lost_bytes += end - at
        at = end
    contents.events += len(found)
    return found, words[at:].encode("utf-8", "replace"), ended


def _one(words: str, at: int) -> tuple[Optional[Event], int]:
    try:
        found, end = _decoder.raw_decode(words, at)
    except (ValueError, RecursionError):
        return None, at
    if not isinstance(found, dict) or not ({"ph", "ts", "name"} & set(found)):
        return None, at
    return Event(found), end


def _next(words: str, at: int) -> Optional[int]:
    """Where the next whole event begins, or the list of events ends."""
    for tries, match in enumerate(_LIKELY.finditer(words, at)):
        one, _ = _one(words, match.start())
        if one is not None and isinstance(one.ph, str) and one.ph:
            return match.start()
        if tries >= 1000:
            return match.start()
    return None
