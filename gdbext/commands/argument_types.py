"""Types of arguments, in argparse's words: from what was typed to a value, or its error."""

from __future__ import annotations

from argparse import ArgumentTypeError

from gdbext.model.text.digits import integer_or_none, is_whole

OTHERS = {"stop": "stop", "hold": "hold", "stop-at-same": "hold", "run": "run"}
"""What `llm-break --others` takes, and what it means."""
_LONGEST = 24 * 3600.0


def number(text: str) -> int:
    """A process or group id."""
    if not integer_or_none(text):
        raise ArgumentTypeError(f"not a process id: {text}")
    return int(text)


def rank_number(text: str) -> int:
    """One rank."""
    if not is_whole(text):
        raise ArgumentTypeError(f"{text} is neither a rank number nor a pid")
    return int(text)


def frame_count(text: str) -> int:
    """How many innermost frames. Raises ValueError."""
    if not integer_or_none(text):
        raise ValueError
    return int(text)


def frame_number(text: str) -> int:
    """A number from 0 on, with or without `py` before it. Raises ValueError."""
    digits = text[2:] if text.startswith("py") else text
    if not is_whole(digits):
        raise ValueError
    return int(digits)


def positive(text: str) -> int:
    """A count."""
    if not integer_or_none(text):
        raise ArgumentTypeError(f"not a number of 1 or more: {text}")
    return int(text)


def seconds(text: str) -> float:
    """`120` and `120s`."""
    try:
        found = float(text[:-1] if text.endswith("s") else text)
    except ValueError:
        found = 0.0
    if not 0 < found <= _LONGEST:
        raise ArgumentTypeError(f"seconds, up to a day, not {text}")
    return found


def profile_seconds(text: str) -> float:
    """How long a profile, or the writing of its files, may take."""
    found = float(text)
    if not 0 < found < 1e6:
        raise ValueError(text)
    return found


def steps(text: str) -> int:
    """A number of steps of an engine."""
    found = int(text)
    if not 0 < found < 10**9:
        raise ValueError(text)
    return found


profile_seconds.__name__ = "number of seconds"
steps.__name__ = "number"


def condition(text: str) -> str:
    """Quotes around all of it, as a shell would need them, are taken off."""
    if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    if not text:
        raise ArgumentTypeError("a condition is missing")
    return text


def others(text: str) -> str:
    """What the other ranks do at a breakpoint: hold, stop or run."""
    if text not in OTHERS:
        raise ArgumentTypeError(f"hold, stop or run, not {text}")
    return text


def action(text: str) -> str:
    """What `llm-check on` does at a failure."""
    if text not in ("stop", "log"):
        raise ArgumentTypeError(f"stop or log, not {text}")
    return text
